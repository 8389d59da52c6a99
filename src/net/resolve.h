/* SPDX-License-Identifier: MIT */
#ifndef RS_RESOLVE_H
#define RS_RESOLVE_H

/* Around a fork, in the parent: look-ups do not begin meanwhile. Waits for those that run, 50 ms at most. */
void rs_resolve_before_fork(void);
void rs_resolve_after_fork(void);

/* In a forked child: the threads of the look-ups stayed with the parent, and with them what they were asked. */
void rs_resolve_forked(void);

#endif
