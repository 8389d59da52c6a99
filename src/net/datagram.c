/* SPDX-License-Identifier: MIT */
/* Datagrams: one file of the backend, operations on whole datagrams.
 *
 * Errors of datagrams that were sent before. The kernel keeps one such code for a socket and gives it to the call that
 * comes next, whichever that is. With a peer it is passed on: it can only speak of that peer. A socket without one that
 * asked for errors has them in a queue, too, with whom each is about:
 *
 *     receive  met by a code, looks into the queue and tells what it finds
 *     send     met by a code that may be about somebody else, sends again, sets error_due and calls the receiver out of
 *              its wait, so that it looks into the queue
 *
 * error_due holds until the queue was found empty: an error that a send has run into is not lost.
 *
 * No room. ENOBUFS is an interface's full queue, or a Unix socket that is not read: nothing tells when there is room
 * again, so a send looks again after a pause, which grows. (EAGAIN, the socket's own full buffer, is waited for in the
 * backend.)
 *
 * Closing is as with streams: new calls are refused, waits are ended, the last one out lets the closer go on. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "net/datagram.h"

enum {
        RECEIVING = 0,
        SENDING = 1,
        PAUSE_FIRST_US = 500,
        PAUSE_MOST_US = 50 * 1000,
        STOLEN_MOST = 3, /* codes about others that one send may meet */
};

/* ---- entering and leaving ---- */

static int refuse(const resha_dgram *d, const struct rs_loop *l, int direction)
{
        if (d->loop != l)
                return resha_fail_at(-EPERM, NULL, "the datagram socket belongs to another loop");
        if (d->closing)
                return resha_fail_at(-EBADF, NULL, "the datagram socket is closed");
        return resha_fail_at(-EBUSY, NULL, "another task %s on this datagram socket",
                             direction == RECEIVING ? "receives" : "sends");
}

static inline int enter(resha_dgram *d, int direction, struct rs_loop **ret_loop)
{
        int rc = rs_enter(ret_loop);

        if (rc < 0)
                return rc;
        if (RS_UNLIKELY(d->loop != *ret_loop || d->closing || d->inside[direction]))
                return refuse(d, *ret_loop, direction);
        d->inside[direction] = true;
        return 0;
}

static void leave(resha_dgram *d, int direction)
{
        struct rs_wait *w = d->closer;

        d->inside[direction] = false;
        d->closer = NULL;
        if (w)
                rs_wake(w, 0);
}

static ssize_t operation(resha_dgram *d, enum rs_op_kind kind, struct rs_datagram *datagrams, size_t n)
{
        int direction = kind == RS_OP_RECEIVE ? RECEIVING : SENDING;
        struct rs_op op = { .kind = kind, .file = d->file, .buf = datagrams, .size = n };

        d->op[direction] = &op;
        ssize_t result = rs_operation(d->loop, &op, direction == RECEIVING ? "receive" : "send");
        d->op[direction] = NULL;
        return result;
}

/* ---- receiving ---- */

/* Codes of the call, and not of a datagram. */
static bool is_ours(ssize_t code)
{
        return code == -ECANCELED || code == -EBADF || code == -ENOMEM || code == -EINVAL || code == -EFAULT;
}

/* The oldest error in the queue, with whom it is about in *ret_whom, or 0. */
static int queued_error(resha_dgram *d, resha_addr *ret_whom)
{
        int code = d->file->backend->ops->file_error(d->file, ret_whom);

        d->error_due = code != 0;
        return code;
}

