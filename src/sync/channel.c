/* SPDX-License-Identifier: MIT */
/* Channels: a ring between two sides, each of which has its own lock and its own cache line.
 *
 * A place of the ring holds an item, and whose turn it is: even, the senders'; odd, the receivers'. Who has used it
 * adds one. So a side sees by its next place alone whether there is something to do, and while both are busy a send or
 * receive is a lock that mostly nobody else wants, a copy and a store; what goes from one processor to the other is the
 * place itself. The locks are held for these few instructions; who finds one taken spins, and then gives the processor
 * away, since the holder may have lost its own, and sleeps, since it may be of lower priority. Waiting is in
 * channel_wait.c.
 *
 *     turn of a place: 2n --send--> 2n + 1 --receive, drop--> 2n + 2, in round n
 *
 * Invariants
 *  1. passed of the receivers <= passed of the senders <= passed of the receivers + capacity.
 *  2. A side first moves the turn, and then looks whether somebody waits on the other; who waits first says so, and
 *     then looks at the turn: one of the two sees the other.
 *  3. closed of the receivers is set under the senders' lock: no item comes after it, and what is inside is dropped
 *     by whoever set it. */

#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "sync/channel.h"
#include "sync/item.h"
#include "sys/sys.h"

enum { ITEM_MAX = 65536, LOCK_LOOKS = 100, APART = 64 /* from other memory's cache lines */ };

int rs_channel_refuse(int code, const char *text)
{
        resha_error e = { .code = code };

        snprintf(e.text, sizeof e.text, "%s", text);
        rs_error_give(rs_loop_current, &e);
        return code;
}

static inline bool of_parent(const struct rs_channel *c)
{
        return c->forks != rs_forks;
}

static inline struct rs_channel *of_sender(resha_sender *s)
{
        return (struct rs_channel *)(void *)s;
}

static inline struct rs_channel *of_receiver(resha_receiver *r)
{
        return (struct rs_channel *)(void *)r;
}

/* ---- made ---- */

static int check_opts(size_t item_size, size_t capacity, const resha_channel_opts *o)
{
        size_t bytes;

        if (!item_size || item_size > ITEM_MAX)
                return rs_channel_refuse(-EINVAL, "a channel has items of 1 to 65536 bytes");
        if (!capacity || __builtin_mul_overflow(2 * item_size + 64, capacity, &bytes))
                return rs_channel_refuse(-EINVAL, "a channel has a capacity of 1 item or more, that memory can hold");
        if (!rs_reserved_zero(o->_reserved))
                return rs_channel_refuse(-EINVAL, "options of a channel: reserved words must be zero");
        return 0;
}

static size_t round_up(size_t n, size_t to)
{
        return (n + to - 1) / to * to;
}

/* Items are aligned as an array of them would be. */
static size_t stride_of(size_t item_size)
{
        size_t align = item_size & -item_size;

        return round_up(round_up(item_size, sizeof(uint32_t)) + sizeof(uint32_t), align < sizeof(uint32_t)
                                                                                          ? sizeof(uint32_t)
                                                                                  : align > 16 ? 16
                                                                                               : align);
}

int resha_channel_new_opt(size_t item_size, size_t capacity, const resha_channel_opts *opts, resha_sender **ret_sender,
                          resha_receiver **ret_receiver)
{
        static const resha_channel_opts defaults;
        const resha_channel_opts *o = opts ? opts : &defaults;
        int rc = check_opts(item_size, capacity, o);

        if (rc < 0)
                return rc;
        struct rs_channel *c = resha_malloc(sizeof *c);
        char *memory = resha_calloc(1, capacity * stride_of(item_size) + 2 * APART);
        if (!c || !memory) {
                resha_free(c);
                resha_free(memory);
                return rs_channel_refuse(-ENOMEM, "no memory for a channel");
        }
        char *places = memory + APART;
        *c = (struct rs_channel){ .item_size = item_size,
                                  .capacity = capacity,
                                  .turn_at = round_up(item_size, sizeof(uint32_t)),
                                  .stride = stride_of(item_size),
                                  .places = places,
                                  .end = places + capacity * stride_of(item_size),
                                  .drop = o->drop,
                                  .spins = !rs_sys_has_one_processor(),
                                  .forks = rs_forks,
                                  .ends = 2,
                                  .lock = RS_LOCK_INIT,
                                  .tx = { .at = places, .turn = 0, .users = 1 },
                                  .rx = { .at = places, .turn = 1, .users = 1 } };
        *ret_sender = (resha_sender *)(void *)c;
        *ret_receiver = (resha_receiver *)(void *)c;
        return 0;
}

