/* SPDX-License-Identifier: MIT */
/* Channels: who must wait.
 *
 * A waiter stands in the line of its side. It says so in `waiting`, and then looks at the ring once more; the other
 * side moves the ring, and then looks at `waiting`: one of the two sees the other. Who is told tries again, and may
 * find that others were faster. A cancel that comes after that changes nothing but that no further wait begins: so
 * nothing is lost or doubled, and what one is told is only ever for one who looks at the ring, or passes it on.
 *
 *     LINE --wake_one, wake_all--> told --post, gate, rs_wake--> tries again
 *        \------ cancel, deadline, given up: out of the line ------/
 *
 * Before a task waits it spins a little, if nobody else is ready on its loop: a wake-up through the kernel takes longer
 * than what it waits for, mostly, and two that sleep in turn would go on to do so. How long is learned: it is halved by
 * each spin that was in vain, and each RETRY-th is a long one. So what has to wait for long anyway pays little. On one
 * processor nobody spins.
 *
 * Invariants
 *  1. A waiter in a line belongs to a loop that has not ended: the end of a run takes its waiters out of the lines
 *     before its inbox is closed. Posts are made under the lock of the lines, and only for those in it.
 *  2. A caller's memory stays until its post has run. */

#include <stdio.h>
#include <string.h>

#include "sync/channel.h"
#include "sync/waited.h"
#include "sys/sys.h"
#include "sys/ticks.h"

enum { PAUSES = 8, RETRY = 16 };

/* ---- the lines ---- */

/* Takes the first one out of the line and tells it to try again. With the lock of the lines. */
static bool tell_first(struct rs_channel_side *s)
{
        struct rs_node *n = rs_list_pop(&s->line);

        if (!n)
                return false;
        struct rs_channel_waiter *w = RS_CONTAINER(n, struct rs_channel_waiter, wait.node);
        struct rs_channel_caller *who = w->caller;
        w->side = NULL;
        __atomic_store_n(&s->waiting, s->waiting - 1, __ATOMIC_SEQ_CST);
        if (!who->inbox)
                rs_gate_open(&who->gate);
        else if (who->loop && who->loop == rs_loop_current)
                rs_wake(&w->wait, 0);
        else if (!__atomic_exchange_n(&who->posted, true, __ATOMIC_ACQ_REL))
                rs_inbox_post(who->inbox, &who->post);
        return true;
}

void rs_channel_wake_one(struct rs_channel *c, struct rs_channel_side *s)
{
        rs_lock(&c->lock);
        tell_first(s);
        rs_unlock(&c->lock);
}

void rs_channel_wake_all(struct rs_channel *c, struct rs_channel_side *s)
{
        rs_lock(&c->lock);
        while (tell_first(s))
                ;
        rs_unlock(&c->lock);
}

/* With the lock of the lines. */
static bool leave(struct rs_channel_waiter *w)
{
        struct rs_channel_side *s = w->side;

        if (!s)
                return false;
        rs_list_remove(&s->line, &w->wait.node);
        __atomic_store_n(&s->waiting, s->waiting - 1, __ATOMIC_SEQ_CST);
        w->side = NULL;
        return true;
}

bool rs_channel_stand(struct rs_channel_waiter *w, struct rs_channel *c, bool send)
{
        rs_lock(&c->lock);
        w->side = rs_channel_side(c, send);
        rs_list_push(&w->side->line, &w->wait.node);
        __atomic_store_n(&w->side->waiting, w->side->waiting + 1, __ATOMIC_SEQ_CST);
        if (rs_channel_looks_ready(c, send))
                leave(w);
        bool stands = w->side != NULL;
        rs_unlock(&c->lock);
        return stands;
}

bool rs_channel_stands(struct rs_channel_waiter *w, struct rs_channel *c)
{
        rs_lock(&c->lock);
        bool stands = w->side != NULL;
        rs_unlock(&c->lock);
        return stands;
}

bool rs_channel_leave(struct rs_channel_waiter *w, struct rs_channel *c)
{
        rs_lock(&c->lock);
        bool was = leave(w);
        rs_unlock(&c->lock);
        return was;
}

void rs_channel_quit(struct rs_channel_waiter *w, struct rs_channel *c, bool send)
{
        rs_lock(&c->lock);
        if (!leave(w))
                tell_first(rs_channel_side(c, send));
        rs_unlock(&c->lock);
}

/* ---- a spin ---- */

/* Of one call: when the other side last moved, as far as is known; how long it may stand still. Ticks. */
struct spin {
        uint64_t moved, patience;
};

/* Whether to try again; false: it is time to sleep. While the other side moves it is left alone until there is a batch
 * to do: each look takes its cache lines away. */
static bool look_for(struct rs_loop *l, struct rs_channel *c, bool send, struct spin *s)
{
        const uint64_t *other = &rs_channel_side(c, !send)->passed;
        uint64_t batch = (c->capacity + 1) / 2, first = __atomic_load_n(other, __ATOMIC_RELAXED);

        for (uint64_t last = first, now = first;; last = now) {
                for (uint64_t i = 0; i < PAUSES; i++)
                        rs_pause();
                if (batch > 1)
                        now = __atomic_load_n(other, __ATOMIC_RELAXED);
                if ((now == last || now - first >= batch) && rs_channel_looks_ready(c, send))
                        return true;
                uint64_t ticks = rs_ticks();
                if (now != last)
                        s->moved = ticks;
                else if (ticks - s->moved > s->patience)
                        return false;
                if (ticks >= l->poll_ticks) { /* the loop's turn, which has nothing to do */
                        rs_yield(l);
                        return true;
                }
        }
}