/* How many, or negative, and then whom that is about in datagrams[0].addr. */
static ssize_t receive(struct rs_loop *l, resha_dgram *d, struct rs_datagram *datagrams, size_t n)
{
        ssize_t result;
        int code;

        for (;;) {
                datagrams[0].addr = (resha_addr){ { 0 } };
                if (d->error_due && (code = queued_error(d, &datagrams[0].addr)) < 0)
                        return rs_complete(l, code);
                result = operation(d, RS_OP_RECEIVE, datagrams, n);
                if (RS_LIKELY(result >= 0))
                        return result;
                datagrams[0].addr = (resha_addr){ { 0 } };
                if (result != -EAGAIN)
                        break;
                if ((code = rs_enter(&l)) < 0) /* a send has called it out */
                        return code;
                if (d->closing)
                        return -EBADF;
        }
        if (d->errors && !is_ours(result) && (code = queued_error(d, &datagrams[0].addr)) < 0)
                return code;
        if (d->connected && !is_ours(result))
                datagrams[0].addr = d->peer;
        return result;
}

static int receive_failed(const resha_dgram *d, ssize_t code, const resha_addr *whom)
{
        char text[RESHA_ADDR_TEXT_MAX];
        resha_addr local;

        if (code == -ECANCELED)
                return (int)code;
        if (code == -EBADF)
                return resha_fail_at(-EBADF, NULL, "the datagram socket was closed");
        if (resha_addr_family(whom) != AF_UNSPEC)
                return resha_fail_at((int)code, NULL, "a datagram sent to %s: %s",
                                     resha_addr_format(whom, text, sizeof text), resha_strerror((int)code));
        if (d->file->backend->ops->file_addr(d->file, false, &local) < 0)
                local = *whom;
        return resha_fail_at((int)code, NULL, "receive on %s: %s", resha_addr_format(&local, text, sizeof text),
                             resha_strerror((int)code));
}

static int did_not_fit(const struct rs_datagram *one)
{
        char text[RESHA_ADDR_TEXT_MAX];

        return resha_fail_at(-EMSGSIZE, NULL, "a datagram of %zu bytes from %s, and room for %zu: the rest is lost",
                             one->whole, resha_addr_format(&one->addr, text, sizeof text), one->size);
}

ssize_t resha_dgram_recv(resha_dgram *d, void *buf, size_t size, resha_addr *ret_from)
{
        struct rs_datagram one = { .data = buf, .size = size };
        struct rs_loop *l;
        ssize_t n = enter(d, RECEIVING, &l);

        if (n == 0) {
                n = receive(l, d, &one, 1);
                if (RS_UNLIKELY(n < 0))
                        n = receive_failed(d, n, &one.addr);
                else
                        n = RS_UNLIKELY(one.truncated) ? did_not_fit(&one) : (ssize_t)one.length;
                leave(d, RECEIVING);
        }
        if (ret_from)
                *ret_from = one.addr;
        return n;
}

static void pass_on(const struct rs_datagram *from, resha_message *to, ssize_t n)
{
        for (ssize_t i = 0; i < n; i++) {
                to[i].length = from[i].length;
                to[i].whole = from[i].whole;
                to[i].addr = from[i].addr;
                to[i].truncated = from[i].truncated;
        }
}

static ssize_t receive_many(struct rs_loop *l, resha_dgram *d, resha_message *messages, size_t count)
{
        struct rs_datagram datagrams[RS_DATAGRAMS_MAX];

        for (size_t i = 0; i < count; i++)
                datagrams[i] = (struct rs_datagram){ .data = messages[i].data, .size = messages[i].size };
        ssize_t n = receive(l, d, datagrams, count);
        if (n < 0) {
                messages[0].addr = datagrams[0].addr;
                return receive_failed(d, n, &datagrams[0].addr);
        }
        pass_on(datagrams, messages, n);
        return n;
}

ssize_t resha_dgram_recv_many(resha_dgram *d, resha_message *messages, size_t n)
{
        struct rs_loop *l;
        ssize_t result = enter(d, RECEIVING, &l);

        if (n)
                messages[0].addr = (resha_addr){ { 0 } };
        if (result < 0)
                return result;
        if (n)
                result = receive_many(l, d, messages, n < RS_DATAGRAMS_MAX ? n : RS_DATAGRAMS_MAX);
        else
                result = resha_fail_at(-EINVAL, NULL, "no room for a single datagram");
        leave(d, RECEIVING);
        return result;
}

