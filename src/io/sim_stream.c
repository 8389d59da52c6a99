/* SPDX-License-Identifier: MIT */
/* Bytes between the two ends of a simulated connection, or of a pipe.
 *
 * Bytes    lie in a ring at the receiving end. `count` of them are there, the first `visible` have arrived and can be
 *          read; the rest is on its way, until the arrival timer. The order of bytes is never changed. The sender waits
 *          while the ring is full. After the bytes comes the end (fin), sent by shutdown and by close.
 * Resets   of TCP: closing an end with unread bytes resets the other one; so does writing to an end that is closed: the
 *          first such write is accepted, as the writer cannot know yet. A reset is reported once, by the first read or
 *          write that meets it (bytes that had arrived are read before); after that reads give 0 and writes -EPIPE.
 *          After a seen end it is -EPIPE, and reads go on giving 0.
 * Unix     sockets know at once that the other end is closed: writes give -EPIPE, and what it had sent can still be
 *          read. If it was closed with unread bytes, the first read behind those gives -ECONNRESET, and then 0.
 * Pipes    are the same, one way, without resets. A write of at most PIPE_BUF bytes is never split, not by luck either:
 *          it waits for so much room. */

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/uio.h>

#include <resha/alloc.h>

#include "io/sim_file.h"
#include "sys/sys.h"

enum { BUFFER_SIZE = 64 * 1024, SMALL_BUFFER_MAX = 4096 };

/* What the machine itself connects, without a network: the other end is known. */
static bool is_local(const struct sim_file *f)
{
        return f->family == AF_UNIX || sim_is_pipe(f);
}

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
        f->error = !f->fin_seen ? -ECONNRESET : f->family == AF_UNIX ? 0 : -EPIPE;
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

static bool breaks(struct sim_file *f)
{
        return f->peer && !sim_is_pipe(f) && sim_fires(sim_of(f), RS_FAULT_RESET);
}

/* ---- reading and writing ---- */

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

/* Where the next byte goes, and how many are in one piece there, of n. */
static char *tail_of(struct sim_file *f, size_t *n)
{
        size_t tail = (f->head + f->count) % f->capacity;

        if (*n > f->capacity - tail)
                *n = f->capacity - tail;
        return f->ring + tail;
}

static void copy_in(struct sim_file *f, const char *from, size_t n)
{
        while (n > 0) {
                size_t piece = n;
                char *to = tail_of(f, &piece);
                memcpy(to, from, piece);
                f->count += piece;
                from += piece;
                n -= piece;
        }
}

static int read_at_end(struct sim_file *f)
{
        if (f->family == AF_UNIX || !f->fin_seen)
                return sim_take_error(f); /* 0 if there is none */
        return 0;
}

bool sim_stream_read(struct sim_file *f, struct rs_op *op)
{
        struct sim *s = sim_of(f);

        if (f->state != STREAM)
                op->result = f->family == AF_UNIX ? -EINVAL : -ENOTCONN;
        else if (f->reads_not)
                op->result = -EBADF;
        else if (op->size == 0)
                op->result = 0;
        else if (breaks(f))
                op->result = break_connection(f);
        else if (f->visible > 0) {
                size_t n = sim_shortened(s, RS_FAULT_SHORT_READ, op->size < f->visible ? op->size : f->visible);
                op->result = (ssize_t)copy_out(f, op->buf, n);
                if (f->peer)
                        sim_poke(f->peer, &f->peer->out);
        } else if (f->fin_seen || f->dead)
                op->result = read_at_end(f);
        else
                return false;
        return true;
}

/* ---- writing ---- */

/* 0, or why nothing more can be written. */
static int unwritable(struct sim_file *f)
{
        if (f->state != STREAM)
                return f->family == AF_UNIX ? -ENOTCONN : -EPIPE;
        if (f->writes_not)
                return -EBADF;
        if (f->write_shut)
                return -EPIPE;
        if (f->dead)
                return f->error && f->family != AF_UNIX ? sim_take_error(f) : -EPIPE;
        if (!f->peer && is_local(f))
                return -EPIPE;
        if (!breaks(f))
                return 0;
        int rc = break_connection(f);
        if (f->family != AF_UNIX)
                return rc;
        f->error = rc; /* a reader's: writes have an error of their own */
        return -EPIPE;
}

/* How many of `want` bytes go now, at least 1 if any are wanted; -EAGAIN: later; another negative code. Of `atomic`
 * ones of a pipe all go, if they are few. Where there is no peer, the connection's first write after its end, all seem
 * to go. */
