/* SPDX-License-Identifier: MIT */
/* The crew behind thread pools and name look-ups.
 *
 * One thread at a time is called to work: an idle one is signalled, or a new one started. Once it has come and taken
 * a work, it calls the next one if there is more. So a burst of short works is done by the few threads that are
 * awake, without a signal for each, and one of long works still gets all the threads there may be; and it is the
 * threads that start each other, not the loop. A busy thread looks at the queue by itself.
 *
 * An idle thread sits at a gate of its own, out of the lock: who calls takes it from the seats under the lock and opens
 * its gate when that is given up, so that the two never meet at the lock. The last that sat down is called first.
 *
 * Threads can be joined by one that goes after them: who leaves puts itself in the place of the last one that left, and
 * joins that one, which has nothing to do but return. So at most one is ever left over, for rest() to join. */

#include "sys/workers.h"

#include <errno.h>

#include "sys/sys.h"

/* Of an idle thread, on its stack. */
struct seat {
        struct rs_node node;
        struct rs_gate gate;
        bool taken; /* in the list */
};

static void *worker(void *arg);

/* With the lock; rs_workers_queued() looks without. */
static void queued_add(struct rs_workers *c, int n)
{
        __atomic_store_n(&c->queued, c->queued + (size_t)n, __ATOMIC_RELAXED);
}

/* With the lock. */
static struct rs_gate *stand_up(struct rs_workers *c, struct seat *s)
{
        rs_list_remove(&c->seats, &s->node);
        s->taken = false;
        return &s->gate;
}

/* Whoever was on its way is here. With the lock. */
static void come(struct rs_workers *c)
{
        c->called = false;
        c->soon = NULL;
}

/* Calls a thread, if one is needed and none is on its way. With the lock: a new thread begins by taking it.
 * *ret_gate: to be opened once the lock is given up; NULL: none. */
static int call(struct rs_workers *c, struct rs_gate **ret_gate)
{
        struct rs_thread t;
        int rc = 0;

        *ret_gate = NULL;
        if (!c->queued || c->called)
                return 0;
        if (c->seats.last) {
                *ret_gate = stand_up(c, RS_CONTAINER(c->seats.last, struct seat, node));
                c->called = true;
        } else if (c->threads < c->most && (rc = rs_thread_start(&t, c->name, worker, c)) == 0) {
                c->threads++;
                c->called = true;
        }
        return rc;
}

static void open_gate(struct rs_gate *g)
{
        if (g)
                rs_gate_open(g);
}

/* Sits until it is called. False: nobody has for so long. With the lock. */
static bool sit(struct rs_workers *c, int64_t until)
{
        struct seat s = { .taken = true };

        rs_list_push(&c->seats, &s.node);
        c->idle++;
        rs_unlock(&c->lock);
        rs_gate_wait(&s.gate, until);
        rs_lock(&c->lock);
        c->idle--;
        if (c->leave)
                rs_cond_broadcast(&c->gone); /* that none is idle may be waited for, also if this one has work */
        if (s.taken) {
                stand_up(c, &s);
                return false;
        }
        rs_gate_wait(&s.gate, INT64_MAX); /* who has called late is about to open it */
        come(c);
        return true;
}

/* Waits for work. False: there is none and the thread is to go. With the lock. */
static bool has_work(struct rs_workers *c)
{
        int64_t until = INT64_MAX;
        bool stay = true;

        while (!c->queued && stay && !c->leave) {
                if (until == INT64_MAX)
                        until = rs_sys_now() + RS_WORKERS_LINGER_NS;
                stay = sit(c, until);
        }
        return c->queued > 0;
}

static struct rs_work *take(struct rs_workers *c)
{
        struct rs_work *w = RS_CONTAINER(rs_list_pop(&c->queue), struct rs_work, node);

        w->queued = false;
        queued_add(c, -1);
        return w;
}

static void leave(struct rs_workers *c)
{
        struct rs_thread before = c->left;
        bool join = c->has_left && !c->unattended;

        if (c->unattended) {
                rs_thread_detach_self();
        } else {
                c->left = rs_thread_self();
                c->has_left = true;
        }
        c->threads--;
        void (*ended)(struct rs_workers *) = c->unattended && c->threads == 0 ? c->ended : NULL;
        rs_cond_broadcast(&c->gone);
        rs_unlock(&c->lock);
        if (join)
                rs_thread_join(before);
        if (ended)
                ended(c);
}

static void *worker(void *arg)
{
        struct rs_workers *c = arg;
        struct rs_gate *gate;

        rs_lock(&c->lock);
        come(c);
        while (has_work(c)) {
                struct rs_work *w = take(c);
                (void)call(c, &gate); /* if it fails, those that there are do the work */
                rs_unlock(&c->lock);
                open_gate(gate);
                w->run(w);
                rs_lock(&c->lock);
                if (c->soon == w)
                        come(c);
                if (c->threads > c->most) {
                        (void)call(c, &gate); /* others look after their own work, or nobody was called for this one */
                        open_gate(gate);
                        break;
                }
        }
        leave(c);
        return NULL;
}

