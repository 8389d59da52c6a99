/* SPDX-License-Identifier: MIT */
#ifndef RS_DATAGRAM_H
#define RS_DATAGRAM_H

/* The inside of datagram sockets, for their two files. */

#include <resha/datagram.h>

#include "core/core.h"
#include "net/unix_file.h"

struct resha_dgram {
        struct rs_loop *loop;
        struct rs_file *file;
        struct rs_op *op[2];     /* that tasks wait for */
        bool inside[2];          /* a task is */
        struct rs_wait *pausing; /* the sender's */
        struct rs_wait *closer;  /* waits until nobody is inside */
        bool closing;
        bool connected;
        bool errors;    /* are queued */
        bool error_due; /* the queue has to be looked at before waiting */
        resha_addr peer;
        struct rs_unix_file name; /* to be removed with it */
        struct rs_shown shown;
};

/* Its file, if it has one, and the name of that. */
void rs_dgram_close_file(resha_dgram *d);

#endif
