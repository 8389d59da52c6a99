/* SPDX-License-Identifier: MIT */
/* Servers: a task that accepts, and a task for each connection.
 *
 *     caller's task   group "front" ---- accept task          cancelled from outside at once
 *                       shield                                nothing reaches in
 *                         group "handlers" ---- connections   drained with grace, then cancelled
 *
 * The shield lets the handlers go on when the caller is cancelled; the accept task stands outside of it. The caller
 * waits for the accept task, and then drains.
 *
 * A connection is accepted only when there is room for it, so those above the limit stay in the kernel's queue. Its
 * handler gets the thread before the next one is accepted: it need not wait until a whole burst is, and another process
 * that accepts from the same queue gets its share of it. When descriptors, memory or stacks run out, the server waits:
 * a little longer each time, and not longer than until a connection ends. A connection that was accepted by then is
 * kept. What a handler returns is nobody's business but its own: peers that break off are daily bread, and a server
 * that reports them reports nothing else. A handler that has something to say says it. */

#include <errno.h>

#include "net/listener.h"
#include "net/stream.h"

enum {
        CONNECTIONS_DEFAULT = 1000,
        PAUSE_FIRST_MS = 5,
        PAUSE_DOUBLINGS = 5, /* 160 ms */
};

struct rs_server {
        resha_listener *listener; /* NULL once it is shut down: then it may be gone before the server is */
        int (*fn)(resha_stream *stream, void *arg);
        void *arg;
        resha_group *handlers;
        resha_event changed; /* a connection has ended, or the listener is shut down */
        size_t live, most;
        const void *called_from;
        bool abort_failed;
        int64_t quiet_until; /* no report of a shortage before */
};

static void hang_up(struct rs_server *v, resha_stream *s, bool failed)
{
        if (failed && v->abort_failed)
                resha_stream_abort(s);
        s->server = NULL;
        resha_stream_close(s);
        v->live--;
}

static int connection(void *arg)
{
        resha_stream *s = arg;
        struct rs_server *v = s->server;
        int rc = v->fn(s, v->arg);

        hang_up(v, s, rc < 0);
        resha_event_set(&v->changed);
        return rc;
}

static int wait_changed(void *arg)
{
        return resha_event_wait(arg);
}

/* Nobody else can see it: the server goes on. */
static void report_shortage(struct rs_server *v, int code)
{
        struct rs_loop *l = rs_loop_current;
        int64_t now = resha_now().ns;

        if (now < v->quiet_until)
                return;
        v->quiet_until = now + RESHA_S(1).ns;
        rs_report(l, RESHA_REPORT_SHORTAGE, code, l->current, "%s; it pauses, and goes on when there is room",
                  resha_error_of(code)->text);
}

/* After the n-th failure in a row for want of something. */
static int pause_accepting(struct rs_server *v, unsigned n, int code)
{
        unsigned doublings = n < PAUSE_DOUBLINGS ? n : PAUSE_DOUBLINGS;

        if (n == 0)
                report_shortage(v, code);
        resha_event_clear(&v->changed);
        int rc = resha_timeout(RESHA_MS(PAUSE_FIRST_MS << doublings), wait_changed, &v->changed);
        return rc == -ETIME ? 0 : rc;
}

static bool may_pass(int rc)
{
        switch (rc) {
        case -EMFILE:
        case -ENFILE:
        case -ENOBUFS:
        case -ENOMEM:
        case -EAGAIN:
        case -ECONNABORTED: return true;
        default: return false;
        }
}

static int wait_for_room(struct rs_server *v)
{
        int rc = 0;

        while (rc == 0 && v->live >= v->most && v->listener) {
                resha_event_clear(&v->changed);
                rc = resha_event_wait(&v->changed);
        }
        return rc;
}

/* The connection's own task; s is closed if there cannot be one before the server ends. */
static int start(struct rs_server *v, resha_stream *s)
{
        unsigned misses = 0;
        int rc;

        s->server = v;
        v->live++;
        while ((rc = resha_spawn_at(v->handlers, connection, s, "connection", NULL)) < 0) {
                if (may_pass(rc))
                        rc = pause_accepting(v, misses++, rc);
                if (rc < 0) {
                        hang_up(v, s, true);
                        return rc;
                }
        }
        return 0;
}

