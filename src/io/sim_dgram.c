/* SPDX-License-Identifier: MIT */
/* Datagrams in memory: UDP, and Unix datagram sockets. Behaves as Linux does on loopback where a program can tell.
 *
 * UDP    A datagram goes to the socket that is bound there: best to one that is connected to the sender, then to one on
 *        the very host. It may be lost, doubled or overtaken, by the plan alone; without that they come in the order in
 *        which they were sent, late or not. A receiver that is full drops what comes, and says nothing. From a port
 *        that nobody has comes an error, to who is connected to it or has asked for errors; it is the result of the
 *        next call.
 * Unix   Nothing is lost or changes its order. A full receiver makes a sender wait that is connected to it; for others
 *        there is nothing to wait for (-ENOBUFS). Between two that are connected to each other the bytes count, else
 *        the datagrams.
 *
 * Life of a message: made by a send, in the `coming` of its receiver; at its arrival in its `inbox` or dropped; freed
 * by a receive, or with the receiver. An error is a message to the sender of what caused it, and kept in `errors` if
 * that was asked for. */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/sim_addr.h"
#include "io/sim_file.h"

enum {
        OVERHEAD = 768,       /* bytes that a datagram takes beside its own, as the kernel counts */
        UNIX_QUEUE = 10,      /* net.unix.max_dgram_qlen; one more than that fit */
        UDP_MOST = 65507,     /* bytes in a datagram of IPv4 */
        UDP6_MOST = 65527,    /* of IPv6 */
        UNIX_HEAD = 32,       /* what a send buffer holds beside one */
        REORDER_NS = 1000000, /* how late one is that is overtaken, where the plan has no latency */
};

struct sim_message {
        struct rs_node node; /* in to->coming, inbox or errors */
        struct sim_file *to;
        struct rs_timer arrival;
        bool is_error;
        resha_addr from; /* an error: whom the datagram was for */
        size_t size;
        char data[];
};

static struct sim_message *message_at(struct rs_node *n)
{
        return n ? RS_CONTAINER(n, struct sim_message, node) : NULL;
}

static bool is_unix(const struct sim_file *f)
{
        return f->family == AF_UNIX;
}

/* ---- on the way ---- */

static void message_free(struct rs_list *where, struct sim_message *m)
{
        sim_never(sim_of(m->to), &m->arrival);
        rs_list_remove(where, &m->node);
        resha_free(m);
}

static void charge(struct sim_file *to, const struct sim_message *m, bool back)
{
        size_t bytes = m->size + OVERHEAD;

        to->queued_bytes = back ? to->queued_bytes - bytes : to->queued_bytes + bytes;
        to->queued = back ? to->queued - 1 : to->queued + 1;
}

static void error_arrives(struct sim_file *f, struct sim_message *m)
{
        f->error = -ECONNREFUSED;
        if (sim_option_value(f, RS_OPTION_RECEIVE_ERRORS))
                rs_list_push(&f->errors, &m->node);
        else
                resha_free(m);
        sim_poke(f, &f->in);
        sim_poke(f, &f->out);
}

static void arrive(struct sim_message *m)
{
        struct sim_file *to = m->to;

        rs_list_remove(&to->coming, &m->node);
        if (m->is_error) {
                error_arrives(to, m);
        } else if (!is_unix(to) && to->queued_bytes > (size_t)sim_option_value(to, RS_OPTION_RECEIVE_BUFFER)) {
                resha_free(m);
        } else {
                if (!is_unix(to))
                        charge(to, m, false);
                rs_list_push(&to->inbox, &m->node);
                sim_poke(to, &to->in);
        }
}

static void on_arrival(struct rs_timer *t)
{
        arrive(RS_CONTAINER(t, struct sim_message, arrival));
}

static struct sim_message *message_new(struct sim_file *to, const void *data, size_t size, const resha_addr *from)
{
        struct sim_message *m = resha_malloc(sizeof *m + size);

        if (!m)
                return NULL;
        *m = (struct sim_message){ .to = to, .arrival.fire = on_arrival, .from = *from, .size = size };
        if (size > 0)
                memcpy(m->data, data, size);
        return m;
}

