/* SPDX-License-Identifier: MIT */
/* TCP in memory: one machine that has every address. Behaves as Linux does on loopback where a program can tell.
 *
 * An end is FRESH, then a LISTENER or, once connected, a STREAM:
 *
 *     FRESH --connect finds a listener: join()--> STREAM --the peer aborts, or writes meet nobody: end_reset()--> dead
 *     listen() makes a LISTENER; join() makes the other STREAM and puts it into the listener's backlog for accept
 *
 * Each end has two sides, in (read, accept) and out (write, connect), each with at most one operation and one
 * timer. Whatever could let a waiting operation go on pokes its side: the timer is set to now, and its firing,
 * inside wait(), serves the operation, or leaves it where it is. */

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include <resha/alloc.h>

#include "io/sim_addr.h"
#include "io/sim_file.h"

enum { PORT_FIRST = 40000, CLIENT_PORT_FIRST = 50000 };

static void place(struct sim_file *f, struct rs_list *where)
{
        assert(!f->where);
        f->where = where;
        rs_list_push(where, &f->place);
}

static void unplace(struct sim_file *f)
{
        if (f->where)
                rs_list_remove(f->where, &f->place);
        f->where = NULL;
}

static struct sim_file *take_first(struct rs_list *where)
{
        struct sim_file *f = where->first ? RS_CONTAINER(where->first, struct sim_file, place) : NULL;

        if (f)
                unplace(f);
        return f;
}

/* ---- ports ---- */

static struct sim_file *find_listener(struct sim *s, const resha_addr *to)
{
        for (struct rs_node *n = s->listeners.first; n; n = n->next) {
                struct sim_file *f = RS_CONTAINER(n, struct sim_file, place);
                if (sim_addr_port(&f->local) == sim_addr_port(to) && sim_addr_covers(&f->local, to))
                        return f;
        }
        return NULL;
}

static bool port_taken(struct sim *s, const resha_addr *addr)
{
        for (struct rs_node *n = s->listeners.first; n; n = n->next) {
                struct sim_file *f = RS_CONTAINER(n, struct sim_file, place);
                if (sim_addr_port(&f->local) == sim_addr_port(addr) &&
                    (sim_addr_covers(&f->local, addr) || sim_addr_covers(addr, &f->local)))
                        return true;
        }
        return false;
}

static uint16_t next_in(uint16_t *port, uint16_t first)
{
        uint16_t p = *port;

        *port = p == UINT16_MAX ? first : (uint16_t)(p + 1);
        return p;
}

/* Gives `addr` a free port if it has none. */
static int take_port(struct sim *s, resha_addr *addr)
{
        if (sim_addr_port(addr) != 0)
                return port_taken(s, addr) ? -EADDRINUSE : 0;
        for (int i = 0; i <= UINT16_MAX - PORT_FIRST; i++) {
                sim_addr_set_port(addr, next_in(&s->next_port, PORT_FIRST));
                if (!port_taken(s, addr))
                        return 0;
        }
        return -EADDRINUSE;
}

/* ---- connecting ---- */

static void on_turn(struct rs_timer *t);

static struct sim_file *file_new(struct sim *s, int family)
{
        struct sim_file *f = resha_calloc(1, sizeof *f);

        if (!f)
                return NULL;
        f->file.backend = &s->base;
        f->file.fd = -1;
        f->family = family;
        f->in = (struct sim_side){ .file = f, .timer.fire = on_turn };
        f->out = (struct sim_side){ .file = f, .timer.fire = on_turn };
        rs_list_push(&s->files, &f->node);
        return f;
}

static void file_free(struct sim_file *f)
{
        struct sim *s = sim_of(f);

        sim_never(s, &f->in.timer);
        sim_never(s, &f->out.timer);
        sim_never(s, &f->arrival);
        sim_never(s, &f->reset);
        unplace(f);
        rs_list_remove(&s->files, &f->node);
        resha_free(f->ring);
        resha_free(f);
}

/* Connects f to a new end in the backlog of l. */
static int join(struct sim_file *f, struct sim_file *l, const resha_addr *addr)
{
        struct sim *s = sim_of(f);
        struct sim_file *e = file_new(s, f->family);

        if (!e)
                return -ENOMEM;
        if (sim_stream_init(e) < 0 || sim_stream_init(f) < 0) {
                file_free(e);
                return -ENOMEM;
        }
        e->local = f->remote = sim_addr_reached(addr);
        if (!f->bound) {
                f->local = f->remote;
                sim_addr_set_port(&f->local, next_in(&s->next_client_port, CLIENT_PORT_FIRST));
        }
        e->remote = f->local;
        e->peer = f;
        f->peer = e;
        place(e, &l->backlog);
        l->backlog_count++;
        sim_poke(l, &l->in);
        return 0;
}

static bool serve_connect(struct sim_file *f, struct rs_op *op)
{
        struct sim_file *l = NULL;

        unplace(f); /* it may have waited for room in a backlog */
        if (f->state != FRESH)
                op->result = f->state == STREAM ? -EISCONN : -EINVAL;
        else if (sim_addr_family(op->addr) != f->family)
                op->result = -EAFNOSUPPORT;
        else if (!(l = find_listener(sim_of(f), op->addr)) || sim_fires(sim_of(f), RS_FAULT_REFUSED))
                op->result = -ECONNREFUSED;
        else if (l->backlog_count >= l->backlog_max) {
                place(f, &l->callers);
                return false;
        } else
                op->result = join(f, l, op->addr);
        return true;
}

