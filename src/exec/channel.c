/* SPDX-License-Identifier: MIT */
/* Channels: a ring between two sides, each of which has its own lock and its own cache line.
 *
 * A side keeps where it is in the ring, and what it last saw of the other's place; it looks at the other's line again
 * only when that says full or empty. So while both are busy a send or receive is a lock that mostly nobody else wants,
 * a copy and a store. The locks are held for these few instructions; who finds one taken spins, and then gives the
 * processor away, since the holder may have lost its own.
 *
 * Who must wait stands in the line of its side, under a third lock. It says so in `waiting`, and then looks at the ring
 * once more; the other side moves its place, and then looks at `waiting`: one of the two sees the other. Who is woken
 * tries again. A cancel that comes after the wake-up changes nothing but that no further wait begins: so nothing is
 * lost or doubled, and a wake-up is only ever for one who looks at the ring.
 *
 *     parked: QUEUED --wake_one, wake_all--> told --post, gate, rs_wake--> tries again
 *                \------ cancel, deadline, given up: out of the line ------/
 *
 * Before a task waits it spins a little, if nobody else is ready on its loop and the other side moves: at most until
 * its loop would look at the world anyway.
 *
 * Invariants
 *  1. place of the receivers <= place of the senders <= place of the receivers + capacity.
 *  2. A waiter that is queued belongs to a loop that has not ended: the end of a run takes its waiters out of the lines
 *     before its inbox is closed. Posts are made under the lock of the lines, and only to queued ones.
 *  3. closed of the receivers is set under the senders' lock: no item comes after it, and what is inside is dropped
 *     by whoever set it. */

#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>
#include <resha/channel.h>

#include "core/core.h"
#include "sys/sys.h"
#include "sys/thread.h"
#include "sys/ticks.h"

enum { ITEM_MAX = 65536, SPINS = 100, IDLE_LOOKS = 40 };

struct side {
        uint32_t lock;  /* atomic */
        uint64_t place; /* items that have passed it; written with the lock, atomic */
        uint64_t seen;  /* of the other's place */
        char *at;       /* in the ring */
        /* Read at each operation of the other side, seldom written. */
        char apart[64];      /* in other cache lines: the memory is not aligned to them */
        unsigned waiting;    /* waiters in line; written with the lock of the lines, atomic */
        bool closed;         /* atomic */
        unsigned users;      /* references, atomic */
        struct rs_list line; /* of rs_wait.node */
        char apart_too[64];
};

struct channel {
        size_t item_size, capacity;
        char *items, *end;
        resha_drop_fn *drop;
        unsigned forks;      /* rs_forks, of the process that made it */
        unsigned ends;       /* that are open; atomic */
        struct rs_lock lock; /* of the lines */
        struct side tx, rx;
};

struct waiter {
        struct rs_wait wait;
        struct rs_post post;
        struct channel *channel;
        struct side *side;    /* in whose line it stands */
        struct rs_loop *loop; /* NULL: a thread, which waits at the gate */
        struct rs_inbox *inbox;
        struct rs_gate gate;
        struct rs_cleanup given_up;
        bool queued; /* with the lock of the lines */
};

/* The other thread gets on. */
static inline void rs_pause(void)
{
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        __asm__ volatile("yield");
#endif
}

static int refuse(int code, const char *text)
{
        resha_error e = { .code = code };

        snprintf(e.text, sizeof e.text, "%s", text);
        rs_error_give(rs_loop_current, &e);
        return code;
}

static bool of_parent(const struct channel *c)
{
        return c->forks != rs_forks;
}

static __attribute__((cold, noinline)) int refuse_child(void)
{
        return refuse(-EPERM, "the channel is the parent process's: make another one in the child");
}

/* ---- made ---- */

