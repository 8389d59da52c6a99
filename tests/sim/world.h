/* SPDX-License-Identifier: MIT */
#ifndef WORLD_H
#define WORLD_H

/* For tests that ask a simulated world through the backend's operations alone: no loop, no tasks. */

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "io/backend.h"
#include "io/sim.h"
#include "test.h"

#define MS INT64_C(1000000)

static inline struct rs_backend *world(uint64_t seed)
{
        struct rs_backend *b;

        rs_alloc_watch(true);
        ASSERT_OK(rs_sim_new(seed, &b));
        return b;
}

static inline void end(struct rs_backend *b)
{
        ASSERT_EQ(b->pending, 0);
        b->ops->destroy(b);
}

static inline resha_addr at(const char *host, uint16_t port)
{
        resha_addr a = { { 0 } };
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = 0 };

        if (strcmp(host, "127.0.0.1") == 0)
                in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else if (strcmp(host, "10.0.0.1") == 0)
                in.sin_addr.s_addr = htonl(0x0a000001);
        memcpy(&a, &in, sizeof in);
        a._[16] = sizeof in;
        return a;
}

/* "" is unnamed, "@x" abstract. */
static inline resha_addr unix_at(const char *name)
{
        resha_addr a = { { 0 } };
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        size_t size = strlen(name);

        if (size > 0)
                memcpy(un.sun_path, name, size);
        if (name[0] == '@')
                un.sun_path[0] = '\0';
        memcpy(&a, &un, sizeof un);
        a._[16] = offsetof(struct sockaddr_un, sun_path) + size + (name[0] != '@' && size > 0);
        return a;
}

static inline uint16_t port_of(const resha_addr *a)
{
        struct sockaddr_in in;

        memcpy(&in, a, sizeof in);
        return ntohs(in.sin_port);
}

static inline bool submit(struct rs_backend *b, struct rs_op *op)
{
        return b->ops->submit(b, op);
}

static inline void drain(struct rs_backend *b)
{
        struct rs_node *n;

        while ((n = rs_list_pop(&b->done)))
                ASSERT_EQ(RS_CONTAINER(n, struct rs_op, link)->state, RS_OP_DONE);
}

/* Lets the world go on until the operation is done. */
static inline ssize_t finish(struct rs_backend *b, struct rs_op *op)
{
        while (op->state == RS_OP_PENDING) {
                ASSERT_OK(b->ops->wait(b, INT64_MAX));
                drain(b);
        }
        ASSERT_EQ(op->state, RS_OP_DONE);
        return op->result;
}

static inline ssize_t run(struct rs_backend *b, struct rs_op *op)
{
        submit(b, op);
        return finish(b, op);
}

#define READ(f, buffer, n) ((struct rs_op){ .kind = RS_OP_READ, .file = (f), .buf = (buffer), .size = (n) })
#define WRITE(f, text, n) \
        ((struct rs_op){ .kind = RS_OP_WRITE, .file = (f), .buf = (void *)(uintptr_t)(text), .size = (n) })

static inline ssize_t read_op(struct rs_backend *b, struct rs_file *f, void *buf, size_t n)
{
        struct rs_op op = READ(f, buf, n);

        return run(b, &op);
}

static inline ssize_t write_op(struct rs_backend *b, struct rs_file *f, const void *text, size_t n)
{
        struct rs_op op = WRITE(f, text, n);

        return run(b, &op);
}

static inline struct rs_file *new_socket(struct rs_backend *b, int family, int type)
{
        struct rs_file *f;

        ASSERT_OK(b->ops->socket(b, family, type, &f));
        return f;
}

static inline ssize_t connect_op(struct rs_backend *b, struct rs_file *f, const resha_addr *to)
{
        struct rs_op op = { .kind = RS_OP_CONNECT, .file = f, .addr = to };

        return run(b, &op);
}

static inline struct rs_file *accept_op(struct rs_backend *b, struct rs_file *l)
{
        struct rs_op op = { .kind = RS_OP_ACCEPT, .file = l };

        ASSERT_EQ(run(b, &op), 0);
        return op.ret_file;
}

static inline int world_listen(struct rs_backend *b, const resha_addr *addr, int backlog, struct rs_file **ret_file)
{
        struct rs_file *f = NULL;
        int rc = b->ops->socket(b, AF_INET, SOCK_STREAM, &f);

        *ret_file = NULL;
        if (rc < 0)
                return rc;
        rc = b->ops->bind(f, addr, RS_BIND_REUSE_ADDR);
        if (rc == 0)
                rc = b->ops->listen(f, backlog);
        if (rc == 0)
                *ret_file = f;
        else
                b->ops->file_close(f);
        return rc;
}

/* A listener and both ends of a connection. */
struct pair {
        struct rs_file *listener, *client, *server;
};

static inline struct pair join(struct rs_backend *b)
{
        struct pair p;
        resha_addr any = at("127.0.0.1", 0), real;

        ASSERT_OK(world_listen(b, &any, 16, &p.listener));
        ASSERT_OK(b->ops->file_addr(p.listener, false, &real));
        ASSERT_OK(b->ops->socket(b, AF_INET, SOCK_STREAM, &p.client));
        ASSERT_EQ(connect_op(b, p.client, &real), 0);
        p.server = accept_op(b, p.listener);
        return p;
}

static inline void close_all(struct rs_backend *b, struct pair *p)
{
        if (p->client)
                b->ops->file_close(p->client);
        if (p->server)
                b->ops->file_close(p->server);
        if (p->listener)
                b->ops->file_close(p->listener);
        end(b);
}

static inline ssize_t try_connect(struct rs_backend *b, const char *host, uint16_t port)
{
        resha_addr to = at(host, port);
        struct rs_file *f;

        ASSERT_OK(b->ops->socket(b, AF_INET, SOCK_STREAM, &f));
        ssize_t rc = connect_op(b, f, &to);
        b->ops->file_close(f);
        return rc;
}

#endif
