/* SPDX-License-Identifier: MIT */
/* Portals: calls into a loop from threads that have none.
 *
 * A call lies in its caller's memory, in one of the portal's lists:
 *
 *     NONE --start--> WAITING --start_waiting--> RUNNING --finish, give_up--> ENDED --wait--> NONE
 *                        \--------- cancel, refuse_waiting ----------------------/
 *
 * The threads and the loop meet under the portal's lock. What a thread wants of the loop (calls to start, tasks to
 * cancel, the end) stands in the portal; one post brings the loop to look, however much there is, and the inbox wakes
 * the loop only if that sleeps. The post holds a reference, since it may come when everybody else is done.
 *
 * The server is a task with a group. It starts the calls itself, so that tasks, error records and task-locals come
 * about as in any other group. Tasks are cancelled outside of it, by the post, because that must go on while it joins.
 *
 * Invariants
 *  1. Whoever sets ENDED, under the lock, then opens the call's gate, and nobody else touches the call after that but
 *     the thread that waits. finish() does so when it has given up the lock, where the woken thread would meet it.
 *  2. p->inbox: exactly while the portal is served, or joined after that. Posts are made under the lock, and only then:
 *     so none comes to a loop that has ended.
 *  3. Calls wait only where somebody will look after them: refuse_waiting() empties the queue when it is clear that
 *     nobody serves. RUNNING ones end with their tasks, or when the run is given up.
 *  4. No code of others runs with the lock held: cancelling a task may call it (resha_job_opts.interrupt). */

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include <resha/alloc.h>
#include <resha/portal.h>

#include "core/core.h"
#include "sys/sys.h"
#include "sys/thread.h"

enum { LIMIT_DEFAULT = 1000, QUEUE_DEFAULT = 1024 };

enum state { NONE, WAITING, RUNNING, ENDED };

enum { SHOWN_RUNNING, SHOWN_WAITING, SHOWN_CALLS, SHOWN_FIGURES };

struct call {
        struct rs_node node;  /* in waiting or running */
        struct rs_node asked; /* in asked, if listed */
        struct rs_gate ended; /* who waits */
        resha_portal *portal; /* from start to wait, with a reference; atomic, as cancel may come at any time */
        struct rs_task *task; /* while RUNNING; the loop's */
        resha_fn *fn;
        void *arg;
        const char *name, *site; /* static */
        const char *cancelled_at;
        resha_error error; /* ENDED with a failure */
        int result;
        enum state state;
        bool cancelled, listed;
};

_Static_assert(sizeof(struct call) <= sizeof(resha_portal_handle), "resha_portal_handle is too small");

struct resha_portal {
        struct rs_lock lock;
        unsigned refs;          /* atomic */
        unsigned forks;         /* rs_forks, of the process that made it */
        size_t limit, places;   /* calls at once; calls in all */
        struct rs_list waiting; /* of call.node */
        struct rs_list running; /* of call.node */
        struct rs_list asked;   /* of call.asked: RUNNING ones whose tasks are to be cancelled */
        size_t taken;           /* places, of waiting and running ones */
        size_t begun;           /* of those, the running ones */
        struct rs_inbox *inbox; /* of the loop that serves; NULL: none does */
        struct rs_post post;
        bool posted, shut;
        struct rs_wait *idle;       /* the server, while it waits for calls; the loop's */
        struct rs_cleanup given_up; /* in the loop's list while served */
        struct rs_shown shown;      /* while served */
        uint64_t figures[SHOWN_FIGURES];
};

static struct call *call_of(resha_portal_handle *h)
{
        return (struct call *)(void *)h;
}

static void become(struct call *c, enum state next)
{
        assert(next == c->state + 1 || (c->state == WAITING && next == ENDED) || (c->state == ENDED && next == NONE));
        c->state = next;
}

/* Here, in a thread job or on a thread of the program's own: a failure before anything was done. */
static int refuse(int code, const char *text)
{
        resha_error e = { .code = code };

        snprintf(e.text, sizeof e.text, "%s", text);
        rs_error_give(rs_loop_current, &e);
        return code;
}