static int check_opts(size_t item_size, size_t capacity, const resha_channel_opts *o)
{
        size_t bytes;

        if (!item_size || item_size > ITEM_MAX)
                return refuse(-EINVAL, "a channel has items of 1 to 65536 bytes");
        if (!capacity || __builtin_mul_overflow(item_size, capacity, &bytes))
                return refuse(-EINVAL, "a channel has a capacity of 1 item or more, that memory can hold");
        if (!rs_reserved_zero(o->_reserved))
                return refuse(-EINVAL, "options of a channel: reserved words must be zero");
        return 0;
}

int resha_channel_new_opt(size_t item_size, size_t capacity, const resha_channel_opts *opts, resha_sender **ret_sender,
                          resha_receiver **ret_receiver)
{
        static const resha_channel_opts defaults;
        const resha_channel_opts *o = opts ? opts : &defaults;
        int rc = check_opts(item_size, capacity, o);

        if (rc < 0)
                return rc;
        struct channel *c = resha_malloc(sizeof *c);
        char *items = resha_malloc(item_size * capacity);
        if (!c || !items) {
                resha_free(c);
                resha_free(items);
                return refuse(-ENOMEM, "no memory for a channel");
        }
        *c = (struct channel){ .item_size = item_size,
                               .capacity = capacity,
                               .items = items,
                               .end = items + item_size * capacity,
                               .drop = o->drop,
                               .forks = rs_forks,
                               .ends = 2,
                               .lock = RS_LOCK_INIT,
                               .tx = { .at = items, .users = 1 },
                               .rx = { .at = items, .users = 1 } };
        *ret_sender = (resha_sender *)(void *)c;
        *ret_receiver = (resha_receiver *)(void *)c;
        return 0;
}

int resha_channel_new(size_t item_size, size_t capacity, resha_sender **ret_sender, resha_receiver **ret_receiver)
{
        return resha_channel_new_opt(item_size, capacity, NULL, ret_sender, ret_receiver);
}

/* ---- the ring ---- */

static __attribute__((noinline)) void lock_contended(struct side *s)
{
        for (unsigned n = 0; __atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE); n++)
                while (__atomic_load_n(&s->lock, __ATOMIC_RELAXED))
                        if (++n < SPINS)
                                rs_pause();
                        else
                                rs_sys_yield();
}

static inline void lock_side(struct side *s)
{
        if (RS_UNLIKELY(__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE)))
                lock_contended(s);
}

