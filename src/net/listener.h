/* SPDX-License-Identifier: MIT */
#ifndef RS_LISTENER_H
#define RS_LISTENER_H

/* The inside of listeners, for the files of this folder. */

#include <resha/listener.h>

#include "core/shown.h"
#include "net/unix_file.h"

struct rs_member;
struct rs_server;

struct resha_listener {
        struct rs_loop *loop;
        struct rs_file *file; /* NULL: shut down, and nobody is inside resha_accept() */
        struct rs_op *op;     /* of the task inside */
        struct rs_wait *closer;
        struct rs_server *server; /* that accepts here, told at shutdown; then no more of it */
        resha_addr addr;
        struct rs_unix_file name; /* that we have made; of a queue that loops share: theirs */
        struct rs_member *member; /* of those who share it; NULL: nobody else does */
        struct rs_wait *turn;     /* of the task inside, while it waits for its turn with them */
        bool accepting;           /* a task is inside */
        bool shut, closing;
        struct rs_shown shown;
};

/* The listener of v is shut down, and may be freed. */
void rs_server_shut(struct rs_server *v);

/* resha_listener_adopt() on a loop. */
int rs_listener_adopt(struct rs_loop *l, int fd, resha_listener **ret_listener);

#endif
