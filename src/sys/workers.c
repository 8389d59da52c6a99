/* SPDX-License-Identifier: MIT */
/* The crew behind thread pools and name look-ups.
 *
 * A thread is started when there is more in the queue than idle threads, not when the queue is merely not empty: a
 * thread that was just called to one work counts as idle until it has taken it, and must not be counted on for a
 * second one. A busy thread is never signalled; it looks at the queue anyway.
 *
 * Threads can be joined by one that goes after them: who leaves puts itself in the place of the last one that left, and
 * joins that one, which has nothing to do but return. So at most one is ever left over, for rest() to join. */

#include "sys/workers.h"

#include <errno.h>

#include "sys/sys.h"

/* Waits for work. False: there is none and the thread is to go. Called with the lock. */
static bool has_work(struct rs_workers *c)
{
        int64_t until = INT64_MAX;
        bool stay = true;

        while (!c->queued && stay && !c->leave) {
                if (until == INT64_MAX)
                        until = rs_sys_now() + RS_WORKERS_LINGER_NS;
                c->idle++;
                stay = rs_cond_wait(&c->come, &c->lock, until);
                c->idle--;
        }
        return c->queued > 0;
}

static struct rs_work *take(struct rs_workers *c)
{
        struct rs_work *w = RS_CONTAINER(rs_list_pop(&c->queue), struct rs_work, node);

        w->queued = false;
        c->queued--;
        return w;
}

static void *worker(void *arg)
{
        struct rs_workers *c = arg;

        rs_lock(&c->lock);
        while (has_work(c)) {
                struct rs_work *w = take(c);
                rs_unlock(&c->lock);
                w->run(w);
                rs_lock(&c->lock);
        }
        struct rs_thread before = c->left;
        bool join = c->has_left;
        c->left = rs_thread_self();
        c->has_left = true;
        c->threads--;
        rs_cond_broadcast(&c->gone);
        rs_unlock(&c->lock);
        if (join)
                rs_thread_join(before);
        return NULL;
}

/* One thread more. Called with the lock: the thread begins by taking it. */
static int start(struct rs_workers *c)
{
        struct rs_thread t;
        int rc = rs_thread_start(&t, c->name, worker, c);

        if (rc == 0)
                c->threads++;
        return rc;
}

int rs_workers_add(struct rs_workers *c, struct rs_work *w)
{
        int rc = 0;

        rs_lock(&c->lock);
        c->leave = false;
        rs_list_push(&c->queue, &w->node);
        w->queued = true;
        bool call = ++c->queued <= c->idle;
        if (!call && c->threads < c->most)
                rc = start(c);
        if (rc < 0 && c->threads == 0) {
                rs_list_remove(&c->queue, &w->node);
                w->queued = false;
                c->queued--;
        } else {
                rc = 0; /* one of those that there are will come to it */
        }
        rs_unlock(&c->lock);
        if (call)
                rs_cond_signal(&c->come);
        return rc;
}

bool rs_workers_remove(struct rs_workers *c, struct rs_work *w)
{
        rs_lock(&c->lock);
        bool queued = w->queued;
        if (queued) {
                rs_list_remove(&c->queue, &w->node);
                w->queued = false;
                c->queued--;
        }
        rs_unlock(&c->lock);
        return queued;
}

void rs_workers_rest(struct rs_workers *c, bool all)
{
        rs_lock(&c->lock);
        c->leave = true;
        rs_cond_broadcast(&c->come);
        while (c->leave && (all ? c->threads > 0 : c->idle > 0))
                rs_cond_wait(&c->gone, &c->lock, INT64_MAX);
        struct rs_thread last = c->left;
        bool join = c->has_left;
        c->has_left = false;
        rs_unlock(&c->lock);
        if (join)
                rs_thread_join(last);
}