int resha_channel_new(size_t item_size, size_t capacity, resha_sender **ret_sender, resha_receiver **ret_receiver)
{
        return resha_channel_new_opt(item_size, capacity, NULL, ret_sender, ret_receiver);
}

/* ---- the ring ---- */

static __attribute__((noinline)) void lock_contended(struct rs_channel_side *s)
{
        for (unsigned n = 0; __atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE);)
                while (__atomic_load_n(&s->lock, __ATOMIC_RELAXED))
                        if (n++ < LOCK_LOOKS)
                                rs_pause();
                        else
                                rs_sys_yield(n - LOCK_LOOKS);
}

static inline void lock_side(struct rs_channel_side *s)
{
        if (RS_UNLIKELY(__atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE)))
                lock_contended(s);
}

static inline void unlock_side(struct rs_channel_side *s)
{
        __atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static inline uint32_t *turn_at(const struct rs_channel *c, char *place)
{
        return (uint32_t *)(void *)(place + c->turn_at);
}

/* Whether the side's next place is its own. With its lock. */
static inline bool is_ready(const struct rs_channel *c, const struct rs_channel_side *s)
{
        return __atomic_load_n(turn_at(c, s->at), __ATOMIC_ACQUIRE) == s->turn;
}

/* That place is the other side's now. With the lock of the side. */
static inline void advance(struct rs_channel *c, struct rs_channel_side *s)
{
        uint32_t *turn = turn_at(c, s->at);
        uint32_t next = s->turn + 1;

        s->at += c->stride;
        if (s->at == c->end) {
                s->at = c->places;
                s->turn += 2;
        }
        __atomic_store_n(&s->passed, s->passed + 1, __ATOMIC_RELAXED);
        __atomic_store_n(turn, next, __ATOMIC_SEQ_CST);
}

/* A place that is behind the side's by now looks ready, too: only one that the other side still has does not. */
bool rs_channel_looks_ready(struct rs_channel *c, bool send)
{
        uint64_t n = __atomic_load_n(&rs_channel_side(c, send)->passed, __ATOMIC_SEQ_CST);
        char *place = c->places + n % c->capacity * c->stride;
        uint32_t before = (uint32_t)(2 * (n / c->capacity)) - send;

        return __atomic_load_n(&rs_channel_side(c, !send)->closed, __ATOMIC_SEQ_CST) ||
               __atomic_load_n(turn_at(c, place), __ATOMIC_SEQ_CST) != before;
}

static inline __attribute__((always_inline)) int try_side(struct rs_channel *c, bool send, void *item)
{
        struct rs_channel_side *s = send ? &c->tx : &c->rx, *other = send ? &c->rx : &c->tx;
        int rc = 1;

        lock_side(s);
        if (send && RS_UNLIKELY(__atomic_load_n(&other->closed, __ATOMIC_ACQUIRE))) {
                rc = 0;
        } else if (RS_UNLIKELY(!is_ready(c, s))) {
                /* What was sent before the close is looked for once more after it is seen. */
                bool closed = !send && __atomic_load_n(&other->closed, __ATOMIC_ACQUIRE);
                rc = closed && is_ready(c, s) ? 1 : closed ? 0 : -EAGAIN;
        }
        if (RS_LIKELY(rc == 1)) {
                rs_item_copy(send ? s->at : item, send ? item : s->at, c->item_size);
                advance(c, s);
        }
        unlock_side(s);
        if (rc == 1 && RS_UNLIKELY(__atomic_load_n(&other->waiting, __ATOMIC_SEQ_CST)))
                rs_channel_wake_one(c, other);
        return rc;
}

static __attribute__((cold, noinline)) int refuse_child(void)
{
        return rs_channel_refuse(-EPERM, "the channel is the parent process's: make another one in the child");
}

int rs_channel_try(struct rs_channel *c, bool send, void *item)
{
        if (RS_UNLIKELY(of_parent(c)))
                return refuse_child();
        return send ? try_side(c, true, item) : try_side(c, false, item);
}

/* ---- for tasks ---- */

static inline __attribute__((always_inline)) int do_side(struct rs_loop *l, struct rs_channel *c, bool send, void *item)
{
        if (RS_UNLIKELY(of_parent(c)))
                return refuse_child();
        int rc = try_side(c, send, item);
        return RS_LIKELY(rc != -EAGAIN) ? rs_complete(l, rc) : rs_channel_wait(l, c, send, item);
}

int resha_send(resha_sender *s, const void *item)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return RS_UNLIKELY(rc < 0) ? rc : do_side(l, of_sender(s), true, (void *)(uintptr_t)item);
}

