/* SPDX-License-Identifier: MIT */
/* Files in memory, and the operations on them. Behaves as Linux does where a program can tell.
 *
 * A socket for streams is FRESH, then a LISTENER or, once connected, a STREAM; ends of pairs and pipes are STREAMs from
 * their start:
 *
 *     FRESH --connect finds a listener: join()--> STREAM --the peer aborts, or writes meet nobody: end_reset()--> dead
 *     listen() makes a LISTENER; join() makes the other STREAM and puts it into the listener's backlog for accept
 *
 * Each file has two sides, in (read, receive, accept) and out (the others), each with at most one operation and one
 * timer. Whatever could let a waiting operation go on pokes its side: the timer is set to now, and its firing, inside
 * wait(), serves the operation, or leaves it where it is. */

#include <assert.h>
#include <errno.h>

#include <resha/alloc.h>

#include "io/sim_addr.h"
#include "io/sim_file.h"

void sim_place(struct sim_file *f, struct rs_list *where)
{
        assert(!f->where);
        f->where = where;
        rs_list_push(where, &f->place);
}

void sim_unplace(struct sim_file *f)
{
        if (f->where)
                rs_list_remove(f->where, &f->place);
        f->where = NULL;
}

struct sim_file *sim_take_first(struct rs_list *where)
{
        struct sim_file *f = where->first ? RS_CONTAINER(where->first, struct sim_file, place) : NULL;

        if (f)
                sim_unplace(f);
        return f;
}

void sim_call_callers(struct sim_file *f)
{
        struct sim_file *caller;

        while ((caller = sim_take_first(&f->callers)))
                sim_poke(caller, &caller->out);
}

/* ---- operations ---- */

static bool serve_stream(struct sim_file *f, struct rs_op *op)
{
        switch (op->kind) {
        case RS_OP_READ: return sim_stream_read(f, op);
        case RS_OP_WRITE: return sim_stream_write(f, op);
        case RS_OP_WRITE_VEC: return sim_stream_write_vec(f, op);
        case RS_OP_SEND_FILE: return sim_stream_send_file(f, op);
        case RS_OP_ACCEPT: return sim_accept(f, op);
        case RS_OP_CONNECT: return sim_connect(f, op);
        default: op->result = sim_is_pipe(f) ? -ENOTSOCK : -EOPNOTSUPP; return true;
        }
}

static bool serve_dgram(struct sim_file *f, struct rs_op *op)
{
        switch (op->kind) {
        case RS_OP_READ: return sim_dgram_read(f, op);
        case RS_OP_WRITE: return sim_dgram_write(f, op);
        case RS_OP_RECEIVE: return sim_dgram_receive(f, op);
        case RS_OP_SEND: return sim_dgram_send(f, op);
        case RS_OP_CONNECT: return sim_dgram_connect(f, op);
        default: op->result = -EOPNOTSUPP; return true;
        }
}

static bool serve(struct sim_file *f, struct rs_op *op)
{
        return f->state == DGRAM ? serve_dgram(f, op) : serve_stream(f, op);
}

static struct sim_side *side_of(struct rs_op *op)
{
        struct sim_file *f = file_of(op->file);

        return kn_direction(op) == KN_READING ? &f->in : &f->out;
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

        assert(!side->op);
        if (side->file->state == OUTSIDE)
                return sim_outside_submit(side->file, op);
        int64_t delay = sim_delay(s, op->kind == RS_OP_CONNECT ? RS_FAULT_LATENCY : RS_FAULT_STALL);
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

        if (side->file->state == OUTSIDE) {
                sim_outside_cancel(side->file, op);
                return;
        }
        assert(side->op == op);
        side->op = NULL;
        side->file->give_up = 0;
        sim_never(s, &side->timer);
        if (kn_direction(op) == KN_WRITING)
                sim_unplace(side->file);
}

/* ---- files ---- */

struct sim_file *sim_file_new(struct sim *s, int family)
{
        struct sim_file *f = resha_calloc(1, sizeof *f);

        if (!f)
                return NULL;
        f->file.backend = &s->base;
        f->file.fd = -1;
        f->file.kind = family == AF_UNSPEC ? RS_FILE_PIPE : RS_FILE_SOCKET;
        f->family = family;
        f->local = f->remote = sim_addr_none(family);
        f->in = (struct sim_side){ .file = f, .timer.fire = on_turn };
        f->out = (struct sim_side){ .file = f, .timer.fire = on_turn };
        rs_list_push(&s->files, &f->node);
        return f;
}

void sim_file_free(struct sim_file *f)
{
        struct sim *s = sim_of(f);

        sim_never(s, &f->in.timer);
        sim_never(s, &f->out.timer);
        sim_never(s, &f->arrival);
        sim_never(s, &f->reset);
        sim_dgram_drop(f);
        sim_name_drop(f);
        sim_unplace(f);
        rs_list_remove(&s->files, &f->node);
        resha_free(f->ring);
        resha_free(f);
}