static bool of_parent(const resha_portal *p)
{
        return p->forks != rs_forks;
}

/* Whether this thread may wait for calls of p. */
static int check_thread(const resha_portal *p)
{
        if (rs_loop_current)
                return rs_misuse(-EDEADLK, "a call through a portal would stop the loop that this thread runs: spawn a "
                                           "task in a group instead");
        if (of_parent(p))
                return refuse(-EPERM, "the portal is the parent process's: make another one in the child");
        return 0;
}

/* ---- references ---- */

int resha_portal_new(const resha_portal_opts *opts, resha_portal **ret_portal)
{
        static const resha_portal_opts defaults;
        const resha_portal_opts *o = opts ? opts : &defaults;

        if (!rs_reserved_zero(o->_reserved))
                return refuse(-EINVAL, "options of a portal: reserved words must be zero");
        resha_portal *p = resha_malloc(sizeof *p);
        if (!p)
                return -ENOMEM;
        size_t limit = o->limit ? o->limit : LIMIT_DEFAULT, queue = o->queue ? o->queue : QUEUE_DEFAULT;
        *p = (resha_portal){
                .lock = RS_LOCK_INIT, .refs = 1, .forks = rs_forks, .limit = limit, .places = limit + queue
        };
        *ret_portal = p;
        return 0;
}

resha_portal *resha_portal_ref(resha_portal *p)
{
        if (p)
                __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
        return p;
}

void resha_portal_unref(resha_portal *p)
{
        if (p && !of_parent(p) && __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) == 0)
                resha_free(p);
}

void resha_portal_unrefp(resha_portal **p)
{
        resha_portal_unref(*p);
        *p = NULL;
}

/* ---- what is shown ---- */

static void refresh(void *object)
{
        resha_portal *p = object;

        rs_lock(&p->lock);
        p->figures[SHOWN_RUNNING] = p->begun;
        p->figures[SHOWN_WAITING] = p->taken - p->begun;
        rs_unlock(&p->lock);
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_portal *p = object;
        const uint64_t *f = p->figures;

        refresh((void *)(uintptr_t)p);
        snprintf(text, size, "%" PRIu64 " of %zu calls run, %" PRIu64 " wait; %" PRIu64 " have ended", f[SHOWN_RUNNING],
                 p->limit, f[SHOWN_WAITING], f[SHOWN_CALLS]);
}

static const resha_figure figures[SHOWN_FIGURES] = {
        { "resha_portal_running", "Calls of threads that run as tasks.", RESHA_FIGURE_GAUGE, false },
        { "resha_portal_waiting", "Calls of threads that wait to be started.", RESHA_FIGURE_GAUGE, false },
        { "resha_portal_calls_total", "Calls of threads that have run and ended.", RESHA_FIGURE_COUNTER, false },
};

static const resha_shown_kind portal_kind = {
        .kind = "portal", .figures = figures, .count = SHOWN_FIGURES, .describe = describe, .refresh = refresh
};

/* ---- under the lock ---- */

/* Something is to be done on the loop. */
static void notify(resha_portal *p)
{
        if (!p->inbox || p->posted)
                return;
        p->posted = true;
        resha_portal_ref(p);
        rs_inbox_post(p->inbox, &p->post);
}

/* The call is out of its list. Its gate is to be opened. */
static void end_call(resha_portal *p, struct call *c, int result, const resha_error *e)
{
        if (c->listed)
                rs_list_remove(&p->asked, &c->asked);
        c->result = result;
        if (result < 0)
                c->error = *e;
        p->taken--;
        become(c, ENDED);
}

static void end_with_text(resha_portal *p, struct call *c, int code, const char *site, const char *text)
{
        resha_error e = { .code = code, .site = site, .task = c->name, .spawned_at = c->site };

        snprintf(e.text, sizeof e.text, "%s", text);
        end_call(p, c, code, &e);
        rs_gate_open(&c->ended);
}