static bool serve_accept(struct sim_file *l, struct rs_op *op)
{
        struct sim_file *e, *caller;

        if (l->state != LISTENER) {
                op->result = -EINVAL;
                return true;
        }
        if (rs_list_empty(&l->backlog))
                return false;
        if (sim_fires(sim_of(l), RS_FAULT_ACCEPT)) {
                op->result = -EMFILE;
                return true;
        }
        e = take_first(&l->backlog);
        l->backlog_count--;
        op->ret_file = &e->file;
        op->result = 0;
        while ((caller = take_first(&l->callers)))
                sim_poke(caller,
                         &caller->out); /* all: the first may be cancelled before its turn; the others queue up again */
        return true;
}

/* ---- operations ---- */

static bool serve(struct sim_file *f, struct rs_op *op)
{
        switch (op->kind) {
        case RS_OP_READ: return sim_stream_read(f, op);
        case RS_OP_WRITE: return sim_stream_write(f, op);
        case RS_OP_ACCEPT: return serve_accept(f, op);
        case RS_OP_CONNECT: return serve_connect(f, op);
        case RS_OP_WRITE_VEC:
        case RS_OP_SEND_FILE:
        case RS_OP_RECEIVE:
        case RS_OP_SEND: op->result = -EOPNOTSUPP; return true;
        case RS_OP_POLL: break; /* has no file */
        }
        op->result = -EINVAL;
        return true;
}

static struct sim_side *side_of(struct rs_op *op)
{
        struct sim_file *f = file_of(op->file);

        return op->kind == RS_OP_READ || op->kind == RS_OP_ACCEPT ? &f->in : &f->out;
}

/* The turn of a waiting operation has come. */
static void on_turn(struct rs_timer *t)
{
        struct sim_side *side = RS_CONTAINER(t, struct sim_side, timer);
        struct rs_op *op = side->op;

        if (op && serve(side->file, op)) {
                side->op = NULL;
                rs_backend_done(side->file->file.backend, op, op->result);
        }
}

bool sim_net_submit(struct sim *s, struct rs_op *op)
{
        struct sim_side *side = side_of(op);
        int64_t delay = sim_delay(s, op->kind == RS_OP_CONNECT ? RS_FAULT_LATENCY : RS_FAULT_STALL);

        assert(!side->op);
        if (delay == 0 && serve(side->file, op)) {
                op->state = RS_OP_DONE;
                return true;
        }
        side->op = op;
        op->state = RS_OP_PENDING;
        s->base.pending++;
        if (delay != 0)
                sim_at(s, &side->timer, delay);
        return false;
}

void sim_net_cancel(struct sim *s, struct rs_op *op)
{
        struct sim_side *side = side_of(op);

        assert(side->op == op);
        side->op = NULL;
        sim_never(s, &side->timer);
        if (op->kind == RS_OP_CONNECT)
                unplace(side->file);
}

int sim_socket(struct rs_backend *b, int family, int type, struct rs_file **ret_file)
{
        struct sim *s = (struct sim *)(void *)b;
        struct sim_file *f;

        if (sim_nth(s))
                return -EMFILE;
        if ((family != AF_INET && family != AF_INET6) || type != SOCK_STREAM)
                return -EAFNOSUPPORT;
        f = file_new(s, family);
        if (!f)
                return -ENOMEM;
        *ret_file = &f->file;
        return 0;
}

int sim_bind(struct rs_file *file, const resha_addr *addr, unsigned flags)
{
        struct sim_file *f = file_of(file);
        resha_addr local = *addr;

        (void)flags; /* one machine, where no port is still in use by what was closed */
        if (sim_nth(sim_of(f)))
                return -ENOBUFS;
        if (f->state != FRESH || f->bound)
                return -EINVAL;
        if (sim_addr_family(addr) != f->family)
                return -EAFNOSUPPORT;
        int rc = take_port(sim_of(f), &local);
        if (rc < 0)
                return rc;
        f->local = local;
        f->bound = true;
        return 0;
}

int sim_listen(struct rs_file *file, int backlog)
{
        struct sim_file *f = file_of(file);

        if (f->state != FRESH)
                return -EINVAL;
        if (port_taken(sim_of(f), &f->local))
                return -EADDRINUSE;
        f->state = LISTENER;
        f->backlog_max = backlog > 0 ? (size_t)backlog + 1 : 1; /* as Linux counts */
        place(f, &sim_of(f)->listeners);
        return 0;
}

int sim_file_addr(struct rs_file *file, bool peer, resha_addr *ret_addr)
{
        struct sim_file *f = file_of(file);

        if (f->state == FRESH || (peer && (f->state != STREAM || f->dead)))
                return -ENOTCONN;
        *ret_addr = peer ? f->remote : f->local;
        return 0;
}

int sim_file_shutdown(struct rs_file *file)
{
        return sim_stream_shutdown(file_of(file));
}

static void stop_listening(struct sim_file *l)
{
        struct sim_file *f;

        unplace(l); /* callers must not find it again */
        while ((f = take_first(&l->backlog))) {
                sim_stream_hang_up(f, true);
                file_free(f);
        }
        while ((f = take_first(&l->callers)))
                sim_poke(f, &f->out);
}

void sim_file_close(struct rs_file *file)
{
        struct sim_file *f = file_of(file);

        assert(!f->in.op && !f->out.op);
        if (f->state == LISTENER)
                stop_listening(f);
        else if (f->state == STREAM)
                sim_stream_hang_up(f, file->reset);
        file_free(f);
}

void sim_net_done(struct sim *s)
{
        struct rs_node *n;

        while ((n = s->files.first)) {
                struct sim_file *f = RS_CONTAINER(n, struct sim_file, node);
                f->where = NULL; /* the list may be gone */
                file_free(f);
        }
}
