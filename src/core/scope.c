/* SPDX-License-Identifier: MIT */
/* Scopes and cancellation.
 *
 * The scopes of a task form a chain, from the outermost to the innermost; a group is a scope of the task that opened
 * it, and the chains of its children hang from it. So scopes and tasks of a run form one tree. A scope is `effective`
 * when it was cancelled itself, or its parent is effective and it is no shield. That is pushed down when a scope is
 * cancelled, so that a waiting call looks at one byte of its task.
 *
 * Invariants
 *  1. t->attention has RS_CANCELLED exactly if t's innermost scope is effective, or it has none of its own and what
 *     surrounds it is.
 *  2. Where a scope is effective, everything inside it up to the next shields is, too: a push stops where it finds
 *     that.
 *  3. RS_ESCAPED exactly if a failure that escaped is kept, and no call that may wait has been let through since.
 *  4. The push is a loop over a work list: a tree of a million tasks needs no stack. */

#include "core/core.h"
#include "core/probe.h"

/* The address of t's innermost own scope, for the check in rs_enter(). That no stack is smaller than RS_STACK_MIN says
 * enough of most scopes; how large this one is lies at its far end, in a line of the cache that nothing else needs. */
static inline uintptr_t frame_low(const struct rs_task *t)
{
        uintptr_t at = (uintptr_t)t->scope;

        if (!t->outermost || !t->stack)
                return UINTPTR_MAX;
        if (RS_LIKELY((uintptr_t)t->stack - at < RS_STACK_MIN / 2))
                return at;
        return at - (uintptr_t)t->stack->base < t->stack->size ? at : UINTPTR_MAX;
}

void rs_task_attend(struct rs_task *t)
{
        const struct rs_scope *own = t->outermost ? t->scope : NULL;
        bool cancelled = own ? own->effective : rs_task_base_cancelled(t);
        bool deep = rs_loop_current && rs_loop_current->deep && rs_loop_current->current == t;
        bool nosuspend = deep || (own && own->nosuspend);

        if (!cancelled)
                t->ignored = 0;
        bool escaped = t->escaped && !t->escaped->passed;
        t->attention = (uint8_t)((t->attention & RS_WATCHED) | (cancelled ? RS_CANCELLED : 0) |
                                 (nosuspend ? RS_NOSUSPEND : 0) | (escaped ? RS_ESCAPED : 0));
        t->frame_low = deep ? UINTPTR_MAX : frame_low(t); /* its frames are on another stack */
}

/* s was opened or closed. Where nothing asked for attention, and s itself does not, nothing does now. */
static inline void attend_after(struct rs_task *t, const struct rs_scope *s)
{
        if (RS_LIKELY(!t->attention && !s->effective && !s->nosuspend && !s->shield))
                t->frame_low = frame_low(t);
        else
                rs_task_attend(t);
}

void rs_scope_open(struct rs_loop *l, struct rs_scope *s)
{
        struct rs_task *t = l->current;
        struct rs_scope *parent = t->scope;

        s->task = t;
        s->parent = parent;
        s->inner = NULL;
        if (t->outermost) {
                parent->inner = s;
                s->nosuspend |= parent->nosuspend;
        } else {
                t->outermost = s;
        }
        t->scope = s;
        s->effective = s->requested || (!s->shield && (t->attention & RS_CANCELLED));
        if (RS_UNLIKELY(t->escaped != NULL)) {
                s->before = t->escaped;
                t->escaped = NULL;
        }
        attend_after(t, s);
}

static void lost(struct rs_loop *l, struct rs_task *t, struct rs_record *r)
{
        if (r->error.code != -ETIME)
                rs_report_lost(l, t, &r->error, "the block of its group was left without it; return resha_group_end()");
        rs_record_free(l, r);
}

/* Clean-up between a failure and the boundary that will see it: the failure comes first. */
static void escape_again(struct rs_loop *l, struct rs_task *t, struct rs_record *r)
{
        if (t->escaped)
                lost(l, t, t->escaped);
        t->escaped = r;
        t->attention |= RS_ESCAPED; /* attended to by the caller */
}

