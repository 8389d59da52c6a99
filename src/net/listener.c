/* SPDX-License-Identifier: MIT */
/* Listeners. Shutting one down closes its socket as soon as no task is inside resha_accept(), so that new clients are
 * refused at once instead of waiting in a queue that nobody looks at. The file of a Unix socket goes before the socket
 * does: while that is open, no other file can be taken for it. How listeners are made: listen.c. */

#include <errno.h>

#include <resha/alloc.h>

#include "net/listener.h"
#include "net/share.h"
#include "net/stream.h"

static int accept_failed(const resha_listener *n, int code)
{
        char text[RESHA_ADDR_TEXT_MAX];

        if (code == -ECANCELED)
                return code;
        return resha_fail_at(code, NULL, "accept on %s: %s", resha_addr_format(&n->addr, text, sizeof text),
                             resha_strerror(code));
}

/* ---- the end ---- */

static void close_file(resha_listener *n)
{
        rs_share_leave(n);
        if (n->file)
                n->loop->backend->ops->file_close(n->file);
        rs_shown_no_fd(&n->shown);
        n->file = NULL;
}

void resha_listener_shutdown(resha_listener *n)
{
        if (n->shut || n->loop != rs_loop_current)
                return;
        n->shut = true;
        rs_unix_file_remove(&n->name);
        if (n->op)
                rs_operation_abort(n->loop, n->op, -ESHUTDOWN);
        else if (n->accepting)
                rs_share_turn_abort(n, -ESHUTDOWN);
        else
                close_file(n);
        if (n->server)
                rs_server_shut(n->server);
        n->server = NULL;
}

void resha_listener_close(resha_listener *n)
{
        struct rs_loop *l;

        if (!n || n->closing)
                return;
        int rc = rs_enter_shielded(&l);
        if (n->loop != rs_loop_current || (rc < 0 && n->accepting))
                return; /* as resha_stream_close() */
        n->closing = true;
        resha_listener_shutdown(n);
        while (n->accepting) {
                struct rs_wait w = { .what = "close", .object = n };
                n->closer = &w;
                rs_wait(n->loop, &w);
        }
        close_file(n);
        n->loop->open--;
        rs_shown_remove(&n->shown);
        resha_free(n);
}

void resha_listener_closep(resha_listener **n)
{
        resha_listener_close(*n);
        *n = NULL;
}

/* ---- accepting ---- */

static void accept_leave(resha_listener *n, int rc)
{
        n->accepting = false;
        if (RS_UNLIKELY(rc < 0 && n->member))
                rs_share_pass_on(n);
        if (n->shut)
                close_file(n);
        if (n->closer) {
                struct rs_wait *w = n->closer;
                n->closer = NULL;
                rs_wake(w, 0);
        }
}

static int accept_next(struct rs_loop *l, resha_listener *n, resha_stream **ret_stream)
{
        struct rs_op op = { .kind = RS_OP_ACCEPT, .file = n->file };
        /* Before: a connection must not be lost for lack of memory. */
        struct rs_file_stream *t = rs_socket_stream_new(l, resha_addr_family(&n->addr));

        if (!t)
                return -ENOMEM;
        n->op = &op;
        int rc = (int)rs_operation(l, &op, "accept");
        n->op = NULL;
        if (rc < 0) {
                resha_free(t);
                return rc;
        }
        t->file = op.ret_file;
        rs_stream_begin(&t->stream, t->file->fd);
        *ret_stream = &t->stream;
        return 1;
}

/* Told by another loop to look again, it begins anew. */
static __attribute__((noinline)) int accept_shared(struct rs_loop *l, resha_listener *n, resha_stream **ret_stream)
{
        int rc;

        do {
                rc = rs_share_turn(l, n);
                if (rc < 0)
                        return rc;
                rc = accept_next(l, n, ret_stream);
                rs_share_turn_over(n);
                if (rc != -EAGAIN)
                        return rc;
                rc = n->shut ? -ESHUTDOWN : rs_enter(&l);
        } while (rc == 0);
        return rc;
}

int resha_accept(resha_listener *n, resha_stream **ret_stream)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (n->loop != l)
                return accept_failed(n, -EPERM);
        if (n->shut)
                return rs_complete(l, 0);
        if (n->accepting)
                return accept_failed(n, -EBUSY);
        n->accepting = true;
        rc = n->member ? accept_shared(l, n, ret_stream) : accept_next(l, n, ret_stream);
        accept_leave(n, rc);
        if (rc > 0)
                RS_OPENED_HERE(&(*ret_stream)->shown);
        if (rc == -ESHUTDOWN)
                return 0;
        return rc < 0 ? accept_failed(n, rc) : rc;
}

int resha_listener_addr(resha_listener *n, resha_addr *ret_addr)
{
        *ret_addr = n->addr;
        return 0;
}
