/* SPDX-License-Identifier: MIT */
/* Bytes between the two ends of a simulated connection.
 *
 * Bytes    lie in a ring at the receiving end. `count` of them are there, the first `visible` have arrived and can be
 *          read; the rest is on its way, until the arrival timer. The order of bytes is never changed. The sender waits
 *          while the ring is full. After the bytes comes the end (fin), sent by shutdown and by close.
 * Resets   closing an end with unread bytes resets the other one; so does writing to an end that is closed: the first
 *          such write is accepted, as the writer cannot know yet. A reset is reported once, by the first read or write
 *          that meets it (bytes that had arrived are read before); after that reads give 0 and writes -EPIPE. After a
 *          seen end it is -EPIPE, and reads go on giving 0. */

#include <errno.h>
#include <string.h>

#include <resha/alloc.h>

#include "io/sim_file.h"

enum { BUFFER_SIZE = 64 * 1024, SMALL_BUFFER_MAX = 4096 };

/* ---- what moves between two ends ---- */

static void arrive(struct sim_file *f)
{
        sim_never(sim_of(f), &f->arrival);
        f->visible = f->count;
        f->fin_seen = f->fin_sent;
        sim_poke(f, &f->in);
}

static void on_arrival(struct rs_timer *t)
{
        arrive(RS_CONTAINER(t, struct sim_file, arrival));
}

/* Bytes or the end are under way to f: they come with what is under way already, or after a delay of their own. */
static void deliver(struct sim_file *f)
{
        int64_t delay;

        if (rs_timer_active(&f->arrival))
                return;
        delay = sim_delay(sim_of(f), RS_FAULT_LATENCY);
        if (delay == 0)
                arrive(f);
        else
                sim_at(sim_of(f), &f->arrival, delay);
}

static void send_fin(struct sim_file *f)
{
        f->fin_sent = true;
        deliver(f);
}

/* A reset has reached f. It comes after an orderly end, but overtakes bytes of a peer that gave up. */
static void end_reset(struct sim_file *f)
{
        sim_never(sim_of(f), &f->reset);
        if (f->dead)
                return;
        if (f->fin_sent)
                arrive(f);
        sim_never(sim_of(f), &f->arrival);
        f->count = f->visible;
        f->dead = true;
        f->error = f->fin_seen ? -EPIPE : -ECONNRESET;
        sim_poke(f, &f->in);
        sim_poke(f, &f->out);
}

static void on_reset(struct rs_timer *t)
{
        end_reset(RS_CONTAINER(t, struct sim_file, reset));
}

static void send_reset(struct sim_file *f)
{
        int64_t delay = sim_delay(sim_of(f), RS_FAULT_LATENCY);

        if (delay == 0)
                end_reset(f);
        else if (!rs_timer_active(&f->reset))
                sim_at(sim_of(f), &f->reset, delay);
}

static void part(struct sim_file *f)
{
        if (f->peer)
                f->peer->peer = NULL;
        f->peer = NULL;
}

/* The connection breaks here and now: the peer learns it as a reset. */
static int break_connection(struct sim_file *f)
{
        struct sim_file *peer = f->peer;

        part(f);
        if (peer)
                send_reset(peer);
        f->count = f->visible = 0;
        end_reset(f);
        f->error = 0;
        return -ECONNRESET;
}

/* ---- reading and writing ---- */

static int take_error(struct sim_file *f)
{
        int error = f->error;

        f->error = 0;
        return error;
}

static size_t copy_out(struct sim_file *f, char *to, size_t n)
{
        size_t first = f->capacity - f->head < n ? f->capacity - f->head : n;

        memcpy(to, f->ring + f->head, first);
        memcpy(to + first, f->ring, n - first);
        f->head = (f->head + n) % f->capacity;
        f->count -= n;
        f->visible -= n;
        return n;
}

static size_t copy_in(struct sim_file *f, const char *from, size_t n)
{
        size_t tail = (f->head + f->count) % f->capacity;
        size_t first = f->capacity - tail < n ? f->capacity - tail : n;

        memcpy(f->ring + tail, from, first);
        memcpy(f->ring, from + first, n - first);
        f->count += n;
        return n;
}

static size_t shortened(struct sim *s, enum rs_fault_kind kind, size_t n)
{
        return n > 1 && sim_fires(s, kind) ? 1 + (size_t)sim_roll(s, n - 1) : n;
}

bool sim_stream_read(struct sim_file *f, struct rs_op *op)
{
        struct sim *s = sim_of(f);

        if (f->state != STREAM)
                op->result = -ENOTCONN;
        else if (op->size == 0)
                op->result = 0;
        else if (f->peer && sim_fires(s, RS_FAULT_RESET))
                op->result = break_connection(f);
        else if (f->visible > 0) {
                size_t n = shortened(s, RS_FAULT_SHORT_READ, op->size < f->visible ? op->size : f->visible);
                op->result = (ssize_t)copy_out(f, op->buf, n);
                if (f->peer)
                        sim_poke(f->peer, &f->peer->out);
        } else if (f->fin_seen)
                op->result = 0;
        else if (f->dead)
                op->result = take_error(f);
        else
                return false;
        return true;
}

bool sim_stream_write(struct sim_file *f, struct rs_op *op)
{
        struct sim *s = sim_of(f);

        if (f->state != STREAM || f->write_shut)
                op->result = -EPIPE;
        else if (f->dead)
                op->result = f->error ? take_error(f) : -EPIPE;
        else if (op->size == 0)
                op->result = 0;
        else if (!f->peer) {
                op->result = (ssize_t)op->size; /* sent, but nobody is there to get it */
                send_reset(f);
        } else if (sim_fires(s, RS_FAULT_RESET))
                op->result = break_connection(f);
        else {
                size_t room = f->peer->capacity - f->peer->count;
                if (room == 0)
                        return false;
                size_t n = shortened(s, RS_FAULT_SHORT_WRITE, op->size < room ? op->size : room);
                op->result = (ssize_t)copy_in(f->peer, op->buf, n);
                deliver(f->peer);
        }
        return true;
}

int sim_stream_init(struct sim_file *f)
{
        f->capacity = BUFFER_SIZE;
        if (sim_fires(sim_of(f), RS_FAULT_SMALL_BUFFER))
                f->capacity = 1 + (size_t)sim_roll(sim_of(f), SMALL_BUFFER_MAX);
        f->ring = resha_malloc(f->capacity);
        if (!f->ring)
                return -ENOMEM;
        f->arrival.fire = on_arrival;
        f->reset.fire = on_reset;
        f->state = STREAM;
        return 0;
}

int sim_stream_shutdown(struct sim_file *f)
{
        if (f->state != STREAM || f->dead)
                return -ENOTCONN;
        if (f->write_shut)
                return 0;
        f->write_shut = true;
        if (f->peer)
                send_fin(f->peer);
        sim_poke(f, &f->out);
        return 0;
}

void sim_stream_hang_up(struct sim_file *f, bool abort)
{
        struct sim_file *peer = f->peer;

        part(f);
        if (!peer)
                return;
        if (abort || f->count > 0)
                send_reset(peer);
        else
                send_fin(peer);
        sim_poke(peer, &peer->out);
}