/* In the order of sending; `late`: others may overtake it. */
static void deliver(struct sim_message *m, bool late)
{
        struct sim_file *to = m->to;
        struct sim *s = sim_of(to);
        int64_t delay = sim_delay(s, RS_FAULT_LATENCY), most = s->plan.latency_max;
        bool at_once = delay == 0 && !late && rs_list_empty(&to->coming);

        rs_list_push(&to->coming, &m->node);
        if (at_once) {
                arrive(m);
                return;
        }
        if (late)
                delay = 1 + (int64_t)sim_roll(s, (uint64_t)(most > 0 ? most : REORDER_NS));
        else if (s->now + delay < to->last_arrival)
                delay = to->last_arrival - s->now;
        if (!late)
                to->last_arrival = s->now + delay;
        sim_at(s, &m->arrival, delay);
}

/* ---- UDP ---- */

static int udp_send_copy(struct sim_file *to, const struct rs_datagram *d, const resha_addr *from)
{
        struct sim *s = sim_of(to);
        int copies = sim_fires(s, RS_FAULT_DUPLICATE) ? 2 : 1;

        for (int i = 0; i < copies; i++) {
                struct sim_message *m = message_new(to, d->data, d->size, from);
                if (!m)
                        return i > 0 ? 0 : -ENOMEM;
                deliver(m, sim_fires(s, RS_FAULT_REORDER));
        }
        return 0;
}

/* How good o is for what comes there; 0: not at all. */
static int score(const struct sim_file *o, const resha_addr *to, const resha_addr *from)
{
        if (o->state != DGRAM || is_unix(o) || sim_addr_port(&o->local) != sim_addr_port(to) || !sim_name_covers(o, to))
                return 0;
        if (o->connected && !sim_addr_same(&o->remote, from))
                return 0;
        return 1 + 2 * o->connected + !sim_addr_is_any(&o->local);
}

static struct sim_file *udp_receiver(struct sim *s, const resha_addr *to, const resha_addr *from)
{
        struct sim_file *best = NULL;
        int best_score = 0;

        for (struct rs_node *n = s->names.first; n; n = n->next) {
                struct sim_file *o = RS_CONTAINER(n, struct sim_file, named);
                int this_score = score(o, to, from);
                if (this_score > best_score) {
                        best = o;
                        best_score = this_score;
                }
        }
        return best;
}

/* Nobody is there, which the sender gets to know if it is connected to that or has asked for it. */
static void unreachable(struct sim_file *f, const resha_addr *to)
{
        bool wants = f->connected ? sim_addr_same(&f->remote, to) : sim_option_value(f, RS_OPTION_RECEIVE_ERRORS) != 0;
        struct sim_message *m = wants ? message_new(f, NULL, 0, to) : NULL;

        if (!m)
                return; /* an error that gets lost, as on any network */
        m->is_error = true;
        deliver(m, false);
}

/* 0, or why nothing can be sent there from f. */
static int udp_refuses(struct sim_file *f, const resha_addr *to, size_t size)
{
        int family = sim_addr_family(to);

        if (family != AF_INET && (family != AF_INET6 || f->family == AF_INET))
                return -EAFNOSUPPORT;
        if (family != sim_addr_family(&f->local) && ((f->bind_flags & RS_BIND_V6_ONLY) || !sim_addr_is_any(&f->local)))
                return -ENETUNREACH;
        if (sim_addr_port(to) == 0)
                return -EINVAL;
        if (size > (size_t)(family == AF_INET ? UDP_MOST : UDP6_MOST))
                return -EMSGSIZE;
        return sim_addr_is_broadcast(to) && !sim_option_value(f, RS_OPTION_BROADCAST) ? -EACCES : 0;
}

/* Who has no port gets one; the host by which the receiver is reached is the sender's too. */
static int udp_source(struct sim_file *f, const resha_addr *to, resha_addr *ret_from)
{
        if (!f->bound) {
                resha_addr any = sim_addr_none(f->family);
                int rc = sim_name_take(f, &any, 0);
                if (rc < 0)
                        return rc;
        }
        *ret_from = f->local;
        if (sim_addr_is_any(&f->local)) {
                *ret_from = sim_addr_is_broadcast(to) ? sim_addr_loopback(AF_INET) : *to;
                sim_addr_set_port(ret_from, sim_addr_port(&f->local));
        }
        return 0;
}

static int udp_broadcast(struct sim *s, const struct rs_datagram *d, const resha_addr *to, const resha_addr *from)
{
        int rc = 0;

        for (struct rs_node *n = s->names.first; n && rc == 0; n = n->next) {
                struct sim_file *o = RS_CONTAINER(n, struct sim_file, named);
                if (score(o, to, from) > 0)
                        rc = udp_send_copy(o, d, from);
        }
        return rc;
}