static inline void unlock_side(struct side *s)
{
        __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static inline void copy_item(void *to, const void *from, size_t size)
{
        if (size == sizeof(uint64_t))
                memcpy(to, from, sizeof(uint64_t));
        else if (size == sizeof(uint32_t))
                memcpy(to, from, sizeof(uint32_t));
        else
                memcpy(to, from, size);
}

/* One item further; the other side sees it. With the lock of the side. */
static inline void advance(struct channel *c, struct side *s)
{
        s->at += c->item_size;
        if (s->at == c->end)
                s->at = c->items;
        __atomic_store_n(&s->place, s->place + 1, __ATOMIC_SEQ_CST);
}

/* Places that the senders have. With their lock. */
static inline bool has_room(struct channel *c)
{
        if (RS_LIKELY(c->tx.place - c->tx.seen < c->capacity))
                return true;
        c->tx.seen = __atomic_load_n(&c->rx.place, __ATOMIC_ACQUIRE);
        return c->tx.place - c->tx.seen < c->capacity;
}

/* With the receivers' lock. */
static inline bool has_item(struct channel *c)
{
        if (RS_LIKELY(c->rx.seen != c->rx.place))
                return true;
        c->rx.seen = __atomic_load_n(&c->tx.place, __ATOMIC_ACQUIRE);
        return c->rx.seen != c->rx.place;
}

/* ---- the lines ---- */

/* Takes the first one out of the line and tells it to try again. With the lock of the lines. */
static bool tell_first(struct side *s)
{
        struct rs_node *n = rs_list_pop(&s->line);

        if (!n)
                return false;
        struct waiter *w = RS_CONTAINER(n, struct waiter, wait.node);
        w->queued = false;
        __atomic_store_n(&s->waiting, s->waiting - 1, __ATOMIC_SEQ_CST);
        if (!w->loop)
                rs_gate_open(&w->gate);
        else if (w->loop == rs_loop_current)
                rs_wake(&w->wait, 0);
        else
                rs_inbox_post(w->inbox, &w->post);
        return true;
}

static __attribute__((noinline)) void wake_one(struct channel *c, struct side *s)
{
        rs_lock(&c->lock);
        tell_first(s);
        rs_unlock(&c->lock);
}

static void wake_all(struct channel *c, struct side *s)
{
        rs_lock(&c->lock);
        while (tell_first(s))
                ;
        rs_unlock(&c->lock);
}

/* With the lock of the lines. */
static bool leave_line(struct waiter *w)
{
        bool was = w->queued;

        if (was) {
                rs_list_remove(&w->side->line, &w->wait.node);
                __atomic_store_n(&w->side->waiting, w->side->waiting - 1, __ATOMIC_SEQ_CST);
        }
        w->queued = false;
        return was;
}

/* ---- without waiting ---- */

static inline int try_send(struct channel *c, const void *item)
{
        int rc = 1;

        lock_side(&c->tx);
        if (RS_UNLIKELY(__atomic_load_n(&c->rx.closed, __ATOMIC_ACQUIRE))) {
                rc = 0;
        } else if (RS_UNLIKELY(!has_room(c))) {
                rc = -EAGAIN;
        } else {
                copy_item(c->tx.at, item, c->item_size);
                advance(c, &c->tx);
        }
        unlock_side(&c->tx);
        if (rc == 1 && RS_UNLIKELY(__atomic_load_n(&c->rx.waiting, __ATOMIC_SEQ_CST)))
                wake_one(c, &c->rx);
        return rc;
}

static inline int try_recv(struct channel *c, void *ret_item)
{
        int rc = 1;

        lock_side(&c->rx);
        if (RS_UNLIKELY(!has_item(c))) {
                /* What was sent before the close is looked for once more after it is seen. */
                bool closed = __atomic_load_n(&c->tx.closed, __ATOMIC_ACQUIRE);
                rc = has_item(c) ? 1 : closed ? 0 : -EAGAIN;
        }
        if (rc == 1) {
                copy_item(ret_item, c->rx.at, c->item_size);
                advance(c, &c->rx);
        }
        unlock_side(&c->rx);
        if (rc == 1 && RS_UNLIKELY(__atomic_load_n(&c->tx.waiting, __ATOMIC_SEQ_CST)))
                wake_one(c, &c->tx);
        return rc;
}

static inline int try_side(struct channel *c, bool send, void *item)
{
        return send ? try_send(c, item) : try_recv(c, item);
}

/* Whether a try would not give -EAGAIN; without locks, for one who then tries. */
static bool looks_ready(const struct channel *c, bool send)
{
        uint64_t received = __atomic_load_n(&c->rx.place, __ATOMIC_SEQ_CST);
        uint64_t sent = __atomic_load_n(&c->tx.place, __ATOMIC_SEQ_CST);

        if (send)
                return __atomic_load_n(&c->rx.closed, __ATOMIC_SEQ_CST) || sent - received < c->capacity;
        return __atomic_load_n(&c->tx.closed, __ATOMIC_SEQ_CST) || sent != received;
}

/* ---- waiting ---- */

static void posted(struct rs_post *post)
{
        rs_wake(&RS_CONTAINER(post, struct waiter, post)->wait, 0);
}

static void cancel(struct rs_wait *wait)
{
        struct waiter *w = RS_CONTAINER(wait, struct waiter, wait);

        rs_lock(&w->channel->lock);
        bool was = leave_line(w);
        rs_unlock(&w->channel->lock);
        if (was)
                rs_wake(wait, -ECANCELED);
}

/* The run leaves the task where it is: what it was told is for another one. */
static void give_up(struct rs_cleanup *cleanup)
{
        struct waiter *w = RS_CONTAINER(cleanup, struct waiter, given_up);

        rs_lock(&w->channel->lock);
        if (!leave_line(w))
                tell_first(w->side);
        rs_unlock(&w->channel->lock);
}

/* Into the line of its side; false: there is something to do instead. */
static bool stand(struct waiter *w, bool send)
{
        struct channel *c = w->channel;

        rs_lock(&c->lock);
        rs_list_push(&w->side->line, &w->wait.node);
        w->queued = true;
        __atomic_store_n(&w->side->waiting, w->side->waiting + 1, __ATOMIC_SEQ_CST);
        if (looks_ready(c, send))
                leave_line(w);
        bool queued = w->queued;
        rs_unlock(&c->lock);
        return queued;
}

/* The other side moves: what is wanted is likely there sooner than a sleep takes. */
static bool spin(const struct rs_loop *l, const struct channel *c, bool send)
{
        const uint64_t *place = send ? &c->rx.place : &c->tx.place;
        uint64_t last = __atomic_load_n(place, __ATOMIC_RELAXED);
        unsigned idle = 0;

        if (l->simulated || l->ready_first)
                return false;
        while (!looks_ready(c, send)) {
                uint64_t now = __atomic_load_n(place, __ATOMIC_RELAXED);
                idle = now == last ? idle + 1 : 0;
                last = now;
                if (idle == IDLE_LOOKS || rs_ticks() >= l->poll_ticks)
                        return false;
                rs_pause();
        }
        return true;
}

/* 0: try again; -ECANCELED. */
static int park(struct rs_loop *l, struct channel *c, bool send)
{
        struct waiter w = { .wait = { .cancel = cancel, .what = send ? "place in channel" : "item of channel" },
                            .post = { .fn = posted, .quiet = true },
                            .channel = c,
                            .side = send ? &c->tx : &c->rx,
                            .loop = l,
                            .inbox = l->inbox,
                            .given_up = { .fn = give_up } };

        w.wait.object = c;
        if (spin(l, c, send) || !stand(&w, send))
                return 0;
        rs_list_push(&l->given_up, &w.given_up.node);
        l->jobs++;
        int rc = (int)rs_wait(l, &w.wait);
        l->jobs--;
        rs_list_remove(&l->given_up, &w.given_up.node);
        return rc;
}

static __attribute__((noinline)) int wait_side(struct rs_loop *l, struct channel *c, bool send, void *item)
{
        int rc;

        do {
                rc = park(l, c, send);
                if (rc < 0)
                        return rc;
                rc = try_side(c, send, item);
        } while (rc == -EAGAIN && (rc = rs_enter(&l)) == 0);
        return rc < 0 ? rc : rs_complete(l, rc);
}

int resha_send(resha_sender *s, const void *item)
{
        struct channel *c = (struct channel *)(void *)s;
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_UNLIKELY(of_parent(c)))
                return refuse_child();
        rc = try_send(c, item);
        return RS_LIKELY(rc != -EAGAIN) ? rs_complete(l, rc) : wait_side(l, c, true, (void *)(uintptr_t)item);
}

