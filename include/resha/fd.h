/* SPDX-License-Identifier: MIT */
#ifndef RESHA_FD_H
#define RESHA_FD_H

/* Waiting for a descriptor of another library. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* Waits until `fd` has one of `events` (POLLIN, POLLOUT, POLLPRI, POLLRDHUP), POLLERR or POLLHUP. Level-triggered; the
 * descriptor is borrowed: it must stay open until the call returns. One task at a time for each descriptor, and none
 * for that of a stream or listener of this loop (-EBUSY). A descriptor that poll(2) cannot wait for, as a regular
 * file, is always ready.
 * The ready mask, above 0; -ECANCELED, -EBADF, -EBUSY, -ENOMEM. [task] cancellation point */
RESHA_API RESHA_MUST int resha_fd_wait(int fd, short events);

RESHA_END_DECLS
#endif
