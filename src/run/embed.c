/* SPDX-License-Identifier: MIT */
/* A run inside of another loop.
 *
 * The host waits for one descriptor, an epoll of two others, both level-triggered:
 *
 *     the backend's   readable while it has something for the loop: completions, and the wake-up of a post or signal
 *     a timerfd       readable once the earliest timer is due, or at once while the loop has something to do by itself
 *
 * Neither is read here: the backend's own wait takes the first back, the next setting of the timer the second.
 *
 * Invariants, between steps
 *  1. The loop counts as asleep: every post wakes the backend. What came before that, in the last moments of a step,
 *     has made the next one due at once (rs_loop_step()).
 *  2. The timer is set to when the next step is due. It is set only where that has changed: an instant that has passed
 *     meanwhile stays readable.
 *  3. rs_loop_current is what it was before the step: nothing, or another loop whose task takes the step.
 *
 * An ended run has taken the backend out and the timer is off: the host that goes on polling is left in peace. */

#include <resha/embed.h>

#include "base/alloc.h"
#include "run/run.h"
#include "sys/sanitize.h"
#include "sys/sys.h"

struct resha_embed {
        struct rs_run *run;
        int set, timer;
        int backend;      /* its descriptor; -1: it has none, simulated */
        int64_t due;      /* what the timer is set to; INT64_MIN: now, INT64_MAX: never */
        const void *home; /* of the thread: something thread-local */
        struct rs_context thread;
        struct rs_loop *around; /* during a step */
        bool stepping, ended;
};

static void set_due(resha_embed *e, int64_t due)
{
        if (due == e->due)
                return;
        rs_sys_timerfd_set(e->timer, due);
        e->due = due;
}

/* ---- whose turn it is ---- */

static int refuse(int code, const char *text)
{
        return rs_misuse(code, "%s", text);
}

static int check(const resha_embed *e)
{
        if (rs_inbox_of_parent(e->run->loop.inbox))
                return refuse(-EPERM, "the embedded run is the parent process's");
        if (e->home != &rs_loop_current)
                return refuse(-EPERM, "an embedded run belongs to the thread that began it");
        if (e->stepping)
                return refuse(-EBUSY, "a step of the same embedded run is under way");
        return 0;
}

/* The loop's own stack is for now that of the caller, who may be a task of another loop. */
static void enter(resha_embed *e)
{
        struct rs_loop *l = &e->run->loop, *around = rs_loop_current;

        e->around = around;
        e->stepping = true;
        l->native = around ? around->native : e->thread;
        if (around && around->current) {
                const struct rs_stack *k = around->current->stack;
                l->native.bottom = k->base + around->stacks.guard;
                l->native.size = (size_t)(k->top - (const char *)l->native.bottom);
        }
        l->native.tsan_fiber = rs_tsan_current();
        rs_loop_current = l;
}

static void leave(resha_embed *e)
{
        rs_loop_current = e->around;
        e->stepping = false;
}

/* ---- begin ---- */

static int watch(resha_embed *e, int fd)
{
        struct epoll_event event = { .events = EPOLLIN };

        return fd < 0 ? fd : rs_sys_epoll_ctl(e->set, EPOLL_CTL_ADD, fd, &event);
}

static int open_set(resha_embed *e)
{
        struct rs_backend *b = e->run->loop.backend;
        int rc;

        if ((e->set = rs_sys_epoll_create()) < 0)
                return e->set;
        if ((e->timer = rs_sys_timerfd()) < 0)
                return e->timer;
        if ((rc = watch(e, e->timer)) < 0)
                return rc;
        b->stepped = true;
        if (b->ops->simulated)
                return 0;
        e->backend = b->ops->descriptor(b);
        return watch(e, e->backend);
}

/* Posts may still run: to them a step is under way. */
static void free_embed(resha_embed *e)
{
        rs_run_unwatch(e->run);
        rs_run_close(e->run);
        rs_loop_current = e->around;
        if (e->timer >= 0)
                rs_sys_close(e->timer);
        if (e->set >= 0)
                rs_sys_close(e->set);
        resha_free(e);
}

int resha_embed_begin(resha_fn *fn, void *arg, const resha_run_opts *opts, resha_embed **ret_embed)
{
        struct rs_run *run;

        if (opts && opts->overflow_report)
                return rs_run_refuse(opts, -EINVAL,
                                     "overflow_report in an embedded run: handlers of signals are the host's");
        if (opts && opts->terminate)
                return rs_run_refuse(opts, -EINVAL, "terminate in an embedded run: handlers of signals are the host's");
        int rc = rs_run_open(opts, &run);
        if (rc < 0)
                return rc;
        resha_embed *e = resha_malloc(sizeof *e);
        if (!e) {
                rs_run_close(run);
                return rs_run_refuse(opts, -ENOMEM, "no memory for an embedded run");
        }
        *e = (resha_embed){
                .run = run, .set = -1, .timer = -1, .backend = -1, .due = INT64_MAX, .home = &rs_loop_current
        };
        e->around = rs_loop_current;
        e->thread = run->loop.native;
        rc = open_set(e);
        if (rc == 0)
                rc = rs_loop_begin(&run->loop, fn, arg);
        if (rc < 0) {
                free_embed(e);
                return rs_run_refuse(opts, rc, "the embedded run cannot begin: %s", resha_strerror(rc));
        }
        rs_run_watch(run, &e->stepping);
        set_due(e, INT64_MIN);
        *ret_embed = e;
        return 0;
}

/* ---- what the host calls ---- */

int resha_embed_fd(const resha_embed *e)
{
        return e->set;
}

resha_loop *resha_embed_loop(resha_embed *e)
{
        int rc = check(e);

        return rc == 0 || rc == -EBUSY ? (resha_loop *)(void *)rs_inbox_hold(&e->run->loop) : NULL;
}

/* The main task has ended. */
static void become_quiet(resha_embed *e)
{
        e->ended = true;
        set_due(e, INT64_MAX);
        if (e->backend >= 0)
                (void)rs_sys_epoll_ctl(e->set, EPOLL_CTL_DEL, e->backend, NULL);
}

int resha_embed_step(resha_embed *e, resha_duration at_most)
{
        int rc = check(e);
        int64_t due;

        if (rc < 0)
                return rc;
        if (e->ended)
                return 0;
        int64_t until = at_most.ns <= 0 ? INT64_MIN : rs_time_add(rs_sys_now(), at_most.ns);
        enter(e);
        bool goes_on = rs_loop_step(&e->run->loop, until, &due);
        leave(e);
        if (goes_on)
                set_due(e, due);
        else
                become_quiet(e);
        return goes_on;
}

int resha_embed_end_at(resha_embed *e, const char *site)
{
        int rc = e ? check(e) : 0;

        if (!e || rc < 0)
                return rc;
        struct rs_loop *l = &e->run->loop;
        enter(e);
        if (!e->ended) {
                l->backend->stepped = false;
                rs_loop_cancel(l, RS_CAUSE_CALL, site);
                rs_loop_finish(l);
        }
        rc = rs_loop_result(l);
        free_embed(e);
        return rc;
}