static void spin_begin(struct rs_channel_side *side, struct spin *s)
{
        bool retry = __atomic_fetch_add(&side->spins, 1, __ATOMIC_RELAXED) % RETRY == 0;

        s->moved = rs_ticks();
        s->patience = retry ? rs_ticks_poll() : __atomic_load_n(&side->patience, __ATOMIC_RELAXED);
}

/* True: try again. */
static bool spin(struct rs_loop *l, struct rs_channel *c, bool send, struct spin *s)
{
        struct rs_channel_side *side = rs_channel_side(c, send);

        if (!c->spins || l->simulated || l->ready_first)
                return false;
        if (!s->moved)
                spin_begin(side, s);
        bool again = look_for(l, c, send, s);
        __atomic_store_n(&side->patience, again ? rs_ticks_poll() : s->patience / 2, __ATOMIC_RELAXED);
        return again;
}

/* ---- tasks ---- */

struct call {
        struct rs_channel_waiter waiter;
        struct rs_channel_caller caller;
        struct rs_channel *channel;
        struct rs_cleanup given_up;
        bool send;
};

static void told(struct rs_post *post)
{
        rs_wake(&RS_CONTAINER(post, struct call, caller.post)->waiter.wait, 0);
}

static void cancel(struct rs_wait *wait)
{
        struct call *call = RS_CONTAINER(wait, struct call, waiter.wait);

        if (rs_channel_leave(&call->waiter, call->channel))
                rs_wake(wait, -ECANCELED);
}

static void give_up(struct rs_cleanup *cleanup)
{
        struct call *call = RS_CONTAINER(cleanup, struct call, given_up);

        rs_channel_quit(&call->waiter, call->channel, call->send);
}

/* 0: try again; -ECANCELED. */
static int park(struct rs_loop *l, struct rs_channel *c, bool send, struct spin *s)
{
        struct call call = {
                .waiter.wait = { .cancel = cancel, .what = send ? "place in channel" : "item of channel", .object = c },
                .caller = { .post = { .fn = told, .quiet = true }, .inbox = l->inbox, .loop = l },
                .channel = c,
                .given_up.fn = give_up,
                .send = send
        };

        call.waiter.caller = &call.caller;
        if (spin(l, c, send, s) || !rs_channel_stand(&call.waiter, c, send))
                return 0;
        rs_list_push(&l->given_up, &call.given_up.node);
        rs_channel_outside(l, 1);
        int rc = (int)rs_wait(l, &call.waiter.wait);
        rs_channel_outside(l, -1);
        rs_list_remove(&l->given_up, &call.given_up.node);
        return rc;
}

int rs_channel_wait(struct rs_loop *l, struct rs_channel *c, bool send, void *item)
{
        struct spin s = { 0 };
        int rc;

        do {
                rc = park(l, c, send, &s);
                if (rc < 0)
                        return rc;
                rc = rs_channel_try(c, send, item);
        } while (rc == -EAGAIN && (rc = rs_enter(&l)) == 0);
        return rc < 0 ? rc : rs_complete(l, rc);
}

/* ---- threads ---- */

/* False: the deadline has passed. */
static bool block(struct rs_channel *c, bool send, int64_t deadline)
{
        struct rs_channel_caller caller = { .inbox = NULL };
        struct rs_channel_waiter w = { .caller = &caller };

        if (!rs_channel_stand(&w, c, send) || rs_gate_wait(&caller.gate, deadline))
                return true;
        return !rs_channel_leave(&w, c);
}

static int block_side(struct rs_channel *c, bool send, void *item, resha_duration at_most)
{
        if (rs_loop_current)
                return rs_misuse(-EDEADLK, "a blocking call of a channel would stop the loop that this thread runs: "
                                           "resha_send() and resha_recv() are for tasks");
        int64_t deadline = at_most.ns == INT64_MAX ? INT64_MAX
                           : at_most.ns <= 0       ? 0
                                                   : rs_time_add(rs_sys_now(), at_most.ns);
        int rc = rs_channel_try(c, send, item);

        while (rc == -EAGAIN && deadline > 0 && block(c, send, deadline))
                rc = rs_channel_try(c, send, item);
        return rc == -EAGAIN ? rs_channel_refuse(-ETIME, send ? "the channel was full for all of the time"
                                                              : "the channel was empty for all of the time")
                             : rc;
}

int resha_send_blocking(resha_sender *s, const void *item, resha_duration at_most)
{
        return block_side((struct rs_channel *)(void *)s, true, (void *)(uintptr_t)item, at_most);
}

int resha_recv_blocking(resha_receiver *r, void *ret_item, resha_duration at_most)
{
        return block_side((struct rs_channel *)(void *)r, false, ret_item, at_most);
}

/* ---- for who looks from outside ---- */

static void channel_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                        struct rs_waited *ret)
{
        struct rs_channel c;

        (void)at;
        if (!r->read(&c, w->object, sizeof c))
                return;
        ret->kind = "channel";
        ret->held = (size_t)(c.tx.passed - c.rx.passed);
        ret->limit = c.capacity;
        ret->waiting = c.tx.waiting + c.rx.waiting;
        snprintf(ret->state, sizeof ret->state, "%zu of %zu items, %u wait to send, %u to receive", ret->held,
                 ret->limit, c.tx.waiting, c.rx.waiting);
}

const struct rs_waits rs_channel_waits = { .cancel = cancel, .shared = true, .see = channel_see };
