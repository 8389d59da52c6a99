/* SPDX-License-Identifier: MIT */
/* The watchdog: a thread that sees when a loop does not go on, and says so while it does not.
 *
 * A loop moves when it switches or polls, and counts both anyway; while it sleeps it says so in its inbox. So the
 * watchdog only reads, four times in a limit. Where it finds all loops asleep it goes to sleep, too, until one of them
 * wakes, which sees that somebody wants to know (core/inbox.c). A program that is idle is woken by nobody; one
 * that wakes often wakes the watchdog at most once a period.
 *
 * What is no block: a thread that gets no processor (the kernel counts that time, it is taken off), and what makes a
 * look come late, because the machine or the process stood still.
 *
 * A report is made with the lock, so a run cannot end under it. Names that are a task's own are not shown: they may be
 * gone at any moment. */

#include "inspect/watchdog.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect/stacks.h"
#include "sys/sanitize.h"
#include "sys/sys.h"
#include "sys/thread.h"

enum { LOOKS = 4, DEPTH = 64, LIMIT_LEAST_NS = 4000000 };

static struct {
        struct rs_lock lock;
        struct rs_cond change;
        struct rs_list all; /* of rs_watched.node */
        struct rs_thread thread;
        bool runs, ends;
} dog = { .lock = RS_LOCK_INIT, .change = RS_COND_INIT };

#if defined(RS_TSAN)
static const bool works = false; /* it reads what loops write without a word to each other */
#else
static const bool works = true;
#endif

#define READ(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

/* ---- the stack ---- */

struct stack {
        const void *addresses[DEPTH];
        size_t depth;
};

/* ---- reports ---- */

static void tell(struct rs_watched *w, const char *text, const struct stack *s)
{
        const resha_run_opts *o = &w->loop->opts;
        resha_report r = {
                .kind = RESHA_REPORT_BLOCKED,
                .task = w->task,
                .spawned_at = w->site,
                .text = text,
                .stack = s && s->depth ? s->addresses : NULL,
                .depth = s ? s->depth : 0,
                .part = 1,
                .parts = 1,
        };

        if (o->report)
                o->report(&r, o->report_arg);
}

static uint64_t stamp_of(const struct rs_loop *l)
{
        return READ(l->switches) + READ(l->polls);
}

/* A name of its own goes with the task: if that goes on meanwhile, the copy is nothing, and is not used. */
static const char *name_of(const struct rs_task *t, char *copy, size_t size)
{
        const char *name = READ(t->name); /* before it is asked whose it is: one that is set meanwhile is its own */

        if (!READ(t->named))
                return name;
        return rs_observe_text(name, copy, size) ? copy : NULL;
}

static void blocked(struct rs_watched *w, int64_t ns)
{
        const struct rs_loop *l = w->loop;
        const struct rs_task *t = READ(l->current);
        struct stack s;
        char text[160], copy[sizeof w->name] = "";

        const char *name = t ? name_of(t, copy, sizeof copy) : NULL, *site = t ? READ(t->site) : NULL;
        s.depth = rs_stacks_running(w->tid, l, t, s.addresses, DEPTH);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (stamp_of(l) != w->stamp)
                return; /* it has gone on meanwhile: this may be of another task than what was told before */
        memcpy(w->name, copy, sizeof copy);
        w->task = name == copy ? w->name : name;
        w->site = site;
        snprintf(text, sizeof text, "%sblocks the loop, for %" PRId64 " ms by now: no other task runs",
                 t ? "" : "a function that the loop calls ", ns / 1000000);
        tell(w, text, &s);
        w->reported = true;
}

static void over(struct rs_watched *w, int64_t ns)
{
        char text[160];

        snprintf(text, sizeof text, "%shad blocked the loop for %" PRId64 " ms",
                 w->site || w->task ? "" : "a function ", ns / 1000000);
        tell(w, text, NULL);
        w->reported = false;
}

/* ---- looks ---- */

/* Or is not to do anything now: an embedded run between two steps, whose thread is the host's. */
static bool sleeps(const struct rs_watched *w)
{
        return rs_inbox_sleeps(w->loop->inbox) || (w->steps && !__atomic_load_n(w->steps, __ATOMIC_SEQ_CST));
}

static void begin_anew(struct rs_watched *w)
{
        w->since = 0;
        w->next = w->limit;
}

/* Without the time in which the thread could not run. The kernel knows that when it is over; before that, of a thread
 * which could run but has done hardly anything since the last look, it is what has passed since it did. And if more
 * has passed than `most`, nothing tells that the thread was not held up by the same: then counts what it has run. */
static int64_t blocked_for(struct rs_watched *w, int64_t now, int64_t most)
{
        struct rs_observe_times t;

        rs_observe_times(w->tid, &t);
        if (!w->since) { /* it has moved since the last look, or is new */
                w->since = w->went = w->looked = now;
                w->then = w->last = t;
        }
        int64_t passed = now - w->looked, ran = t.ran - w->last.ran;
        int64_t free = passed - (t.waited - w->last.waited), known = ran > most ? ran : most;
        if (free > known)
                w->since += free - known;
        if (!(t.ran || t.waited) || ran >= passed / LOOKS || !rs_observe_runs(w->tid))
                w->went = now;
        w->looked = now;
        w->last = t;
        return w->went - w->since - (t.waited - w->then.waited);
}