static int accept_all(struct rs_server *v)
{
        unsigned misses = 0;

        for (;;) {
                resha_stream *s;
                int rc = wait_for_room(v);
                if (rc < 0)
                        return rc;
                rc = v->listener ? resha_accept(v->listener, &s) : 0;
                if (rc > 0)
                        s->shown.opened_by = v->called_from;
                if (rc == 0)
                        return 0;
                if (rc > 0) {
                        misses = 0;
                        rc = start(v, s);
                        if (rc == 0)
                                rc = resha_yield();
                } else if (may_pass(rc)) {
                        rc = pause_accepting(v, misses++, rc);
                }
                if (rc < 0)
                        return rc;
        }
}

/* Whatever ends it, nobody will look at the listener's queue any more: clients are refused from now on. */
static int accept_task(void *arg)
{
        struct rs_server *v = arg;
        int rc = accept_all(v);

        if (v->listener)
                resha_listener_shutdown(v->listener);
        return rc;
}

void rs_server_shut(struct rs_server *v)
{
        v->listener = NULL;
        resha_event_set(&v->changed);
}

/* Nobody passes its failure on: a debugging run tells of it. */
static void handler_ended(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e)
{
        (void)g, (void)rc;
        if (RS_UNLIKELY(e != NULL) && rs_loop_current->debug)
                rs_report_lost(rs_loop_current, t, e,
                               "resha_serve() passes over failures of connections; let the handler tell of them");
}

static int serve_shielded(struct rs_server *v, resha_task *acceptor, resha_duration grace)
{
        RESHA_SCOPE(shield);
        RESHA_GROUP(handlers);

        resha_shield_begin(&shield, RESHA_FOREVER);
        resha_group_begin(&handlers, &(resha_group_opts){ .keep_going = true });
        rs_group_of(&handlers)->child_done = handler_ended;
        v->handlers = &handlers;
        int rc = resha_task_wait(acceptor, NULL);
        if (rc == 0)
                rc = resha_group_drain(&handlers, grace);
        if (rc == -ETIME)
                rc = 0; /* the grace is over */
        if (resha_group_end(&handlers, rc) < 0)
                rc = 0; /* of a handler */
        return resha_scope_end(&shield, rc);
}

int resha_serve(resha_listener *n, int (*fn)(resha_stream *stream, void *arg), void *arg, const resha_serve_opts *opts)
{
        static const resha_serve_opts defaults;
        const resha_serve_opts *o = opts ? opts : &defaults;
        struct rs_server v = { .listener = n, .fn = fn, .arg = arg, .called_from = __builtin_return_address(0) };
        resha_task acceptor = { 0 };
        RESHA_GROUP(front);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == -ECANCELED && n->loop == l && !n->server)
                resha_listener_shutdown(n); /* as a later cancel would */
        if (rc < 0)
                return rc;
        if (!rs_reserved_zero(o->_reserved))
                return resha_fail_at(-EINVAL, NULL, "a reserved word of serve options is not zero");
        if (n->loop != l || n->server)
                return resha_fail_at(n->server ? -EBUSY : -EPERM, NULL, "the listener is %s",
                                     n->server ? "served already: one resha_serve() at a time" : "one of another loop");
        v.abort_failed = o->abort_failed;
        v.most = o->max_connections ? o->max_connections : CONNECTIONS_DEFAULT;
        if (n->shut)
                return rs_complete(l, 0);
        n->server = &v;
        resha_group_begin(&front, NULL);
        rc = resha_spawn_opt(&front, accept_task, &v, &(resha_spawn_opts){ .task = &acceptor, .name = "accept" });
        if (rc == 0)
                rc = serve_shielded(&v, &acceptor, o->grace);
        rc = resha_group_end(&front, rc);
        if (v.listener)
                v.listener->server = NULL;
        return rc;
}