static int udp_send(struct sim_file *f, const struct rs_datagram *d)
{
        struct sim *s = sim_of(f);
        bool named = rs_addr_view(&d->addr)->size > 0;
        resha_addr to = named ? d->addr : f->remote, from;
        int rc;

        if (!named && !f->connected)
                return -EDESTADDRREQ;
        if ((rc = udp_refuses(f, &to, d->size)) < 0)
                return rc;
        if (f->write_shut)
                return -EPIPE;
        if ((rc = sim_take_error(f)) < 0)
                return rc;
        to = sim_addr_reached(&to);
        if ((rc = udp_source(f, &to, &from)) < 0)
                return rc;
        if (sim_is_silent(s, &to) || sim_fires(s, RS_FAULT_LOSS))
                return 0;
        if (sim_addr_is_broadcast(&to))
                return udp_broadcast(s, d, &to, &from);
        struct sim_file *o = udp_receiver(s, &to, &from);
        if (o)
                return udp_send_copy(o, d, &from);
        unreachable(f, &to);
        return 0;
}

static int udp_connect(struct sim_file *f, const resha_addr *addr)
{
        resha_addr to = sim_addr_reached(addr), local = to;
        int rc = udp_refuses(f, &to, 0);

        if (rc < 0 && rc != -EINVAL)
                return rc;
        if (!f->bound) {
                resha_addr any = sim_addr_none(f->family);
                if ((rc = sim_name_take(f, &any, 0)) < 0)
                        return rc;
        }
        sim_addr_set_port(&local, sim_addr_port(&f->local));
        if (sim_addr_is_any(&f->local))
                f->local = local;
        f->remote = to;
        f->connected = true;
        return 0;
}

/* ---- Unix ---- */

static int unix_receiver(struct sim_file *f, const struct rs_datagram *d, struct sim_file **ret_to)
{
        if (rs_addr_view(&d->addr)->size > 0)
                return sim_addr_family(&d->addr) == AF_UNIX ? sim_name_dgram(sim_of(f), &d->addr, ret_to) : -EINVAL;
        if (!f->connected)
                return -ENOTCONN;
        if (!f->peer) { /* closed: said once */
                f->connected = false;
                return -ECONNREFUSED;
        }
        *ret_to = f->peer;
        return 0;
}

static bool listens_to_another(const struct sim_file *to, const struct sim_file *f)
{
        return to->connected && to->peer != f;
}

static bool is_full(const struct sim_file *to, const struct sim_file *f)
{
        if (to->peer == f)
                return to->queued_bytes >= (size_t)sim_option_value(f, RS_OPTION_SEND_BUFFER);
        return to->queued > to->queue_max;
}

static int unix_send(struct sim_file *f, const struct rs_datagram *d)
{
        struct sim_file *to;
        int rc = unix_receiver(f, d, &to);

        if (rc < 0)
                return rc;
        if (f->write_shut)
                return -EPIPE;
        if (d->size + UNIX_HEAD > (size_t)sim_option_value(f, RS_OPTION_SEND_BUFFER))
                return -EMSGSIZE;
        if (listens_to_another(to, f))
                return -EPERM;
        if (is_full(to, f)) {
                if (rs_addr_view(&d->addr)->size > 0)
                        return -ENOBUFS;
                sim_place(f, &to->callers);
                return -EAGAIN;
        }
        resha_addr nobody = { { 0 } };
        struct sim_message *m = message_new(to, d->data, d->size, f->bound ? &f->local : &nobody);
        if (!m)
                return -ENOMEM;
        charge(to, m, false);
        deliver(m, false);
        return 0;
}

static int unix_connect(struct sim_file *f, const resha_addr *addr)
{
        struct sim_file *to;
        int rc = sim_addr_family(addr) == AF_UNIX ? sim_name_dgram(sim_of(f), addr, &to) : -EINVAL;

        if (rc < 0)
                return rc;
        if (listens_to_another(to, f))
                return -EPERM;
        sim_dgram_join(f, to);
        return 0;
}

/* ---- operations ---- */

void sim_dgram_init(struct sim_file *f)
{
        struct sim *s = sim_of(f);

        f->state = DGRAM;
        f->queue_max = UNIX_QUEUE;
        if (is_unix(f) && sim_fires(s, RS_FAULT_SMALL_BUFFER))
                f->queue_max = (size_t)sim_roll(s, UNIX_QUEUE);
}

