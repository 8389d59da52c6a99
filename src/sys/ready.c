/* SPDX-License-Identifier: MIT */
/* poll(2), for a look at descriptors that are not registered with a backend. */

#include "sys/ready.h"

#include <errno.h>

int rs_ready_wait(struct pollfd *fds, size_t n, int timeout_ms)
{
        int rc = poll(fds, (nfds_t)n, timeout_ms);

        if (rc >= 0)
                return rc;
        return errno == EINTR ? 0 : -errno;
}