/* Inner ones that are still open belong to frames that were left by other ways than return: closed first. */
void rs_scope_close_inner(struct rs_loop *l, struct rs_scope *s)
{
        struct rs_task *t = s->task;

        while (RS_UNLIKELY(t->scope != s)) {
                struct rs_scope *inner = t->scope;
                if (l->strict)
                        rs_task_abort(t, "a scope or group ends while one that was begun inside it is open");
                if (inner->is_group)
                        resha_group_leave((resha_group *)(void *)inner);
                else
                        rs_scope_close(l, inner);
        }
}

/* Out of its task's chain. */
void rs_scope_close(struct rs_loop *l, struct rs_scope *s)
{
        struct rs_task *t = s->task;

        if (RS_UNLIKELY(t->scope != s))
                rs_scope_close_inner(l, s);
        rs_timer_clear(l, &s->timer);
        if (RS_UNLIKELY(s->shield))
                rs_records_unshield(l, t, s);
        t->scope = s->parent;
        if (t->outermost == s)
                t->outermost = NULL;
        else
                s->parent->inner = NULL;
        s->task = NULL;
        if (RS_UNLIKELY(s->before != NULL))
                escape_again(l, t, s->before);
        attend_after(t, s);
}

/* ---- the push ---- */

static void attend_and_wake(struct rs_loop *l, struct rs_task *t)
{
        struct rs_wait *w = t->wait;

        if (!(t->attention & RS_CANCELLED)) {
                RS_EVENT(l, rs_ring_cancelled(l, t));
                RS_PROBE_CANCEL(l, t);
        }
        rs_task_attend(t);
        if (w && w->cancel && (t->attention & RS_CANCELLED)) {
                void (*cancel)(struct rs_wait *) = w->cancel;
                w->cancel = NULL;
                cancel(w);
        }
}

/* The scopes of t from s inwards; children of groups on the way go to the work list. */
static void push_chain(struct rs_loop *l, struct rs_task *t, struct rs_scope *s, struct rs_task **work)
{
        for (; s; s = s->inner) {
                if (s->effective || (s->shield && !s->requested))
                        return;
                s->effective = true;
                if (!s->is_group)
                        continue;
                struct rs_group *g = (struct rs_group *)(void *)s;
                for (struct rs_node *n = g->children.last; n; n = n->prev) {
                        struct rs_task *child = RS_CONTAINER(n, struct rs_task, sibling);
                        child->cancel_next = *work;
                        *work = child;
                }
        }
        attend_and_wake(l, t);
}

static void push_work(struct rs_loop *l, struct rs_task *work)
{
        while (work) {
                struct rs_task *t = work;
                work = t->cancel_next;
                push_chain(l, t, t->outermost, &work);
        }
}

void rs_scope_request(struct rs_loop *l, struct rs_scope *s, enum rs_cause cause, const char *site)
{
        struct rs_task *work = NULL;

        if (!s->effective) {
                s->cause = (uint8_t)cause;
                s->reason = rs_reason_new(l, cause, site);
        }
        s->requested = true;
        push_chain(l, s->task, s, &work);
        push_work(l, work);
}

void rs_task_cancel(struct rs_loop *l, struct rs_task *t, enum rs_cause cause, const char *site)
{
        if (t->cancel_requested)
                return;
        if (!rs_task_base_cancelled(t)) {
                t->cause = (uint8_t)cause;
                t->reason = rs_reason_new(l, cause, site);
        }
        t->cancel_requested = true;
        t->cancel_next = NULL;
        push_work(l, t);
}

/* ---- boundaries ---- */

/* A failure whose block was left by a plain return: kept for the next boundary. Takes r. */
void rs_escape(struct rs_loop *l, struct rs_task *t, struct rs_record *r)
{
        if (t->escaped)
                lost(l, t, t->escaped);
        r->passed = false;
        t->escaped = r;
        t->attention |= RS_ESCAPED;
}

/* -ECANCELED that arrives where nothing is cancelled is not a cancel: it takes the place of the failure that caused it.
 * Any other result shows that nobody passed that failure on: a lost one, unless it passed a deadline that the body
 * beat. So does a cancel from outside once the task has gone on to another wait: that one's code it is. */
