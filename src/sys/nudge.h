/* SPDX-License-Identifier: MIT */
#ifndef RS_NUDGE_H
#define RS_NUDGE_H

/* A signal that does nothing but end system calls with EINTR, of threads that ask for it. */

#include <stdbool.h>

#include "sys/thread.h"

/* The process has the signal, and its handler, as long as somebody uses it. use: 0; -EBUSY: none is free. */
int rs_nudge_use(void);
void rs_nudge_unuse(void);
void rs_nudge_forked(void); /* in a forked child: as before */

/* The running thread, one of ours, may be nudged from open to close; after that nothing is left of one on its way. */
void rs_nudge_open(void);
void rs_nudge_close(void);

/* t is open, and its close waits for this to return. */
void rs_nudge(struct rs_thread t);

#endif
