/* SPDX-License-Identifier: MIT */
#ifndef RS_SHARE_H
#define RS_SHARE_H

/* Listeners of several loops with one queue of connections. */

#include "net/listener.h"

/* Makes n one of those that this loop, and those beside it, have at `asked`, waiting until another that begins there
 * has listened. 0: it has joined them, and has its file and address; 1: it is the first, is to listen, and to tell by
 * rs_share_opened(), or rs_share_leave() if it could not; or negative. [task] cancellation point */
int rs_share_enter(struct rs_loop *l, resha_listener *n, const resha_addr *asked);

/* The first one listens: others may join. 0; or negative, and n has left; its file is still its own. */
int rs_share_opened(resha_listener *n);

/* Before n closes its file, and once no operation is on it. Others go on; nobody else: it ends what they had in
 * common. Nothing for one that shares nothing. */
void rs_share_leave(resha_listener *n);

/* n goes without having taken a connection that the kernel may have told it alone of: the others look. */
void rs_share_pass_on(resha_listener *n);

/* Around an operation on the file, where there is one for all: in the simulated world. 0 or negative, and it is not
 * ours. [task] cancellation point */
int rs_share_turn(struct rs_loop *l, resha_listener *n);
void rs_share_turn_over(resha_listener *n);
void rs_share_turn_abort(resha_listener *n, int code); /* of n, if it waits for it */

/* In a forked child: what loops of the parent share is the parent's. */
void rs_share_forked(void);

#endif