/* Nobody will start them. */
static void refuse_waiting(resha_portal *p)
{
        for (struct rs_node *n; (n = rs_list_pop(&p->waiting));)
                end_with_text(p, RS_CONTAINER(n, struct call, node), RESHA_ESHUT, NULL,
                              "the portal was shut down before the call had started");
}

/* ---- on the loop ---- */

static void wake_server(resha_portal *p)
{
        struct rs_wait *w = p->idle;

        p->idle = NULL;
        if (w)
                rs_wake(w, 0);
}

static void idle_cancel(struct rs_wait *w)
{
        ((resha_portal *)(uintptr_t)w->object)->idle = NULL;
        rs_wake(w, -ECANCELED);
}

/* Not inlined: rs_enter() looks at the frame, which must lie below that of serve() with its group. */
static __attribute__((noinline)) int wait_for_calls(resha_portal *p)
{
        struct rs_wait w = { .cancel = idle_cancel, .what = "calls of threads", .object = p };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        p->idle = &w;
        return (int)rs_wait(l, &w);
}

/* The next one whose task is to be cancelled. It cannot end meanwhile: that happens on this thread alone. */
static struct call *take_asked(resha_portal *p)
{
        rs_lock(&p->lock);
        struct rs_node *n = rs_list_pop(&p->asked);
        struct call *c = n ? RS_CONTAINER(n, struct call, asked) : NULL;
        if (c)
                c->listed = false;
        rs_unlock(&p->lock);
        return c;
}

static void look(struct rs_post *post)
{
        resha_portal *p = RS_CONTAINER(post, resha_portal, post);

        rs_lock(&p->lock);
        p->posted = false;
        rs_unlock(&p->lock);
        for (struct call *c; (c = take_asked(p));)
                rs_task_cancel(rs_loop_current, c->task, RS_CAUSE_THREAD, c->cancelled_at);
        wake_server(p);
        resha_portal_unref(p);
}

static void look_lost(struct rs_post *post)
{
        resha_portal_unref(RS_CONTAINER(post, resha_portal, post));
}

static void finish(resha_portal *p, struct call *c, int result, const resha_error *e)
{
        rs_lock(&p->lock);
        rs_list_remove(&p->running, &c->node);
        p->begun--;
        end_call(p, c, result, e);
        rs_unlock(&p->lock);
        rs_gate_open(&c->ended);
        p->figures[SHOWN_CALLS]++;
}

static void call_done(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e)
{
        resha_portal *p = g->child_done_arg;
        resha_error why;

        if (rc < 0 && !e) {
                rs_error_describe(rs_loop_current, t, rc, &why);
                e = &why;
        }
        finish(p, t->arg, rc, e);
        if (g->running + 1 >= p->limit)
                wake_server(p);
}

static int call_task(void *arg)
{
        struct call *c = arg;

        return c->fn(c->arg);
}

static struct call *take_waiting(resha_portal *p)
{
        rs_lock(&p->lock);
        struct rs_node *n = rs_list_pop(&p->waiting);
        struct call *c = n ? RS_CONTAINER(n, struct call, node) : NULL;
        if (c) {
                become(c, RUNNING);
                rs_list_push(&p->running, n);
                p->begun++;
        }
        rs_unlock(&p->lock);
        return c;
}

/* As many as may run. */
static void start_waiting(struct rs_loop *l, resha_portal *p, struct rs_group *g)
{
        struct call *c;

        while (!g->scope.effective && g->running < p->limit && (c = take_waiting(p))) {
                resha_error e;
                int rc = rs_spawn(l, g, call_task, c, c->name, c->site, &c->task);
                if (rc == 0)
                        continue;
                rs_error_describe(l, l->current, rc, &e);
                finish(p, c, rc, &e);
        }
}

static bool drained(resha_portal *p)
{
        rs_lock(&p->lock);
        bool is = p->shut && rs_list_empty(&p->waiting);
        rs_unlock(&p->lock);
        return is;
}

static int serve_calls(struct rs_loop *l, resha_portal *p, struct rs_group *g)
{
        int rc = 0;

        for (;;) {
                start_waiting(l, p, g);
                if (drained(p))
                        return 0;
                rc = wait_for_calls(p);
                if (rc < 0)
                        return rc;
        }
}