int rs_attribute(struct rs_loop *l, struct rs_task *t, int rc, bool cancelled_outside)
{
        struct rs_record *r = t->escaped;

        if (RS_LIKELY(!r))
                return rc;
        t->escaped = NULL;
        t->attention &= (uint8_t)~RS_ESCAPED;
        /* A failure outranks a cancel, as at the end of a group; a deadline that passed inside does not. */
        if (rc == -ECANCELED && (!cancelled_outside || (r->error.code != -ETIME && !r->passed))) {
                rc = r->error.code;
                rs_error_give(l, &r->error);
        } else if (rc != r->error.code) {
                lost(l, t, r);
                return rc;
        }
        rs_record_free(l, r);
        return rc;
}

static void deadline_passed(struct rs_timer *timer)
{
        struct rs_scope *s = RS_CONTAINER(timer, struct rs_scope, timer);

        if (s->requested)
                return; /* it ends because of that, however long the way out takes */
        s->expired = true;
        rs_scope_request(rs_loop_current, s, RS_CAUSE_DEADLINE, NULL);
}

/* One of those that t has open? */
static void is_it(struct rs_loop *l, struct rs_task *t, void *arg)
{
        struct rs_scope *s = arg;
        const struct rs_scope *p = t->outermost ? t->scope : NULL;

        (void)l;
        while (p && p != s && p->task == t)
                p = p->parent;
        if (p == s && s->task == t)
                s->twice = true;
}

__attribute__((cold, noinline)) bool rs_scope_open_twice(struct rs_loop *l, struct rs_scope *s)
{
        s->twice = !l; /* open on a thread of its own, for all that can be seen from here */
        for (struct rs_node *n = l ? l->slabs.first : NULL; n; n = n->next)
                rs_slab_each(l, n, is_it, s);
        if (s->twice)
                s->begin_code = -EINVAL; /* the first begin holds */
        return s->twice;
}

enum kind { TIMEOUT, SHIELD, NOSUSPEND };

static void begin(resha_scope *scope, enum kind kind, const char *why, int64_t deadline)
{
        struct rs_scope *s = rs_scope_of(scope);
        struct rs_loop *l = rs_loop_current;

        _Static_assert(sizeof(struct rs_scope) <= sizeof(resha_scope), "resha_scope is too small");
        if (RS_UNLIKELY(s->task != NULL)) {
                if (!rs_scope_open_twice(l, s))
                        *s = (struct rs_scope){ .begin_code = -EINVAL, .used = true, .dirty = true };
                return;
        }
        if (RS_UNLIKELY(s->used)) /* not all zero any more */
                *s = (struct rs_scope){ 0 };
        s->used = true;
        s->shield = kind == SHIELD;
        s->nosuspend = kind == NOSUSPEND;
        s->why = why;
        if (!l || !l->current) {
                s->begin_code = -EPERM;
                return;
        }
        s->timer.fire = deadline_passed;
        if (deadline != INT64_MAX) {
                if (deadline <= l->now) {
                        s->expired = s->requested = true;
                        s->cause = !s->shield && resha_cancelled() ? RS_CAUSE_NONE : RS_CAUSE_DEADLINE;
                } else {
                        rs_timer_set(l, &s->timer, deadline);
                }
        }
        if (s->shield)
                rs_records_shield(l->current, s);
        rs_scope_open(l, s);
}

/* Zero is at once, whatever the clock says. */
static int64_t deadline_of(resha_duration d)
{
        if (d.ns == INT64_MAX)
                return INT64_MAX;
        return d.ns <= 0 ? INT64_MIN : resha_after(d).ns;
}

void resha_timeout_begin(resha_scope *s, resha_duration d)
{
        begin(s, TIMEOUT, NULL, deadline_of(d));
}

void resha_deadline_begin(resha_scope *s, resha_instant t)
{
        begin(s, TIMEOUT, NULL, t.ns);
}

void resha_shield_begin(resha_scope *s, resha_duration at_most)
{
        begin(s, SHIELD, NULL, deadline_of(at_most));
}

void resha_nosuspend_begin(resha_scope *s, const char *why)
{
        begin(s, NOSUSPEND, why ? why : "?", INT64_MAX);
}