static ssize_t writable(struct sim_file *f, size_t want, bool atomic)
{
        int rc = unwritable(f);

        if (rc < 0 || want == 0)
                return rc;
        if (!f->peer)
                return (ssize_t)want;
        size_t room = f->peer->capacity - f->peer->count;
        bool whole = atomic && want <= PIPE_BUF && sim_is_pipe(f);
        if (room == 0 || (whole && room < want))
                return -EAGAIN;
        if (whole)
                return (ssize_t)want;
        return (ssize_t)sim_shortened(sim_of(f), RS_FAULT_SHORT_WRITE, want < room ? want : room);
}

/* n bytes were written, or the error. */
static bool written(struct sim_file *f, struct rs_op *op, ssize_t n)
{
        if (n > 0 && f->peer)
                deliver(f->peer);
        else if (n > 0)
                send_reset(f);
        op->result = n;
        return true;
}

bool sim_stream_write(struct sim_file *f, struct rs_op *op)
{
        ssize_t n = writable(f, op->size, true);

        if (n == -EAGAIN)
                return false;
        if (n > 0 && f->peer)
                copy_in(f->peer, op->buf, (size_t)n);
        return written(f, op, n);
}

bool sim_stream_write_vec(struct sim_file *f, struct rs_op *op)
{
        const struct iovec *parts = op->buf;
        size_t total = 0;

        for (size_t i = 0; i < op->size; i++)
                total += parts[i].iov_len;
        ssize_t n = writable(f, total, true);
        if (n == -EAGAIN)
                return false;
        size_t left = n > 0 && f->peer ? (size_t)n : 0;
        for (size_t i = 0; left > 0; i++) {
                size_t piece = parts[i].iov_len < left ? parts[i].iov_len : left;
                copy_in(f->peer, parts[i].iov_base, piece);
                left -= piece;
        }
        return written(f, op, n);
}

/* Up to n bytes of a real file, right into the ring. */
static ssize_t file_in(struct sim_file *to, const struct rs_op *op, size_t n)
{
        size_t done = 0;

        while (done < n) {
                size_t piece = n - done;
                char *at = tail_of(to, &piece);
                ssize_t got = rs_sys_pread(op->fd, at, piece, op->offset + (int64_t)done);
                if (got <= 0)
                        return done > 0 ? (ssize_t)done : got == -EISDIR ? -EINVAL : got;
                to->count += (size_t)got;
                done += (size_t)got;
        }
        return (ssize_t)done;
}

/* What nobody gets is read all the same, to know how much it is. */
static ssize_t file_nowhere(const struct rs_op *op)
{
        char buf[1024];

        return rs_sys_pread(op->fd, buf, op->size < sizeof buf ? op->size : sizeof buf, op->offset);
}

bool sim_stream_send_file(struct sim_file *f, struct rs_op *op)
{
        ssize_t n = writable(f, op->size < SSIZE_MAX ? op->size : SSIZE_MAX, false);

        if (n == -EAGAIN)
                return false;
        if (n > 0)
                n = f->peer ? file_in(f->peer, op, (size_t)n) : file_nowhere(op);
        return written(f, op, n);
}

/* ---- beginning and end ---- */

int sim_stream_init(struct sim_file *f)
{
        f->capacity = BUFFER_SIZE;
        if (sim_fires(sim_of(f), RS_FAULT_SMALL_BUFFER))
                f->capacity = sim_is_pipe(f) ? PIPE_BUF : 1 + (size_t)sim_roll(sim_of(f), SMALL_BUFFER_MAX);
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
        if (f->writes_not)
                return -EOPNOTSUPP;
        if (f->family != AF_UNIX && (f->state != STREAM || f->dead))
                return -ENOTCONN;
        if (f->write_shut)
                return 0;
        f->write_shut = true;
        if (f->peer && !f->dead)
                send_fin(f->peer);
        sim_poke(f, &f->out);
        return 0;
}

/* The end, and for a Unix socket the reason of it if it was not an orderly one. */
static void leave_local(struct sim_file *f, struct sim_file *peer, bool abort)
{
        if ((abort || f->count > 0) && f->family == AF_UNIX)
                peer->error = -ECONNRESET;
        send_fin(peer);
}

void sim_stream_hang_up(struct sim_file *f, bool abort)
{
        struct sim_file *peer = f->peer;

        part(f);
        if (!peer)
                return;
        if (is_local(f))
                leave_local(f, peer, abort);
        else if (abort || f->count > 0)
                send_reset(peer);
        else
                send_fin(peer);
        sim_poke(peer, &peer->out);
}