/* True: the loop sleeps. */
static bool look(struct rs_watched *w, int64_t now, int64_t most)
{
        bool asleep = sleeps(w);
        uint64_t stamp = stamp_of(w->loop);

        if (asleep || stamp != w->stamp) {
                if (w->reported)
                        over(w, now - w->since);
                w->stamp = stamp;
                begin_anew(w);
        }
        if (asleep)
                return true;
        int64_t ns = blocked_for(w, now, most);
        if (ns >= w->next) {
                blocked(w, ns);
                w->next = 2 * ns;
        }
        return false;
}

/* All loops. True: all of them sleep. */
static bool look_at_all(int64_t now, int64_t most)
{
        bool asleep = true;

        for (struct rs_node *n = dog.all.first; n; n = n->next) {
                struct rs_watched *w = RS_CONTAINER(n, struct rs_watched, node);
                asleep = look(w, now, most) && asleep;
        }
        return asleep;
}

static int64_t period(void)
{
        int64_t least = INT64_MAX;

        for (struct rs_node *n = dog.all.first; n; n = n->next) {
                const struct rs_watched *w = RS_CONTAINER(n, struct rs_watched, node);
                least = w->limit < least ? w->limit : least;
        }
        return least / LOOKS;
}

/* Until a loop wakes, or the watchdog is to do something else. */
static void doze(void)
{
        rs_unlock(&dog.lock);
        rs_inbox_watch_wait();
        rs_lock(&dog.lock);
}

static bool all_asleep(void)
{
        for (struct rs_node *n = dog.all.first; n; n = n->next)
                if (!sleeps(RS_CONTAINER(n, struct rs_watched, node)))
                        return false;
        return true;
}

/* Once woken it stays up for a period: a loop that sleeps and wakes in turns wakes it no more often. */
static void *watch(void *arg)
{
        struct rs_observe_times own, before = { 0 };
        int64_t woken = INT64_MIN;

        rs_lock(&dog.lock);
        while (!dog.ends) {
                int64_t now = rs_sys_now(), step = period();
                rs_observe_times(rs_observe_self(), &own);
                int64_t waited = own.waited - before.waited;
                before = own;
                if (!look_at_all(now, 2 * step + waited) || now < rs_time_add(woken, step)) {
                        rs_cond_wait(&dog.change, &dog.lock, now + step);
                        continue;
                }
                rs_inbox_watch_begin();
                if (all_asleep())
                        doze();
                else
                        rs_inbox_watch_end();
                woken = rs_sys_now();
        }
        rs_unlock(&dog.lock);
        return arg;
}

/* ---- who is watched ---- */

void rs_watchdog_add(struct rs_watched *w, struct rs_loop *l, int64_t limit, const bool *steps)
{
        if (!works || RUNNING_ON_VALGRIND || l->simulated || limit <= 0)
                return;
        limit = limit < LIMIT_LEAST_NS ? LIMIT_LEAST_NS : limit; /* with less it would look all the time */
        *w = (struct rs_watched){
                .loop = l, .steps = steps, .forks = rs_forks, .tid = rs_observe_self(), .limit = limit, .next = limit
        };
        rs_lock(&dog.lock);
        while (dog.ends) /* the thread of those before */
                rs_cond_wait(&dog.change, &dog.lock, INT64_MAX);
        rs_observe_allow();
        rs_list_push(&dog.all, &w->node);
        if (!dog.runs)
                dog.runs = rs_thread_start(&dog.thread, "resha-watchdog", watch, NULL) == 0;
        rs_inbox_watch_end();
        rs_cond_signal(&dog.change);
        if (!dog.runs) {
                rs_list_remove(&dog.all, &w->node);
                w->loop = NULL;
        }
        rs_unlock(&dog.lock);
}

void rs_watchdog_remove(struct rs_watched *w)
{
        bool ours = w->loop && w->forks == rs_forks; /* rs_watchdog_forked() has forgotten the parent's */

        if (!ours)
                return;
        rs_lock(&dog.lock);
        rs_list_remove(&dog.all, &w->node);
        if (w->reported)
                over(w, rs_sys_now() - w->since);
        bool last = rs_list_empty(&dog.all) && dog.runs;
        struct rs_thread thread = dog.thread;
        if (last) {
                dog.ends = true;
                rs_inbox_watch_end();
                rs_cond_signal(&dog.change);
        }
        rs_unlock(&dog.lock);
        w->loop = NULL;
        if (!last)
                return;
        rs_thread_join(thread);
        rs_lock(&dog.lock);
        dog.runs = dog.ends = false;
        rs_cond_broadcast(&dog.change);
        rs_unlock(&dog.lock);
}

void rs_watchdog_forked(void)
{
        dog.lock = (struct rs_lock)RS_LOCK_INIT;
        dog.change = (struct rs_cond)RS_COND_INIT;
        dog.all = (struct rs_list){ 0 };
        dog.runs = dog.ends = false;
}