/* ---- sending ---- */

/* The code may be about a datagram before this one, to somebody else: the receiver is to look. */
static void tell_receiver(resha_dgram *d)
{
        d->error_due = true;
        if (d->op[RECEIVING])
                rs_operation_abort(d->loop, d->op[RECEIVING], -EAGAIN);
}

struct pause {
        struct rs_wait wait;
        struct rs_timer timer;
};

static void pause_over(struct rs_timer *t)
{
        rs_wake(&RS_CONTAINER(t, struct pause, timer)->wait, 0);
}

/* Whose time is over is awake, or about to be. */
static void pause_end(struct rs_wait *w, int code)
{
        struct pause *p = RS_CONTAINER(w, struct pause, wait);

        if (!rs_timer_active(&p->timer))
                return;
        rs_timer_clear(rs_loop_current, &p->timer);
        rs_wake(w, code);
}

static void pause_cancel(struct rs_wait *w)
{
        pause_end(w, -ECANCELED);
}

/* Between two operations of one call. The task may have stood still: what a close or a cancel found to end then was not
 * the next operation. */
static int go_on(const resha_dgram *d)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return rc == 0 && d->closing ? -EBADF : rc;
}

static int pause_for(resha_dgram *d, unsigned us)
{
        struct pause p = { .wait = { .cancel = pause_cancel, .what = "send", .object = d },
                           .timer = { .fire = pause_over } };
        int rc = go_on(d);

        if (rc < 0)
                return rc;
        rs_timer_set(d->loop, &p.timer, rs_time_add(rs_now(d->loop), (int64_t)us * 1000));
        d->pausing = &p.wait;
        rc = (int)rs_wait(d->loop, &p.wait);
        d->pausing = NULL;
        return rc;
}

/* How many, at least 1, or negative. */
static ssize_t send_some(resha_dgram *d, struct rs_datagram *datagrams, size_t n)
{
        unsigned pause = PAUSE_FIRST_US;
        int stolen = 0, rc = 0;

        while (rc == 0) {
                ssize_t result = operation(d, RS_OP_SEND, datagrams, n);
                if (RS_LIKELY(result >= 0))
                        return result;
                if (result == -ENOBUFS) {
                        rc = pause_for(d, pause);
                        pause = pause * 2 < PAUSE_MOST_US ? pause * 2 : PAUSE_MOST_US;
                } else if (!d->errors || d->connected || is_ours(result) || ++stolen > STOLEN_MOST) {
                        return result;
                } else {
                        tell_receiver(d);
                }
                rc = rc < 0 ? rc : go_on(d);
        }
        return rc;
}

static int send_failed(const resha_dgram *d, int code, const resha_addr *to)
{
        char text[RESHA_ADDR_TEXT_MAX];

        if (code == -ECANCELED)
                return code;
        if (code == -EBADF)
                return resha_fail_at(code, NULL, "the datagram socket was closed");
        return resha_fail_at(code, NULL, "send a datagram to %s: %s",
                             resha_addr_format(d->connected ? &d->peer : to, text, sizeof text), resha_strerror(code));
}

/* Before anything is sent. */
static int check_receiver(const resha_dgram *d, const resha_addr *to)
{
        bool named = rs_addr_view(to)->size != 0;

        if (!named && !d->connected)
                return resha_fail_at(-EDESTADDRREQ, NULL, "a datagram without a receiver, on a socket without a peer");
        if (named && d->connected && !resha_addr_equal(to, &d->peer))
                return resha_fail_at(-EISCONN, NULL, "a datagram to another than the socket's peer");
        return 0;
}

static int prepare(const resha_dgram *d, const void *data, size_t size, const resha_addr *to, struct rs_datagram *ret)
{
        ret->data = (void *)(uintptr_t)data;
        ret->size = size;
        ret->addr = d->connected ? (resha_addr){ { 0 } } : *to;
        return check_receiver(d, to);
}