int resha_recv(resha_receiver *r, void *ret_item)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return RS_UNLIKELY(rc < 0) ? rc : do_side(l, of_receiver(r), false, ret_item);
}

int resha_try_send(resha_sender *s, const void *item)
{
        return rs_channel_try(of_sender(s), true, (void *)(uintptr_t)item);
}

int resha_try_recv(resha_receiver *r, void *ret_item)
{
        return rs_channel_try(of_receiver(r), false, ret_item);
}

/* ---- references and ends ---- */

static void ref(struct rs_channel *c, struct rs_channel_side *s)
{
        if (!of_parent(c))
                __atomic_add_fetch(&s->users, 1, __ATOMIC_RELAXED);
}

resha_sender *resha_sender_ref(resha_sender *s)
{
        if (s)
                ref(of_sender(s), &of_sender(s)->tx);
        return s;
}

resha_receiver *resha_receiver_ref(resha_receiver *r)
{
        if (r)
                ref(of_receiver(r), &of_receiver(r)->rx);
        return r;
}

/* Nobody sends or receives any more. */
static void drop_rest(struct rs_channel *c)
{
        struct rs_loop *l = rs_loop_current;
        size_t lost = 0;

        while (is_ready(c, &c->rx)) {
                char *item = c->rx.at;
                advance(c, &c->rx);
                lost += !c->drop;
                if (c->drop)
                        c->drop(item);
        }
        if (RS_UNLIKELY(l && l->debug && lost))
                rs_report(
                        l, RESHA_REPORT_DROPPED, 0, l->current,
                        "%zu item%s of a channel %s dropped when its last receiver was closed; receive them before, or "
                        "give it a drop function",
                        lost, lost == 1 ? "" : "s", lost == 1 ? "was" : "were");
}

/* One end is done with. */
static void end_done(struct rs_channel *c)
{
        if (__atomic_sub_fetch(&c->ends, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        resha_free(c->places - APART);
        resha_free(c);
}

static bool is_last(struct rs_channel *c, struct rs_channel_side *s)
{
        return !of_parent(c) && __atomic_sub_fetch(&s->users, 1, __ATOMIC_ACQ_REL) == 0;
}

void resha_sender_close(resha_sender *s)
{
        struct rs_channel *c = of_sender(s);

        if (!c || !is_last(c, &c->tx))
                return;
        __atomic_store_n(&c->tx.closed, true, __ATOMIC_SEQ_CST);
        rs_channel_wake_all(c, &c->rx);
        end_done(c);
}

void resha_receiver_close(resha_receiver *r)
{
        struct rs_channel *c = of_receiver(r);

        if (!c || !is_last(c, &c->rx))
                return;
        lock_side(&c->tx);
        __atomic_store_n(&c->rx.closed, true, __ATOMIC_SEQ_CST);
        unlock_side(&c->tx);
        rs_channel_wake_all(c, &c->tx);
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
