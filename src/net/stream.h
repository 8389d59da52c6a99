/* SPDX-License-Identifier: MIT */
#ifndef RS_STREAM_H
#define RS_STREAM_H

/* The inside of streams, for the files of this folder. */

#include <resha/listener.h>
#include <resha/stream.h>

#include "core/core.h"

struct rs_server;

struct resha_stream {
        const resha_stream_ops *ops;
        void *impl;
        struct rs_loop *loop;
        struct rs_wait *closer; /* waits until nobody is inside */
        bool reading, writing;  /* a task is inside */
        bool closing;
        int read_failed;   /* why nothing more can be read: the connection's failure, or -ENOMEM if bytes were lost */
        int write_failed;  /* the same for writing */
        char *buffer;      /* NULL until a line, or a part that is put back, needs it */
        size_t start, end; /* of the bytes in it */
        size_t capacity;
        struct rs_server *server; /* that accepted it */
};

/* Waits until no task is inside a call of s. For an implementation that has just ended their waits. */
void rs_stream_wait_idle(resha_stream *s);

/* The listener of v is shut down, and may be freed. */
void rs_server_shut(struct rs_server *v);

/* The stream of a file of the backend: the stream is first, and the implementation is the rest. */
struct rs_file_stream {
        resha_stream stream;
        struct rs_file *file; /* NULL: not connected yet */
        struct rs_op *op[2];  /* that tasks wait for: read, write */
};

/* That of a socket, without a file. NULL: no memory. Freed with resha_free() until it has one. */
struct rs_file_stream *rs_socket_stream_new(struct rs_loop *l, int family);

struct resha_listener {
        struct rs_loop *loop;
        struct rs_file *file; /* NULL: shut down, and nobody is inside resha_accept() */
        struct rs_op *op;     /* of the task inside */
        struct rs_wait *closer;
        struct rs_server *server; /* that accepts here, told at shutdown; then no more of it */
        resha_addr addr;
        bool accepting; /* a task is inside */
        bool shut, closing;
};

#endif