int sim_socket(struct rs_backend *b, int family, int type, struct rs_file **ret_file)
{
        struct sim *s = sim_world(b);

        if (sim_nth(s))
                return -EMFILE;
        if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
                return -EAFNOSUPPORT;
        if (type != SOCK_STREAM && type != SOCK_DGRAM)
                return -ESOCKTNOSUPPORT;
        struct sim_file *f = sim_file_new(s, family);
        if (!f)
                return -ENOMEM;
        if (type == SOCK_DGRAM)
                sim_dgram_init(f);
        *ret_file = &f->file;
        return 0;
}

/* Two that know nobody else. */
static int make_dgrams(struct sim *s, struct rs_file *ret_two[2])
{
        struct sim_file *first = sim_file_new(s, AF_UNIX), *second = first ? sim_file_new(s, AF_UNIX) : NULL;

        if (!second) {
                if (first)
                        sim_file_free(first);
                return -ENOMEM;
        }
        sim_dgram_init(first);
        sim_dgram_init(second);
        sim_dgram_join(first, second);
        sim_dgram_join(second, first);
        ret_two[0] = &first->file;
        ret_two[1] = &second->file;
        return 0;
}

/* Two STREAMs that are each other's peers; of a pipe only the first one reads, and only the other one writes. */
static int make_two(struct sim *s, int family, struct rs_file *ret_two[2])
{
        struct sim_file *first = sim_file_new(s, family), *second = sim_file_new(s, family);

        if (!first || !second || sim_stream_init(first) < 0 || sim_stream_init(second) < 0) {
                if (first)
                        sim_file_free(first);
                if (second)
                        sim_file_free(second);
                return -ENOMEM;
        }
        first->writes_not = second->reads_not = family == AF_UNSPEC;
        first->peer = second;
        second->peer = first;
        ret_two[0] = &first->file;
        ret_two[1] = &second->file;
        return 0;
}

int sim_pair(struct rs_backend *b, int type, struct rs_file *ret_pair[2])
{
        struct sim *s = sim_world(b);

        if (sim_nth(s))
                return -EMFILE;
        if (type == SOCK_DGRAM)
                return make_dgrams(s, ret_pair);
        return type == SOCK_STREAM ? make_two(s, AF_UNIX, ret_pair) : -ESOCKTNOSUPPORT;
}

int sim_pipe(struct rs_backend *b, struct rs_file *ret_ends[2])
{
        struct sim *s = sim_world(b);

        return sim_nth(s) ? -EMFILE : make_two(s, AF_UNSPEC, ret_ends);
}

int sim_bind(struct rs_file *file, const resha_addr *addr, unsigned flags)
{
        struct sim_file *f = file_of(file);

        if (sim_nth(sim_of(f)))
                return -ENOBUFS;
        if (f->state == OUTSIDE)
                return kn_bind(f->real, addr, flags);
        if (sim_is_pipe(f))
                return -ENOTSOCK;
        if (f->state == LISTENER || f->state == STREAM || f->bound)
                return -EINVAL;
        if (sim_addr_family(addr) != f->family)
                return f->family == AF_UNIX ? -EINVAL : -EAFNOSUPPORT;
        return sim_name_take(f, addr, flags);
}

int sim_file_addr(struct rs_file *file, bool peer, resha_addr *ret_addr)
{
        struct sim_file *f = file_of(file);

        if (f->state == OUTSIDE)
                return kn_file_addr(f->real, peer, ret_addr);
        if (sim_is_pipe(f))
                return -ENOTSOCK;
        if (peer && f->state != STREAM && !f->connected)
                return -ENOTCONN;
        if (peer && f->dead && f->family != AF_UNIX)
                return -ENOTCONN;
        *ret_addr = peer ? f->remote : f->local;
        return 0;
}

int sim_file_shutdown(struct rs_file *file)
{
        struct sim_file *f = file_of(file);

        if (f->state == OUTSIDE)
                return sim_outside_shutdown(f);
        if (f->state == LISTENER)
                return 0;
        return f->state == DGRAM ? sim_dgram_shutdown(f) : sim_stream_shutdown(f);
}

void sim_file_close(struct rs_file *file)
{
        struct sim_file *f = file_of(file);

        assert(!f->in.op && !f->out.op);
        if (f->state == LISTENER)
                sim_stop_listening(f);
        else if (f->state == STREAM)
                sim_stream_hang_up(f, file->reset && f->family != AF_UNIX);
        else if (f->state == DGRAM)
                sim_dgram_close(f);
        else if (f->state == OUTSIDE) {
                f->real->reset = file->reset;
                kn_file_close(f->real);
        }
        sim_file_free(f);
}

void sim_net_done(struct sim *s)
{
        struct rs_node *n;

        while ((n = s->files.first)) {
                struct sim_file *f = RS_CONTAINER(n, struct sim_file, node);
                f->where = NULL; /* the list may be gone */
                if (f->state == OUTSIDE)
                        kn_file_close(f->real);
                sim_file_free(f);
        }
        sim_connect_done(s);
        sim_outside_done(s);
}