/* ---- the server ---- */

/* 1: the portal is the caller's to serve. 0: it is shut down. Otherwise rc, or -EBUSY: who is cancelled before it
 * begins shuts it down, as later. */
static int open_portal(resha_portal *p, struct rs_loop *l, int rc)
{
        rs_lock(&p->lock);
        if (p->inbox) {
                rc = -EBUSY;
        } else if (rc == 0 && !p->shut) {
                p->inbox = rs_inbox_ref(l->inbox);
                p->post = (struct rs_post){ .fn = look, .lost = look_lost, .quiet = true };
                rc = 1;
        } else {
                p->shut = true;
                refuse_waiting(p);
        }
        rs_unlock(&p->lock);
        return rc;
}

/* Nothing more is started. */
static void refuse_new(resha_portal *p)
{
        rs_lock(&p->lock);
        p->shut = true;
        refuse_waiting(p);
        rs_unlock(&p->lock);
}

/* Nobody serves from now on. With the lock. */
static struct rs_inbox *close_portal(resha_portal *p)
{
        struct rs_inbox *inbox = p->inbox;

        p->inbox = NULL;
        p->shut = true;
        refuse_waiting(p);
        return inbox;
}

/* At the end of a run that leaves the server and its tasks where they are. Nothing of them runs again. */
static void give_up(struct rs_cleanup *cleanup)
{
        resha_portal *p = RS_CONTAINER(cleanup, resha_portal, given_up);

        rs_shown_remove(&p->shown);
        rs_lock(&p->lock);
        struct rs_inbox *inbox = close_portal(p);
        for (struct rs_node *n; (n = rs_list_pop(&p->running));)
                end_with_text(p, RS_CONTAINER(n, struct call, node), RESHA_EGIVENUP, NULL,
                              "the run was given up after its grace, with this call in it");
        p->begun = 0;
        rs_unlock(&p->lock);
        rs_inbox_unref(inbox);
        resha_portal_unref(p);
}

/* With a reference of its own. */
static int serve(struct rs_loop *l, resha_portal *p)
{
        RESHA_GROUP(group);
        struct rs_group *g = rs_group_of(&group);

        resha_group_begin(&group, NULL);
        g->child_done = call_done;
        g->child_done_arg = p;
        g->collected = true;
        p->given_up.fn = give_up;
        rs_list_push(&l->given_up, &p->given_up.node);
        l->jobs++;
        int rc = serve_calls(l, p, g);
        refuse_new(p);
        rc = resha_group_end(&group, rc); /* cancels go on */
        rs_lock(&p->lock);
        struct rs_inbox *inbox = close_portal(p);
        rs_unlock(&p->lock);
        rs_inbox_unref(inbox);
        l->jobs--;
        rs_list_remove(&l->given_up, &p->given_up.node);
        return rc;
}

int resha_portal_serve(resha_portal *p)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0 && rc != -ECANCELED)
                return rc;
        if (of_parent(p))
                return refuse(-EPERM, "the portal is the parent process's: make another one in the child");
        rc = open_portal(p, l, rc);
        if (rc == -EBUSY)
                return rs_misuse(rc, "the portal is served already");
        if (rc <= 0)
                return rc < 0 ? rc : rs_complete(l, 0);
        resha_portal_ref(p);
        rs_shown_add(l, &p->shown, &portal_kind, p, -1);
        RS_OPENED_HERE(&p->shown);
        p->shown.values = p->figures;
        p->shown.ours = true;
        rc = serve(l, p);
        rs_shown_remove(&p->shown);
        resha_portal_unref(p);
        return rc;
}

void resha_portal_shutdown(resha_portal *p)
{
        if (of_parent(p))
                return;
        rs_lock(&p->lock);
        p->shut = true;
        if (!p->inbox)
                refuse_waiting(p);
        notify(p);
        rs_unlock(&p->lock);
}

/* ---- on threads ---- */

