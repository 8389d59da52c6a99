/* SPDX-License-Identifier: MIT */
#ifndef RS_SLAB_H
#define RS_SLAB_H

/* Where tasks lie: slabs of the loop (rs_loop.slabs), in order of their making, which live as long as it does. A place
 * whose fn is NULL is free. For who makes tasks, and for who goes through all of them. */

#include "core/core.h"

enum { RS_SLAB_TASKS = 64 };

struct rs_slab {
        struct rs_node node;
        void *memory; /* as allocated: the slab is aligned in it */
        struct rs_task tasks[RS_SLAB_TASKS];
};

#endif
