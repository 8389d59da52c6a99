/* SPDX-License-Identifier: MIT */
/* Groups: scopes that own tasks.
 *
 * The result of a group, in this order: the first failure, of a child or the body; -ECANCELED, if something outside is
 * cancelled and that has stopped the body or a child; 0, if the group's own cancel stopped the body; else what the body
 * gave.
 *
 * A limit is a number of places. A child that ends hands its place to the first spawner that waits, who gives it to the
 * child it then starts: nobody overtakes. */

#include <stdio.h>

#include <string.h>

#include "core/core.h"
#include "core/waited.h"

_Static_assert(sizeof(struct rs_group) <= sizeof(resha_group), "resha_group is too small");

static bool opts_valid(const resha_group_opts *o)
{
        for (size_t i = 0; i < 4; i++)
                if (o->_reserved[i])
                        return false;
        return o->errors || !o->max_errors;
}

void rs_group_open(struct rs_loop *l, struct rs_group *g, const resha_group_opts *o)
{
        if (RS_UNLIKELY(g->limit != 0)) /* used before: not all zero any more */
                *g = (struct rs_group){ 0 };
        g->scope.is_group = true;
        g->limit = SIZE_MAX;
        if (o) {
                g->limit = o->limit ? o->limit : SIZE_MAX;
                g->keep_going = o->keep_going;
                g->background = o->background;
                g->errors = o->errors;
                g->max_errors = o->max_errors;
        }
        rs_scope_open(l, &g->scope);
}

static __attribute__((noinline, cold)) void not_opened(struct rs_group *g)
{
        struct rs_loop *l;

        /* The limit says that it is not all zero, should it be begun again. */
        if (!g->scope.task)
                *g = (struct rs_group){ .scope.begin_code = rs_enter_shielded(&l), .limit = SIZE_MAX };
        else if (!rs_scope_open_twice(rs_loop_current, &g->scope))
                *g = (struct rs_group){ .scope = { .begin_code = -EINVAL, .dirty = true }, .limit = SIZE_MAX };
}

void resha_group_begin(resha_group *group, const resha_group_opts *opts)
{
        struct rs_group *g = rs_group_of(group);
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!l || !l->current || g->scope.task || (l->current->attention & RS_NOSUSPEND))) {
                not_opened(g);
        } else if (RS_UNLIKELY(opts && !opts_valid(opts))) {
                rs_group_open(l, g, NULL);
                g->scope.begin_code = -EINVAL;
        } else {
                rs_group_open(l, g, opts);
        }
}

/* ---- failures ---- */

void rs_group_fail(struct rs_loop *l, struct rs_group *g, int code, const resha_error *e, enum rs_cause cause)
{
        if (g->failures < g->max_errors)
                g->errors[g->failures] = *e;
        g->failures++;
        if (!g->failure_code) {
                g->failure_code = code;
                g->failure = rs_record_new(l, e);
                if (g->failure && !g->keep_going && !g->scope.effective)
                        g->failure->error.cancelled = (uint32_t)g->running;
        }
        if (!g->keep_going && g->scope.task && !g->scope.requested)
                rs_scope_request(l, &g->scope, cause, NULL);
}

/* One place less is in use: it goes to the first spawner in line, or lets the body go on. */
void rs_group_place_free(struct rs_group *g)
{
        struct rs_node *n = rs_list_pop(&g->spawners);

        if (RS_UNLIKELY(n != NULL)) {
                g->running++;
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), 0);
        } else if (g->running == 0 && g->joiner) {
                struct rs_wait *w = g->joiner;
                g->joiner = NULL;
                rs_wake(w, 0);
        }
}

static __attribute__((noinline)) void child_failed(struct rs_loop *l, struct rs_group *g, struct rs_task *t, int rc,
                                                   bool cancelled)
{
        resha_error e;

        if (cancelled)
                g->cancelled++;
        else
                rs_error_describe(l, t, rc, &e);
        if (RS_UNLIKELY(l->debug) && !cancelled && !g->child_done && g->failure_code && g->failures >= g->max_errors)
                rs_report_lost(l, t, &e, "its group tells of the first failure alone; give that an array `errors`");
        if (!cancelled && !g->collected)
                rs_group_fail(l, g, rc, &e, RS_CAUSE_FAILURE);
        if (g->child_done)
                g->child_done(g, t, rc, cancelled ? NULL : &e);
}