/* With the lock. Field by field: a cancel that comes too early may look at c->portal meanwhile. */
static void enqueue(resha_portal *p, struct call *c)
{
        c->ended = (struct rs_gate){ 0 };
        c->cancelled = c->listed = false;
        __atomic_store_n(&c->portal, resha_portal_ref(p), __ATOMIC_RELEASE);
        become(c, WAITING);
        rs_list_push(&p->waiting, &c->node);
        p->taken++;
        notify(p);
}

int resha_portal_start_at(resha_portal *p, resha_portal_handle *h, resha_fn *fn, void *arg, const char *name,
                          const char *site)
{
        struct call *c = call_of(h);
        int rc = check_thread(p);

        if (rc < 0)
                return rc;
        if (__atomic_load_n(&c->portal, __ATOMIC_RELAXED))
                return refuse(-EBUSY, "the handle is that of another call, which was not waited for yet");
        rs_lock(&p->lock);
        bool shut = p->shut, full = p->taken >= p->places;
        if (!shut && !full) {
                c->fn = fn;
                c->arg = arg;
                c->name = name;
                c->site = site;
                enqueue(p, c);
        }
        rs_unlock(&p->lock);
        if (shut)
                return refuse(RESHA_ESHUT, "the portal is shut down: the call was not started");
        return full ? refuse(RESHA_EFULL, "as many calls wait for the portal as may: the call was not started") : 0;
}

/* Waits for the end of the call, and takes it out of the handle. False: it has not ended in time. */
static bool take_ended(resha_portal *p, struct call *c, resha_duration at_most)
{
        bool forever = at_most.ns == INT64_MAX;
        int64_t until = at_most.ns <= 0 ? INT64_MIN : forever ? INT64_MAX : rs_time_add(rs_sys_now(), at_most.ns);

        if (!rs_gate_wait(&c->ended, until))
                return false;
        rs_lock(&p->lock);
        become(c, NONE);
        __atomic_store_n(&c->portal, NULL, __ATOMIC_RELAXED);
        rs_unlock(&p->lock);
        return true;
}

int resha_portal_wait(resha_portal_handle *h, resha_duration at_most, int *ret_result)
{
        struct call *c = call_of(h);
        resha_portal *p = __atomic_load_n(&c->portal, __ATOMIC_RELAXED);

        if (!p)
                return refuse(-EINVAL, "no call was started with the handle, or it was waited for already");
        int rc = check_thread(p);
        if (rc < 0)
                return rc;
        if (!take_ended(p, c, at_most))
                return refuse(-ETIME, "the call has not ended in time");
        if (c->result < 0)
                rs_error_give(NULL, &c->error);
        if (ret_result)
                *ret_result = c->result;
        resha_portal_unref(p);
        return 0;
}

int resha_portal_call_at(resha_portal *p, resha_fn *fn, void *arg, const char *name, const char *site)
{
        resha_portal_handle h = { { 0 } };
        int result, rc = resha_portal_start_at(p, &h, fn, arg, name, site);

        if (rc == 0)
                rc = resha_portal_wait(&h, RESHA_FOREVER, &result);
        return rc < 0 ? rc : result;
}

void resha_portal_cancel_at(resha_portal_handle *h, const char *site)
{
        struct call *c = call_of(h);
        resha_portal *p = __atomic_load_n(&c->portal, __ATOMIC_ACQUIRE);

        if (!p || of_parent(p))
                return;
        rs_lock(&p->lock);
        if (__atomic_load_n(&c->portal, __ATOMIC_RELAXED) != p) {
                /* it has ended meanwhile, and the handle is that of a call through another portal, of another lock */
        } else if (c->state == WAITING) {
                rs_list_remove(&p->waiting, &c->node);
                end_with_text(p, c, -ECANCELED, site, "cancelled by another thread, before it had started");
                notify(p);
        } else if (c->state == RUNNING && !c->cancelled) {
                c->cancelled = c->listed = true;
                c->cancelled_at = site;
                rs_list_push(&p->asked, &c->asked);
                notify(p);
        }
        rs_unlock(&p->lock);
}
