/* SPDX-License-Identifier: MIT */
/* Why something was cancelled.
 *
 * A cancel leaves its cause, its place and its caller's name in the scope or task that it was asked of; the record of
 * -ECANCELED is made of them when somebody looks. So a cancel allocates nothing, and reaches a million tasks without
 * writing to each what they can find further out.
 *
 * Invariant: what is cancelled already, by something around it, takes no cause. So the innermost cause on the way out
 * of a task is the earliest, and the one that its waits have told of. */

#include <stdio.h>

#include "core/core.h"

/* The name outlives its task only if it is no copy. */
static const char *caller(const struct rs_loop *l)
{
        return l->current && !l->current->named ? l->current->name : NULL;
}

struct rs_reason rs_reason_new(const struct rs_loop *l, enum rs_cause cause, const char *site)
{
        return (struct rs_reason){ .site = site,
                                   .who = cause == RS_CAUSE_CALL     ? caller(l)
                                          : cause == RS_CAUSE_BESIDE ? l->beside->because
                                                                     : NULL };
}

static const char *const texts[] = {
        [RS_CAUSE_CALL] = "",
        [RS_CAUSE_THREAD] = " by another thread",
        [RS_CAUSE_FAILURE] = " because a sibling failed",
        [RS_CAUSE_BODY_FAILED] = " because the body of its group failed",
        [RS_CAUSE_BODY_ENDED] = " because the body of its group had ended",
        [RS_CAUSE_LEFT] = " because the block of its group was left",
        [RS_CAUSE_DEADLINE] = " because a deadline passed",
        [RS_CAUSE_GRACE] = " because the grace of a drain passed",
        [RS_CAUSE_RACE] = " because another one won the race",
        [RS_CAUSE_INTERRUPT] = " by Ctrl-C",
        [RS_CAUSE_TERMINATE] = " by SIGTERM",
        [RS_CAUSE_DEADLOCK] = " because all tasks wait and nothing can wake them",
        [RS_CAUSE_BACKEND] = " because the backend failed",
        [RS_CAUSE_BESIDE] = " because another loop failed",
};

/* The failure of a group: its text and its place. */
static void describe_failure(const struct rs_group *g, const char *because, resha_error *e)
{
        const char *text = g->failure ? g->failure->error.text : resha_strerror(g->failure_code);

        e->site = g->failure ? g->failure->error.site : NULL;
        snprintf(e->text, sizeof e->text, "cancelled%s: %.180s", because, text);
}

static void describe(enum rs_cause cause, const struct rs_reason *r, resha_error *e)
{
        e->site = r->site;
        if (cause == RS_CAUSE_BESIDE)
                snprintf(e->text, sizeof e->text, "cancelled because %s", r->who);
        else if (r->who)
                snprintf(e->text, sizeof e->text, "cancelled by task \"%s\"", r->who);
        else
                snprintf(e->text, sizeof e->text, "cancelled%s", texts[cause]);
}

/* As t sees it. */
static const char *failure_text(const struct rs_task *t, const struct rs_group *g)
{
        if (g->scope.task == t && g->scope.cause == RS_CAUSE_FAILURE)
                return " because a child failed";
        return g == t->group || g->scope.task == t ? texts[g->scope.cause] : " because of a failure outside";
}

static void describe_scope(const struct rs_task *t, const struct rs_scope *s, resha_error *e)
{
        const struct rs_group *g = (const struct rs_group *)(const void *)s;

        if (!s->is_group || (s->cause != RS_CAUSE_FAILURE && s->cause != RS_CAUSE_BODY_FAILED))
                describe((enum rs_cause)s->cause, &s->reason, e);
        else
                describe_failure(g, failure_text(t, g), e);
}

void rs_reason_describe(const struct rs_task *t, resha_error *e)
{
        const struct rs_scope *s = t->scope;

        for (const struct rs_task *in = t; in; in = s ? s->task : NULL) {
                for (; s && s->task == in && !s->cause; s = s->parent) {}
                if (s && s->task == in) {
                        describe_scope(t, s, e);
                        return;
                }
                if (in->cause) {
                        describe((enum rs_cause)in->cause, &in->reason, e);
                        return;
                }
        }
}