void rs_group_passes_over(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e)
{
        (void)g, (void)t, (void)rc, (void)e;
}

void rs_group_child_ended(struct rs_loop *l, struct rs_group *g, struct rs_task *t, int rc, bool cancelled)
{
        rs_list_remove(&g->children, &t->sibling);
        g->running--; /* before the failure is told: its record counts the others */
        if (RS_UNLIKELY(rc < 0))
                child_failed(l, g, t, rc, cancelled);
        else if (g->child_done)
                g->child_done(g, t, rc, NULL);
        rs_group_place_free(g);
}

/* ---- ending ---- */

static struct rs_task *next_child(const struct rs_wait *w, const struct rs_task *after)
{
        const struct rs_group *g = w->object;
        const struct rs_node *n = after ? after->sibling.next : g->children.first;

        return n ? RS_CONTAINER(n, struct rs_task, sibling) : NULL;
}

static const struct rs_whom children_whom = {
        .next = next_child, .says = "the end of ", .nobody = "the end of its children", .children = true
};

static __attribute__((noinline)) void join(struct rs_loop *l, struct rs_group *g)
{
        while (g->running) {
                struct rs_wait w = { .what = "children", .object = g };

                g->joiner = &w;
                rs_wait_for(l, &w, &children_whom);
        }
}

/* The body's result: a failure of its own, or a cancel. */
static void body_failed(struct rs_loop *l, struct rs_group *g, int rc)
{
        if (rc == -ECANCELED && g->scope.effective)
                return;
        if (rc == g->failure_code && !g->background)
                return; /* the body passes on what it saw of a child */
        resha_error e;
        rs_error_describe(l, l->current, rc, &e);
        rs_group_fail(l, g, rc, &e, RS_CAUSE_BODY_FAILED);
}

int rs_group_close(struct rs_loop *l, struct rs_group *g, int rc)
{
        struct rs_task *t = g->scope.task;

        if (RS_UNLIKELY(t->scope != &g->scope))
                rs_scope_close_inner(l, &g->scope);
        if (RS_UNLIKELY(t->escaped))
                rc = rs_attribute(l, t, rc, g->scope.effective);
        if (RS_UNLIKELY(rc < 0))
                body_failed(l, g, rc);
        if ((rc < 0 || g->background) && g->running && !g->scope.requested)
                rs_scope_request(l, &g->scope, RS_CAUSE_BODY_ENDED, NULL);
        if (g->running)
                join(l, g);
        bool outside = rs_scope_outside_cancelled(&g->scope), stopped = rc == -ECANCELED || g->cancelled;
        rs_scope_close(l, &g->scope);
        if (RS_UNLIKELY(g->failure_code)) {
                rc = g->failure_code;
                if (g->failure) {
                        rs_error_give(l, &g->failure->error);
                        rs_record_free(l, g->failure);
                }
                return rc;
        }
        if (RS_LIKELY(rc >= 0 && !outside))
                return RS_LIKELY(g->scope.begin_code == 0) ? rc : rs_scope_refused(&g->scope);
        if (outside && stopped && !(g->background && rc >= 0))
                return -ECANCELED;
        if (rc == -ECANCELED)
                return 0;
        return rc >= 0 && g->scope.begin_code < 0 ? rs_scope_refused(&g->scope) : rc;
}

int resha_group_end(resha_group *group, int rc)
{
        struct rs_group *g = rs_group_of(group);
        struct rs_loop *l = rs_loop_current;

        if (RS_UNLIKELY(!g->scope.task || !l || l->current != g->scope.task || !g->scope.is_group))
                return rc < 0 ? rc : rs_scope_refused(&g->scope);
        return rs_group_close(l, g, rc);
}

/* The block was left by return. Whether with an error is not known: the children are cancelled, and a failure is kept
 * for the boundary that sees the result. */