/* A shield leaves the record of an earlier -ETIME alone. */
static int expired(const struct rs_task *t, struct rs_scope *s)
{
        s->ended_expired = true;
        if (s->shield && rs_task_record(t, -ETIME))
                return -ETIME;
        return resha_fail_at(-ETIME, NULL, "deadline passed");
}

__attribute__((cold, noinline)) int rs_scope_refused(const struct rs_scope *s)
{
        if (s->begin_code == 0)
                return resha_fail_at(-EPERM, NULL,
                                     "the scope or group is not open in this task: begin it first, end it once");
        if (s->twice)
                return resha_fail_at(s->begin_code, NULL,
                                     "a scope or group was begun again while it was open: end it first");
        if (s->dirty)
                return resha_fail_at(s->begin_code, NULL,
                                     "a scope or group was not zero when it was begun: declare it with RESHA_SCOPE or "
                                     "RESHA_GROUP");
        if (s->begin_code == -EPERM)
                return resha_fail_at(-EPERM, NULL, "a scope or group was begun outside of a task");
        if (s->begin_code == -EINVAL)
                return resha_fail_at(-EINVAL, NULL,
                                     "options of a group: `max_errors` needs `errors`, reserved words are zero");
        return s->begin_code;
}

int resha_scope_end(resha_scope *scope, int rc)
{
        struct rs_scope *s = rs_scope_of(scope);
        struct rs_loop *l = rs_loop_current;

        if (!s->task || !l || l->current != s->task || s->is_group)
                return rc < 0 ? rc : rs_scope_refused(s);
        struct rs_task *t = s->task;
        rs_scope_close_inner(l, s); /* a group inside may take its time */
        if (RS_UNLIKELY(t->escaped != NULL))
                rc = rs_attribute(l, t, rc, s->effective);
        bool outside = rc == -ECANCELED && rs_scope_outside_cancelled(s);
        rs_scope_close(l, s);
        if (RS_LIKELY(rc != -ECANCELED))
                return RS_UNLIKELY(s->begin_code < 0 && rc >= 0) ? rs_scope_refused(s) : rc;
        if (outside || !s->requested)
                return rc;
        return s->expired ? expired(t, s) : 0;
}

/* The block was left by return: if the deadline is why, the next boundary must know. */
void resha_scope_leave(resha_scope *scope)
{
        struct rs_scope *s = rs_scope_of(scope);
        struct rs_loop *l = rs_loop_current;

        if (!s->task || !l || l->current != s->task)
                return;
        struct rs_task *t = s->task;
        bool mine = s->expired && !rs_scope_outside_cancelled(s);
        rs_scope_close(l, s);
        if (mine && !t->escaped) {
                resha_error e = { 0 };
                resha_fail_at(-ETIME, NULL, "deadline passed");
                rs_error_describe(l, t, -ETIME, &e);
                struct rs_record *r = rs_record_new(l, &e);
                if (r)
                        rs_escape(l, t, r);
        }
}

bool resha_scope_expired(const resha_scope *scope)
{
        return ((const struct rs_scope *)(const void *)scope)->ended_expired;
}

void resha_scope_cancel_at(resha_scope *scope, const char *site)
{
        struct rs_scope *s = rs_scope_of(scope);

        if (rs_scope_is_here(s) && !s->requested)
                rs_scope_request(rs_loop_current, s, RS_CAUSE_CALL, site);
}

int resha_scope_reschedule(resha_scope *scope, resha_instant t)
{
        struct rs_scope *s = rs_scope_of(scope);
        struct rs_loop *l = rs_loop_current;

        if (!rs_scope_is_here(s) || s->expired || s->is_group)
                return resha_fail_at(-EINVAL, NULL, "the deadline to move is not that of an open scope, or has passed");
        rs_timer_clear(l, &s->timer);
        if (t.ns != INT64_MAX)
                rs_timer_set(l, &s->timer, t.ns);
        return 0;
}

int resha_timeout(resha_duration d, resha_fn *fn, void *arg)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, d);
        return resha_scope_end(&s, fn(arg));
}

int resha_shielded(resha_duration at_most, resha_fn *fn, void *arg)
{
        RESHA_SCOPE(s);

        resha_shield_begin(&s, at_most);
        return resha_scope_end(&s, fn(arg));
}
