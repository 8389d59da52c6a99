/* SPDX-License-Identifier: MIT */
#ifndef RS_DELAY_H
#define RS_DELAY_H

struct rs_loop;

/* In the simulated world: the time that a thread would take to come to a job or a look-up that is done inline. A random
 * one, so that seeds try every order; with seed 0 only a yield. `what` is static. The caller has entered. 0 or
 * -ECANCELED. Cancellation point. */
int rs_delay(struct rs_loop *l, const char *what);

#endif