void sim_dgram_join(struct sim_file *f, struct sim_file *to)
{
        f->peer = to;
        f->remote = to->local;
        f->connected = true;
}

bool sim_dgram_connect(struct sim_file *f, struct rs_op *op)
{
        op->result = is_unix(f) ? unix_connect(f, op->addr) : udp_connect(f, op->addr);
        return true;
}

/* False: the first one has to wait. */
static bool send_many(struct sim_file *f, const struct rs_datagram *d, size_t n, ssize_t *ret)
{
        size_t sent = 0;
        int rc = 0;

        sim_unplace(f); /* it may have waited for room */
        while (sent < n && (rc = is_unix(f) ? unix_send(f, &d[sent]) : udp_send(f, &d[sent])) == 0)
                sent++;
        *ret = sent > 0 ? (ssize_t)sent : rc;
        if (sent > 0)
                sim_unplace(f);
        return *ret != -EAGAIN;
}

static size_t batch(const struct sim_file *f, const struct rs_op *op, enum rs_fault_kind shorter)
{
        return sim_shortened(sim_of(f), shorter, op->size < RS_DATAGRAMS_MAX ? op->size : RS_DATAGRAMS_MAX);
}

bool sim_dgram_send(struct sim_file *f, struct rs_op *op)
{
        return send_many(f, op->buf, batch(f, op, RS_FAULT_SHORT_WRITE), &op->result);
}

bool sim_dgram_write(struct sim_file *f, struct rs_op *op)
{
        struct rs_datagram d = { .data = op->buf, .size = op->size };
        bool done = send_many(f, &d, 1, &op->result);

        if (done && op->result == 1)
                op->result = (ssize_t)op->size;
        return done;
}

static void take_first(struct sim_file *f, struct rs_datagram *d)
{
        struct sim_message *m = message_at(f->inbox.first);

        d->whole = m->size;
        d->truncated = m->size > d->size;
        d->length = d->truncated ? d->size : m->size;
        if (d->length > 0)
                memcpy(d->data, m->data, d->length);
        d->addr = m->from;
        charge(f, m, true);
        message_free(&f->inbox, m);
}

/* False: there is none yet. */
static bool receive_many(struct sim_file *f, struct rs_datagram *d, size_t n, ssize_t *ret)
{
        size_t got = 0;

        *ret = sim_take_error(f);
        if (*ret < 0)
                return true;
        while (got < n && !rs_list_empty(&f->inbox))
                take_first(f, &d[got++]);
        *ret = (ssize_t)got;
        if (got > 0)
                sim_call_callers(f);
        return got > 0 || n == 0;
}

bool sim_dgram_receive(struct sim_file *f, struct rs_op *op)
{
        return receive_many(f, op->buf, batch(f, op, RS_FAULT_SHORT_READ), &op->result);
}

bool sim_dgram_read(struct sim_file *f, struct rs_op *op)
{
        struct rs_datagram d = { .data = op->buf, .size = op->size };
        bool done = receive_many(f, &d, 1, &op->result);

        if (done && op->result == 1)
                op->result = (ssize_t)d.length;
        return done;
}

/* Where more are kept, the next call runs into the next one. */
int sim_dgram_error(struct rs_file *file, resha_addr *ret_addr)
{
        struct sim_file *f = file_of(file);
        struct sim_message *m = message_at(f->errors.first);

        if (f->state == OUTSIDE)
                return kn_file_error(f->real, ret_addr);
        if (!m)
                return 0;
        *ret_addr = m->from;
        message_free(&f->errors, m);
        f->error = rs_list_empty(&f->errors) ? 0 : -ECONNREFUSED;
        return -ECONNREFUSED;
}

int sim_dgram_shutdown(struct sim_file *f)
{
        f->write_shut = true;
        sim_poke(f, &f->out);
        return is_unix(f) || f->connected ? 0 : -ENOTCONN;
}

void sim_dgram_close(struct sim_file *f)
{
        for (struct rs_node *n = sim_of(f)->files.first; n; n = n->next) {
                struct sim_file *o = RS_CONTAINER(n, struct sim_file, node);
                if (o->state == DGRAM && o->peer == f)
                        o->peer = NULL;
        }
        sim_name_drop(f); /* callers must not find it again */
        sim_call_callers(f);
}

void sim_dgram_drop(struct sim_file *f)
{
        struct rs_list *all[] = { &f->coming, &f->inbox, &f->errors };

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                while (all[i]->first)
                        message_free(all[i], message_at(all[i]->first));
}