static __attribute__((noinline)) void leave_open(struct rs_group *g)
{
        struct rs_loop *l = rs_loop_current;

        if (!l || l->current != g->scope.task)
                rs_task_abort(g->scope.task, "its group is left on another task, or in a forked child");
        struct rs_task *t = l->current;
        if (g->running && !g->scope.requested)
                rs_scope_request(l, &g->scope, RS_CAUSE_LEFT, NULL);
        rs_scope_close_inner(l, &g->scope);
        join(l, g);
        rs_scope_close(l, &g->scope);
        if (g->failure)
                rs_escape(l, t, g->failure);
        else if (g->failure_code) /* no memory to keep it */
                rs_report(l, RESHA_REPORT_LOST_ERROR, g->failure_code, t, "a failure was lost, for lack of memory: %s",
                          resha_strerror(g->failure_code));
}

void resha_group_leave(resha_group *group)
{
        if (RS_UNLIKELY(rs_group_of(group)->scope.task != NULL))
                leave_open(rs_group_of(group));
}

struct drain {
        struct rs_wait wait;
        struct rs_timer timer;
};

static void drain_stop(struct rs_loop *l, struct drain *d)
{
        struct rs_group *g = (struct rs_group *)(uintptr_t)d->wait.object;

        g->joiner = NULL;
        rs_timer_clear(l, &d->timer);
}

static void drain_cancel(struct rs_wait *w)
{
        struct drain *d = RS_CONTAINER(w, struct drain, wait);

        drain_stop(rs_loop_current, d);
        rs_wake(w, -ECANCELED);
}

static void drain_late(struct rs_timer *timer)
{
        struct drain *d = RS_CONTAINER(timer, struct drain, timer);

        if (((const struct rs_group *)d->wait.object)->joiner != &d->wait)
                return; /* the last child has ended and woken it already */
        drain_stop(rs_loop_current, d);
        rs_wake(&d->wait, -ETIME);
}

int resha_group_drain(resha_group *group, resha_duration grace)
{
        struct rs_group *g = rs_group_of(group);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == -EPERM || rc == -EDEADLK || !g->scope.task || l->current != g->scope.task)
                return rc < 0 ? rc : rs_scope_refused(&g->scope);
        struct drain d = { .wait = { .cancel = drain_cancel, .what = "children", .object = g },
                           .timer = { .fire = drain_late } };
        int64_t until = resha_after(grace).ns;
        while (rc == 0 && g->running) { /* again if somebody has spawned when the last had ended */
                if (until < INT64_MAX)
                        rs_timer_set(l, &d.timer, until);
                g->joiner = &d.wait;
                rc = (int)rs_wait_for(l, &d.wait, &children_whom);
                rs_timer_clear(l, &d.timer);
                if (rc == 0 && g->running)
                        rc = rs_enter(&l);
        }
        if (rc < 0 && !g->scope.requested)
                rs_scope_request(l, &g->scope, RS_CAUSE_GRACE, NULL);
        join(l, g);
        return rc;
}

void resha_group_cancel_at(resha_group *group, const char *site)
{
        struct rs_group *g = rs_group_of(group);

        if (rs_scope_is_here(&g->scope) && !g->scope.requested)
                rs_scope_request(rs_loop_current, &g->scope, RS_CAUSE_CALL, site);
}

size_t resha_group_failures(const resha_group *group)
{
        return ((const struct rs_group *)(const void *)group)->failures;
}

size_t resha_group_running(const resha_group *group)
{
        return ((const struct rs_group *)(const void *)group)->running;
}

/* ---- for who looks from outside ---- */

size_t rs_waited_count(const struct rs_reader *r, const struct rs_wait *w, const struct rs_list *line)
{
        struct rs_node n = { .next = w && w->node.prev ? NULL : line->first };
        size_t count = 0;

        while (count < RS_WAITED_COUNT && n.next && r->read(&n, n.next, sizeof n))
                count++;
        return count;
}

static void join_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                     struct rs_waited *ret)
{
        struct rs_group g;

        (void)at;
        if (r->read(&g, w->object, sizeof g))
                snprintf(ret->detail, sizeof ret->detail, "%zu %s", g.running, g.running == 1 ? "runs" : "run");
}

static void drain_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                      struct rs_waited *ret)
{
        struct drain d;

        join_see(r, at, w, ret);
        if (r->read(&d, at, sizeof d) && rs_timer_active(&d.timer))
                ret->due = d.timer.deadline;
}

const struct rs_waits rs_drain_waits = { .cancel = drain_cancel, .see = drain_see };
const struct rs_waits rs_join_waits = { .whom = &children_whom, .see = join_see };
