/* SPDX-License-Identifier: MIT */
/* In place of the io_uring backend, where the library is built without liburing. */

#include <errno.h>
#include <stdio.h>

#include "io/backend.h"

int rs_uring_new(struct rs_backend **ret_backend, char why[static RS_WHY])
{
        (void)ret_backend;
        snprintf(why, RS_WHY, "this libresha was built without liburing");
        return -EOPNOTSUPP;
}
