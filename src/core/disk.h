/* SPDX-License-Identifier: MIT */
#ifndef RS_CORE_DISK_H
#define RS_CORE_DISK_H

/* A task's call about files and names. */

#include "core/core.h"
#include "sys/disk.h"

/* Makes the call to its end, as rs_operation() does; its result. The caller has entered. A cancel takes effect only
 * before the call has begun: -ECANCELED then says that it never will be, and anything else is what it came to. */
ssize_t rs_operation_disk(struct rs_loop *l, struct rs_disk *d, const char *what);

/* The same, and no cancel keeps it from happening: for what undoes something. The caller has entered, shielded. */
ssize_t rs_operation_disk_surely(struct rs_loop *l, struct rs_disk *d, const char *what);

#endif