int resha_dgram_send(resha_dgram *d, const void *data, size_t size, const resha_addr *to)
{
        static const resha_addr none;
        struct rs_datagram one = { .data = NULL };
        struct rs_loop *l;
        int rc = enter(d, SENDING, &l);

        if (rc < 0)
                return rc;
        rc = prepare(d, data, size, to ? to : &none, &one);
        if (rc == 0) {
                rc = (int)send_some(d, &one, 1);
                rc = rc < 0 ? send_failed(d, rc, &one.addr) : 0;
        }
        leave(d, SENDING);
        return rc;
}

/* The datagrams from messages on, up to the first that cannot be sent: how many there are. */
static size_t gather_some(const resha_dgram *d, const resha_message *messages, size_t n, struct rs_datagram *datagrams,
                          int *ret_rc)
{
        size_t i = 0;

        for (*ret_rc = 0; i < n && i < RS_DATAGRAMS_MAX; i++)
                if ((*ret_rc = prepare(d, messages[i].data, messages[i].size, &messages[i].addr, &datagrams[i])) < 0)
                        break;
        return i;
}

static int send_all(resha_dgram *d, const resha_message *messages, size_t n, size_t *sent)
{
        struct rs_datagram datagrams[RS_DATAGRAMS_MAX];
        int rc = 0;

        while (rc == 0 && *sent < n) {
                size_t some = gather_some(d, messages + *sent, n - *sent, datagrams, &rc);
                if (!some)
                        return rc;
                ssize_t done = send_some(d, datagrams, some);
                if (done < 0)
                        return send_failed(d, (int)done, &datagrams[0].addr);
                *sent += (size_t)done;
                rc = *sent < n ? go_on(d) : 0;
        }
        return rc == -EBADF ? send_failed(d, rc, &d->peer) : rc;
}

int resha_dgram_send_many(resha_dgram *d, const resha_message *messages, size_t n, size_t *ret_sent)
{
        struct rs_loop *l;
        size_t sent = 0;
        int rc = enter(d, SENDING, &l);

        if (rc == 0) {
                rc = n ? send_all(d, messages, n, &sent) : rs_complete(l, 0);
                leave(d, SENDING);
        }
        if (ret_sent)
                *ret_sent = sent;
        return rc;
}

/* ---- the end ---- */

void rs_dgram_close_file(resha_dgram *d)
{
        rs_unix_file_remove(&d->name);
        if (d->file)
                d->file->backend->ops->file_close(d->file);
        d->file = NULL;
}

int resha_dgram_addr(resha_dgram *d, bool peer, resha_addr *ret_addr)
{
        if (d->loop != rs_loop_current || d->closing)
                return refuse(d, rs_loop_current, RECEIVING);
        if (peer && !d->connected)
                return resha_fail_at(-ENOTCONN, NULL, "the datagram socket has no peer");
        return d->file->backend->ops->file_addr(d->file, peer, ret_addr);
}

void resha_dgram_close(resha_dgram *d)
{
        struct rs_loop *l;

        if (!d || d->closing)
                return;
        int rc = rs_enter_shielded(&l);
        if (d->loop != rs_loop_current || (rc < 0 && (d->inside[RECEIVING] || d->inside[SENDING])))
                return; /* as resha_stream_close() */
        d->closing = true;
        if (d->pausing)
                pause_end(d->pausing, -EBADF);
        for (int i = RECEIVING; i <= SENDING; i++)
                if (d->op[i])
                        rs_operation_abort(d->loop, d->op[i], -EBADF);
        while (d->inside[RECEIVING] || d->inside[SENDING]) {
                struct rs_wait w = { .what = "close", .object = d };
                d->closer = &w;
                rs_wait(d->loop, &w);
        }
        rs_dgram_close_file(d);
        d->loop->open--;
        rs_shown_remove(&d->shown);
        resha_free(d);
}

void resha_dgram_closep(resha_dgram **d)
{
        resha_dgram_close(*d);
        *d = NULL;
}
