/* SPDX-License-Identifier: MIT */
/* Waiting for signals: subscriptions, and the short form, whose subscriber is the loop's and lasts as long as its run.
 *
 * In the simulated world, who waits for a signal waits for the program itself: it does not count as something outside
 * that might wake the loop. */

#include <resha/signal.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include <resha/alloc.h>

#include "os/signals.h"

struct resha_signals {
        struct rs_subscriber subscriber;
        unsigned forks; /* rs_forks, of the process that opened it */
        uint64_t mask;
        struct rs_shown shown;
};

/* ---- which signals ---- */

static bool can_wait_for(int sig)
{
        switch (sig) {
        case SIGKILL:
        case SIGSTOP: /* cannot be caught */
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE: return false; /* what the thread itself did: going on would do it again */
        default: return sig > 0 && sig <= RS_SIGNALS && (!rs_signal_realtime(sig) || sig >= SIGRTMIN);
        }
}

static int mask_of(const int *signals, size_t n, uint64_t *ret_mask)
{
        if (n == 0)
                return resha_fail_at(-EINVAL, NULL, "no signal to wait for");
        for (size_t i = 0; i < n; i++) {
                if (!can_wait_for(signals[i]))
                        return resha_fail_at(-EINVAL, NULL, "signal %d cannot be waited for", signals[i]);
                *ret_mask |= rs_signal_bit(signals[i]);
        }
        return 0;
}

static int refuse(int rc)
{
        if (rc == -EBUSY)
                return resha_fail_at(-EINVAL, NULL, "SIGINT cancels the main task of this run: run with keep_sigint");
        return resha_fail_at(rc, NULL, "cannot catch the signals to wait for: %s", resha_strerror(rc));
}

/* ---- waiting ---- */

static void signal_cancel(struct rs_wait *wait)
{
        struct rs_signal_waiter *w = RS_CONTAINER(wait, struct rs_signal_waiter, wait);

        rs_list_remove(&w->subscriber->waiters, &wait->node);
        rs_wake(wait, -ECANCELED);
}

static int wait_here(struct rs_loop *l, struct rs_signal_waiter *w)
{
        size_t outside = !l->simulated;

        w->wait.cancel = signal_cancel;
        w->wait.what = "signal";
        w->wait.object = w->subscriber;
        rs_list_push(&w->subscriber->waiters, &w->wait.node);
        l->jobs += outside;
        int result = (int)rs_wait(l, &w->wait);
        l->jobs -= outside;
        return result;
}

/* ---- subscriptions ---- */

/* Which ones, by number. */
static void describe(const void *object, char *text, size_t size)
{
        const resha_signals *s = object;
        uint64_t mask = s->mask;

        text[0] = '\0';
        for (size_t n = 0; mask && n < size; mask &= mask - 1) {
                int more = snprintf(text + n, size - n, "%s%d", n ? ", " : "", rs_signal_lowest(mask));
                n += more > 0 ? (size_t)more : size;
        }
}

int resha_signal_open(const int *signals, size_t n, resha_signals **ret_signals)
{
        static const resha_shown_kind kind = { .kind = "signals", .describe = describe };
        struct rs_loop *l = rs_loop_current;
        uint64_t mask = 0;

        if (!l)
                return rs_outside();
        int rc = mask_of(signals, n, &mask);
        if (rc < 0)
                return rc;
        resha_signals *s = resha_calloc(1, sizeof *s);
        struct rs_signal_queue *queue = s ? rs_signal_queue_new((mask >> (SIGRTMIN - 1)) != 0) : NULL;
        rc = queue ? 0 : -ENOMEM;
        if (rc == 0) {
                s->forks = rs_forks;
                s->mask = mask;
                s->subscriber.queue = queue;
                rc = rs_signals_join(l, &s->subscriber, mask);
        }
        if (rc < 0) {
                if (s)
                        rs_signals_leave(&s->subscriber);
                resha_free(queue);
                resha_free(s);
                return refuse(rc);
        }
        rs_shown_add(l, &s->shown, &kind, s, -1);
        RS_OPENED_HERE(&s->shown);
        *ret_signals = s;
        return 0;
}

int resha_signal_next(resha_signals *s, resha_signal_info *ret_info)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        struct rs_subscriber *sub = &s->subscriber;
        if (sub->loop != l)
                return rs_misuse(-EPERM, "the signals are another loop's, or of a run that has ended");
        if (rs_list_empty(&sub->waiters) && rs_signal_queue_take(sub->queue, ret_info))
                return rs_complete(l, 1);
        struct rs_signal_waiter w = { .subscriber = sub };
        rc = wait_here(l, &w); /* s may be gone */
        if (rc > 0)
                *ret_info = w.info;
        return rc;
}

void resha_signal_close(resha_signals *s)
{
        if (!s || s->forks != rs_forks || (s->subscriber.loop && s->subscriber.loop != rs_loop_current))
                return;
        rs_shown_remove(&s->shown);
        rs_signals_leave(&s->subscriber);
        for (struct rs_node *n; (n = rs_list_pop(&s->subscriber.waiters));)
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), 0);
        resha_free(s->subscriber.queue);
        resha_free(s);
}

void resha_signal_closep(resha_signals **s)
{
        resha_signal_close(*s);
        *s = NULL;
}

/* ---- the short form ---- */

/* The loop's subscriber, made when there is none, gets all of the mask. */
static int prepare(struct rs_loop *l, uint64_t mask, struct rs_subscriber **ret_subscriber)
{
        struct rs_subscriber *s = rs_signals_flags(l);
        bool made = !s;

        if (made)
                s = resha_calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        int rc = rs_signals_join(l, s, mask);
        if (rc < 0 && made) {
                rs_signals_leave(s);
                resha_free(s);
        }
        *ret_subscriber = s;
        return rc;
}

int resha_signal_wait(const int *signals, size_t n, int *ret_signal)
{
        struct rs_signal_waiter w = { .mask = 0 };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = mask_of(signals, n, &w.mask);
        if (rc < 0)
                return rc;
        rc = prepare(l, w.mask, &w.subscriber);
        if (rc < 0)
                return refuse(rc);
        uint64_t came = atomic_load(&w.subscriber->pending) & w.mask;
        if (came) {
                atomic_fetch_and(&w.subscriber->pending, ~rs_signal_bit(rs_signal_lowest(came)));
                *ret_signal = rs_signal_lowest(came);
                return rs_complete(l, 0);
        }
        rc = wait_here(l, &w);
        if (rc < 0)
                return rc;
        *ret_signal = rc;
        return 0;
}