int resha_recv(resha_receiver *r, void *ret_item)
{
        struct channel *c = (struct channel *)(void *)r;
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_UNLIKELY(of_parent(c)))
                return refuse_child();
        rc = try_recv(c, ret_item);
        return RS_LIKELY(rc != -EAGAIN) ? rs_complete(l, rc) : wait_side(l, c, false, ret_item);
}

int resha_try_send(resha_sender *s, const void *item)
{
        struct channel *c = (struct channel *)(void *)s;

        return of_parent(c) ? refuse_child() : try_send(c, item);
}

int resha_try_recv(resha_receiver *r, void *ret_item)
{
        struct channel *c = (struct channel *)(void *)r;

        return of_parent(c) ? refuse_child() : try_recv(c, ret_item);
}

/* ---- on threads ---- */

/* False: the deadline has passed. */
static bool block(struct channel *c, bool send, int64_t deadline)
{
        struct waiter w = { .channel = c, .side = send ? &c->tx : &c->rx };

        if (!stand(&w, send) || rs_gate_wait(&w.gate, deadline))
                return true;
        rs_lock(&c->lock);
        bool late = leave_line(&w);
        rs_unlock(&c->lock);
        return !late;
}

static int block_side(struct channel *c, bool send, void *item, resha_duration at_most)
{
        if (of_parent(c))
                return refuse_child();
        if (rs_loop_current)
                return rs_misuse(-EDEADLK, "a blocking call of a channel would stop the loop that this thread runs: "
                                           "resha_send() and resha_recv() are for tasks");
        int64_t deadline = at_most.ns == INT64_MAX ? INT64_MAX
                           : at_most.ns <= 0       ? 0
                                                   : rs_time_add(rs_sys_now(), at_most.ns);
        int rc = try_side(c, send, item);

        while (rc == -EAGAIN && deadline > 0 && block(c, send, deadline))
                rc = try_side(c, send, item);
        return rc == -EAGAIN ? refuse(-ETIME, send ? "the channel was full for all of the time"
                                                   : "the channel was empty for all of the time")
                             : rc;
}

