/* SPDX-License-Identifier: MIT */
/* Connecting, in memory: listeners, their backlogs, and who calls. Behaves as Linux does on loopback where a program
 * can tell: TCP waits while a backlog is full, a Unix socket is refused (backend.h has one answer for what cannot be
 * waited for). */

#include <errno.h>

#include <resha/alloc.h>

#include "io/sim_addr.h"
#include "io/sim_file.h"

enum { CLIENT_PORT_FIRST = 50000 };

static const int64_t GIVE_UP = INT64_C(127000000000); /* ns: six retries of a SYN */

/* ---- addresses where nobody answers, not even to refuse ---- */

struct sim_silent {
        struct rs_node node;
        resha_addr addr;
};

int rs_sim_silent(struct rs_backend *b, const resha_addr *addr)
{
        struct sim *s = sim_world(b);
        struct sim_silent *q = resha_malloc(sizeof *q);

        if (!q)
                return -ENOMEM;
        q->addr = *addr;
        rs_list_push(&s->silent, &q->node);
        return 0;
}

static bool is_same_host(const resha_addr *a, resha_addr b)
{
        if (sim_addr_family(a) != sim_addr_family(&b))
                return false;
        if (sim_addr_family(a) != AF_UNIX && sim_addr_port(a) == 0)
                sim_addr_set_port(&b, 0); /* all ports */
        return sim_addr_same(a, &b);
}

bool sim_is_silent(struct sim *s, const resha_addr *addr)
{
        for (struct rs_node *n = s->silent.first; n; n = n->next)
                if (is_same_host(&RS_CONTAINER(n, struct sim_silent, node)->addr, *addr))
                        return true;
        return false;
}

void sim_connect_done(struct sim *s)
{
        struct rs_node *n;

        while ((n = rs_list_pop(&s->silent)))
                resha_free(RS_CONTAINER(n, struct sim_silent, node));
}

/* ---- connecting ---- */

static uint16_t next_client_port(struct sim *s)
{
        uint16_t p = s->next_client_port;

        s->next_client_port = p == UINT16_MAX ? CLIENT_PORT_FIRST : (uint16_t)(p + 1);
        return p;
}

/* The host by which `remote` is reached is its own; nobody else has a name here. */
static void name_caller(struct sim_file *f, const resha_addr *remote)
{
        resha_addr local = *remote;

        if (f->family == AF_UNIX)
                return;
        sim_addr_set_port(&local, f->bound ? sim_addr_port(&f->local) : next_client_port(sim_of(f)));
        if (!f->bound || sim_addr_is_any(&f->local))
                f->local = local;
}

/* Connects f to a new end in the backlog of l. */
static int join(struct sim_file *f, struct sim_file *l, const resha_addr *addr)
{
        struct sim *s = sim_of(f);
        resha_addr remote = f->family == AF_UNIX ? l->local : sim_addr_reached(addr);

        if (f->bound && f->family != AF_UNIX && sim_name_connected(f, &remote))
                return -EADDRNOTAVAIL;
        struct sim_file *e = sim_file_new(s, f->family);
        if (!e)
                return -ENOMEM;
        if (sim_stream_init(e) < 0 || sim_stream_init(f) < 0) {
                sim_file_free(e);
                return -ENOMEM;
        }
        name_caller(f, &remote);
        e->local = f->remote = remote;
        e->remote = f->local;
        for (int i = 0; i <= RS_OPTION_LISTENING; i++)
                e->options[i] = l->options[i];
        e->peer = f;
        f->peer = e;
        sim_place(e, &l->backlog);
        l->backlog_count++;
        sim_poke(l, &l->in);
        return 0;
}

/* False: it waits, until it gives up. */
static bool await_nobody(struct sim_file *f, struct rs_op *op)
{
        struct sim *s = sim_of(f);

        if (f->give_up == 0)
                f->give_up = s->now + GIVE_UP;
        if (f->give_up > s->now) {
                sim_never(s, &f->out.timer);
                sim_at(s, &f->out.timer, f->give_up - s->now);
                return false;
        }
        f->give_up = 0;
        op->result = -ETIMEDOUT;
        return true;
}

/* 0, or why f cannot connect, whatever is there. */
static int refuses(const struct sim_file *f, const resha_addr *to)
{
        if (f->state == LISTENER)
                return f->family == AF_UNIX ? -EINVAL : -EISCONN;
        if (f->state != FRESH)
                return sim_is_pipe(f) ? -ENOTSOCK : -EISCONN;
        if (sim_addr_family(to) != f->family)
                return f->family == AF_UNIX ? -EINVAL : -EAFNOSUPPORT;
        return 0;
}

bool sim_connect(struct sim_file *f, struct rs_op *op)
{
        struct sim *s = sim_of(f);
        struct sim_file *l = NULL;
        int rc = refuses(f, op->addr);

        sim_unplace(f); /* it may have waited for room in a backlog */
        if (rc == 0 && sim_is_silent(s, op->addr))
                return await_nobody(f, op);
        if (rc == 0)
                rc = sim_name_listener(s, op->addr, &l);
        if (rc == 0 && sim_fires(s, RS_FAULT_REFUSED))
                rc = -ECONNREFUSED;
        if (rc == 0 && l->backlog_count >= l->backlog_max) {
                if (f->family == AF_UNIX) {
                        op->result = -ENOBUFS;
                        return true;
                }
                sim_place(f, &l->callers);
                return false;
        }
        op->result = rc < 0 ? rc : join(f, l, op->addr);
        return true;
}

/* ---- listening ---- */

bool sim_accept(struct sim_file *l, struct rs_op *op)
{
        if (l->state != LISTENER) {
                op->result = sim_is_pipe(l) ? -ENOTSOCK : l->state == DGRAM ? -EOPNOTSUPP : -EINVAL;
                return true;
        }
        if (rs_list_empty(&l->backlog))
                return false;
        if (sim_fires(sim_of(l), RS_FAULT_ACCEPT)) {
                op->result = -EMFILE;
                return true;
        }
        struct sim_file *e = sim_take_first(&l->backlog);
        l->backlog_count--;
        op->ret_file = &e->file;
        op->result = 0;
        sim_call_callers(l);
        return true;
}

int sim_listen(struct rs_file *file, int backlog)
{
        struct sim_file *f = file_of(file);

        if (f->state == OUTSIDE)
                return kn_listen(f->real, backlog);
        if (sim_is_pipe(f))
                return -ENOTSOCK;
        if (f->state == DGRAM)
                return -EOPNOTSUPP;
        if (f->state != FRESH || (f->family == AF_UNIX && !f->bound))
                return -EINVAL;
        if (!f->bound) {
                resha_addr any = sim_addr_none(f->family);
                int rc = sim_name_take(f, &any, 0);
                if (rc < 0)
                        return rc;
        }
        f->state = LISTENER;
        if (f->family != AF_UNIX && !sim_name_free(f)) {
                f->state = FRESH;
                return -EADDRINUSE;
        }
        f->backlog_max = backlog > 0 ? (size_t)backlog + 1 : 1; /* as Linux counts */
        return 0;
}

void sim_stop_listening(struct sim_file *l)
{
        struct sim_file *f;

        sim_name_drop(l); /* callers must not find it again */
        while ((f = sim_take_first(&l->backlog))) {
                sim_stream_hang_up(f, true);
                sim_file_free(f);
        }
        sim_call_callers(l);
}