void rs_workers_soon(struct rs_workers *c, const struct rs_work *w)
{
        if (rs_workers_queued(c))
                return;
        rs_lock(&c->lock);
        if (!c->called) {
                c->called = true;
                c->soon = w;
        }
        rs_unlock(&c->lock);
}

static void unqueue(struct rs_workers *c, struct rs_work *w)
{
        rs_list_remove(&c->queue, &w->node);
        w->queued = false;
        queued_add(c, -1);
}

/* There is work again: who waits for the last ones to go home does not any more. With the lock. */
static void stay(struct rs_workers *c)
{
        if (c->leave)
                rs_cond_broadcast(&c->gone);
        c->leave = c->unattended = false;
}

int rs_workers_add(struct rs_workers *c, struct rs_work *w)
{
        struct rs_gate *gate;

        rs_lock(&c->lock);
        stay(c);
        rs_list_push(&c->queue, &w->node);
        w->queued = true;
        queued_add(c, 1);
        int rc = call(c, &gate);
        if (rc < 0 && c->threads == 0)
                unqueue(c, w);
        else
                rc = 0; /* one of those that there are will come to it */
        rs_unlock(&c->lock);
        open_gate(gate);
        return rc;
}

int rs_workers_add_all(struct rs_workers *c, struct rs_list *works)
{
        struct rs_node *n;
        struct rs_gate *gate;

        rs_lock(&c->lock);
        stay(c);
        while ((n = rs_list_pop(works))) {
                RS_CONTAINER(n, struct rs_work, node)->queued = true;
                rs_list_push(&c->queue, n);
                queued_add(c, 1);
        }
        int rc = call(c, &gate);
        while (rc < 0 && c->threads == 0 && c->queued)
                rs_list_push(works, &take(c)->node);
        rc = rs_list_empty(works) ? 0 : rc;
        rs_unlock(&c->lock);
        open_gate(gate);
        return rc;
}

struct rs_work *rs_workers_take(struct rs_workers *c, bool (*fits)(const struct rs_work *w))
{
        rs_lock(&c->lock);
        bool fit = c->queued && fits(RS_CONTAINER(c->queue.first, struct rs_work, node));
        struct rs_work *w = fit ? take(c) : NULL;
        rs_unlock(&c->lock);
        return w;
}

bool rs_workers_remove(struct rs_workers *c, struct rs_work *w)
{
        rs_lock(&c->lock);
        bool queued = w->queued;
        if (queued)
                unqueue(c, w);
        rs_unlock(&c->lock);
        return queued;
}

size_t rs_workers_drop(struct rs_workers *c)
{
        rs_lock(&c->lock);
        size_t n = c->queued;
        while (c->queued)
                (void)take(c);
        rs_unlock(&c->lock);
        return n;
}

void rs_workers_allow(struct rs_workers *c, unsigned most)
{
        struct rs_gate *gate;

        rs_lock(&c->lock);
        c->most = most;
        (void)call(c, &gate);
        rs_unlock(&c->lock);
        open_gate(gate);
}

/* With the lock. Those that stay are left alone. */
static void send_home(struct rs_workers *c, bool all)
{
        c->leave = true;
        while (c->seats.first)
                rs_gate_open(stand_up(c, RS_CONTAINER(c->seats.first, struct seat, node)));
        while (c->leave && (all ? c->threads > 0 : c->idle > 0))
                rs_cond_wait(&c->gone, &c->lock, INT64_MAX);
}

/* Gives up the lock. */
static void join_left(struct rs_workers *c)
{
        struct rs_thread last = c->left;
        bool join = c->has_left;

        c->has_left = false;
        rs_unlock(&c->lock);
        if (join)
                rs_thread_join(last);
}

void rs_workers_rest(struct rs_workers *c, bool all)
{
        rs_lock(&c->lock);
        send_home(c, all);
        c->unattended = c->leave;
        join_left(c);
}

/* Who went last before this is joined first: the thread that is left may end and free it all once it may. */
bool rs_workers_abandon(struct rs_workers *c, void (*ended)(struct rs_workers *c))
{
        rs_lock(&c->lock);
        send_home(c, false);
        while (c->has_left) {
                join_left(c);
                rs_lock(&c->lock);
        }
        bool left = c->threads > 0;
        c->unattended = true;
        c->ended = ended;
        rs_unlock(&c->lock);
        return left;
}

bool rs_workers_queued(const struct rs_workers *c)
{
        return __atomic_load_n(&c->queued, __ATOMIC_RELAXED) > 0;
}
