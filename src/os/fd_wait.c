/* SPDX-License-Identifier: MIT */
/* Waiting for a descriptor of another library. The whole of it is one operation of the backend, which is
 * level-triggered and one shot, refuses a second waiter, and lets go of the descriptor before this returns. */

#include <resha/fd.h>

#include <poll.h>

#include "core/core.h"

int resha_fd_wait(int fd, short events)
{
        struct rs_op op = { .kind = RS_OP_POLL, .fd = fd, .events = events };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (events & ~(POLLIN | POLLOUT | POLLPRI | POLLRDHUP))
                return resha_fail_at(-EINVAL, NULL,
                                     "events 0x%x of descriptor %d: not among POLLIN, POLLOUT, POLLPRI, POLLRDHUP",
                                     (unsigned)(unsigned short)events, fd);
        rc = (int)rs_operation(l, &op, "descriptor");
        if (rc == -EBUSY)
                return resha_fail_at(rc, NULL,
                                     "descriptor %d: another task waits for it, or it is a stream's or listener's", fd);
        return rc;
}