int resha_send_blocking(resha_sender *s, const void *item, resha_duration at_most)
{
        return block_side((struct channel *)(void *)s, true, (void *)(uintptr_t)item, at_most);
}

int resha_recv_blocking(resha_receiver *r, void *ret_item, resha_duration at_most)
{
        return block_side((struct channel *)(void *)r, false, ret_item, at_most);
}

/* ---- references and ends ---- */

static void ref(struct channel *c, struct side *s)
{
        if (!of_parent(c))
                __atomic_add_fetch(&s->users, 1, __ATOMIC_RELAXED);
}

resha_sender *resha_sender_ref(resha_sender *s)
{
        if (s)
                ref((struct channel *)(void *)s, &((struct channel *)(void *)s)->tx);
        return s;
}

resha_receiver *resha_receiver_ref(resha_receiver *r)
{
        if (r)
                ref((struct channel *)(void *)r, &((struct channel *)(void *)r)->rx);
        return r;
}

/* Nobody sends or receives any more. */
static void drop_rest(struct channel *c)
{
        uint64_t sent = __atomic_load_n(&c->tx.place, __ATOMIC_ACQUIRE);

        while (c->rx.place != sent) {
                char *item = c->rx.at;
                advance(c, &c->rx);
                if (c->drop)
                        c->drop(item);
        }
}

/* One end is done with. */
static void end_done(struct channel *c)
{
        if (__atomic_sub_fetch(&c->ends, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        resha_free(c->items);
        resha_free(c);
}

static bool is_last(struct channel *c, struct side *s)
{
        return !of_parent(c) && __atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL) == 0;
}

void resha_sender_close(resha_sender *s)
{
        struct channel *c = (struct channel *)(void *)s;

        if (!c || !is_last(c, &c->tx))
                return;
        __atomic_store_n(&c->tx.closed, true, __ATOMIC_SEQ_CST);
        wake_all(c, &c->rx);
        end_done(c);
}

void resha_receiver_close(resha_receiver *r)
{
        struct channel *c = (struct channel *)(void *)r;

        if (!c || !is_last(c, &c->rx))
                return;
        lock_side(&c->tx);
        __atomic_store_n(&c->rx.closed, true, __ATOMIC_SEQ_CST);
        unlock_side(&c->tx);
        wake_all(c, &c->tx);
        drop_rest(c);
        end_done(c);
}

void resha_sender_closep(resha_sender **s)
{
        resha_sender_close(*s);
        *s = NULL;
}

void resha_receiver_closep(resha_receiver **r)
{
        resha_receiver_close(*r);
        *r = NULL;
}
