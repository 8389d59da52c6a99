/* SPDX-License-Identifier: MIT */
#ifndef RS_READY_H
#define RS_READY_H

#include <poll.h>
#include <stddef.h>

/* poll(2): number of ready ones, 0 when the time is over or a signal came, negative errno. n may be 0: sleeps. */
int rs_ready_wait(struct pollfd *fds, size_t n, int timeout_ms);

#endif
