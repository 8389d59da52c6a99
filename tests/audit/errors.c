/* SPDX-License-Identifier: MIT */
/* The books of failures: what a child gave is told to its group once, and the error that a group or scope kept for the
 * next boundary, because its block was left by a plain return, comes out of exactly one: as its result, or reported as
 * lost. A deadline that passed inside and was made up for need not come out. */

#include "books.h"

enum { PENDING = 32 };

/* The errors that wait for the next boundary of a task. */
struct pending {
        int codes[PENDING];
        size_t n;
        size_t deadlines; /* of them */
        unsigned lost;    /* reported so far */
};

static void add(struct pending *p, const struct rs_record *r)
{
        if (!r || p->n == PENDING)
                return;
        p->codes[p->n++] = r->error.code;
        p->deadlines += r->error.code == -ETIME;
}

static struct pending pending(const struct rs_task *t)
{
        struct pending p = { .lost = audit->lost };

        add(&p, t->escaped);
        for (const struct rs_scope *s = t->outermost; s; s = s->inner)
                add(&p, s->before);
        return p;
}

static bool has(const struct pending *p, int code)
{
        for (size_t i = 0; i < p->n; i++)
                if (p->codes[i] == code)
                        return true;
        return false;
}

/* rc came out of a boundary; `added` errors came to those from before, `left` are still there, `listed` went to a
 * group's list and count. */
static void check(const char *where, const struct rs_task *t, const struct pending *before, size_t added, size_t left,
                  size_t listed, int rc)
{
        size_t out = left + listed + (audit->lost - before->lost) + (rc < 0 && has(before, rc));

        if (before->n + added > out + before->deadlines)
                audit_wrong("%s of task \"%s\": of %zu errors that were kept for it, the first %d (%s), one went "
                            "nowhere; its "
                            "result is %d",
                            where, t->name, before->n + added, before->n ? before->codes[0] : 0,
                            resha_strerror(before->n ? before->codes[0] : 0), rc);
}

/* The current task, if the scope is its innermost one: then the books can tell. */
static struct rs_task *owner_of(const struct rs_scope *s)
{
        struct rs_loop *l = rs_loop_current;

        return l && l->current && s->task == l->current && l->current->scope == s ? l->current : NULL;
}

/* ---- scopes and groups ---- */

int audit_scope_end(resha_scope *scope, int rc)
{
        struct rs_task *t = owner_of(rs_scope_of(scope));

        if (!t)
                return resha_scope_end(scope, rc);
        struct pending before = pending(t);
        rc = resha_scope_end(scope, rc);
        check("the end of a scope", t, &before, 0, pending(t).n, 0, rc);
        return rc;
}

void audit_scope_leave(resha_scope *scope)
{
        struct rs_task *t = owner_of(rs_scope_of(scope));

        if (!t) {
                resha_scope_leave(scope);
                return;
        }
        struct pending before = pending(t);
        resha_scope_leave(scope);
        size_t left = pending(t).n;
        if (left < before.n)
                check("leaving a scope", t, &before, 0, left, 0, 0);
}

int audit_group_end(resha_group *group, int rc)
{
        struct rs_group *g = rs_group_of(group);
        struct rs_task *t = owner_of(&g->scope);

        if (!t)
                return resha_group_end(group, rc);
        struct pending before = pending(t);
        struct entry *e = books_find(g, GROUP);
        rc = resha_group_end(group, rc);
        if (!e)
                e = books_find(g, GROUP);
        size_t of_others = e && g->failures ? (size_t)(e->in + e->gone) : 0, of_body = g->failures - of_others;
        if (g->running || of_body > 1)
                audit_wrong("group: ended with %zu children, %zu failures of which %zu are of children and spawns",
                            g->running, g->failures, of_others);
        if (g->failures && rc != g->failure_code)
                audit_wrong("group: its first failure is %d, its result %d", g->failure_code, rc);
        /* An error of the body that is not the first is in the list and the count. */
        check("the end of a group", t, &before, 0, pending(t).n, of_body, rc);
        return rc;
}

void audit_group_leave(resha_group *group)
{
        struct rs_group *g = rs_group_of(group);
        struct rs_task *t = owner_of(&g->scope);

        if (!t) {
                resha_group_leave(group);
                return;
        }
        struct pending before = pending(t);
        resha_group_leave(group);
        if (g->running)
                audit_wrong("group: left with %zu children", g->running);
        struct pending after = pending(t);
        check("leaving a group", t, &before, g->failure != NULL, after.n, 0, 0);
        if (g->failure && !has(&after, g->failure_code) && audit->lost == before.lost)
                audit_wrong("group: left with a failure, %d, that is kept nowhere", g->failure_code);
}

/* ---- ends of tasks ---- */

/* Of the type of what they stand for, or this does not compile. */
__typeof__(rs_group_child_ended) __real_rs_group_child_ended, __wrap_rs_group_child_ended;
__typeof__(rs_group_fail) __real_rs_group_fail, __wrap_rs_group_fail;
__typeof__(rs_task_end) __real_rs_task_end, __wrap_rs_task_end;

void __wrap_rs_group_child_ended(struct rs_loop *l, struct rs_group *g, struct rs_task *t, int rc, bool cancelled)
{
        size_t failures = g->failures, stopped = g->cancelled, running = g->running;
        bool waits = !rs_list_empty(&g->spawners), failed = rc < 0 && !cancelled && !g->collected;
        struct entry *e = failures ? books_entry(g, GROUP) : books_fresh(g, GROUP);

        audit->last_child_rc = rc;
        e->in += failed;
        __real_rs_group_child_ended(l, g, t, rc, cancelled);
        if (g->collected)
                return; /* completions take the failures, and start the next one */
        /* The joiner does not run before we are back. */
        if (g->failures != failures + failed || g->cancelled != stopped + (rc < 0 && cancelled))
                audit_wrong("group: a child ended with %d; failures went from %zu to %zu, cancelled from %zu to %zu",
                            rc, failures, g->failures, stopped, g->cancelled);
        if (failed && !failures && g->failure_code != rc)
                audit_wrong("group: its first child fails with %d, it remembers %d", rc, g->failure_code);
        if (g->running + 1 != running &&
            g->running + 1 != running + waits) /* a failure takes spawners out of the line */
                audit_wrong("group: of %zu children one has ended, %zu are left", running, g->running);
        if (g->limit != SIZE_MAX && g->running > g->limit)
                audit_wrong("group: %zu children, at most %zu", g->running, g->limit);
}

/* A spawn that failed. */
void __wrap_rs_group_fail(struct rs_loop *l, struct rs_group *g, int code, const resha_error *e, enum rs_cause cause)
{
        (g->failures ? books_entry(g, GROUP) : books_fresh(g, GROUP))->gone++;
        __real_rs_group_fail(l, g, code, e, cause);
}

void __wrap_rs_task_end(struct rs_loop *l, struct rs_task *t, int rc)
{
        struct pending before = pending(t);
        bool open = t->outermost != NULL, child = t->group != NULL;

        audit->ended++;
        audit->last_child_rc = 0;
        __real_rs_task_end(l, t, rc);
        if (!open)
                check("the end", t, &before, 0, 0, 0, child ? audit->last_child_rc : l->main_result);
}
