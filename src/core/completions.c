/* SPDX-License-Identifier: MIT */
/* Completions: the results of many tasks, in the order in which they end.
 *
 * A background group and a line of what has ended and was not taken yet. The line is threaded through an array with an
 * entry for each item, made at the beginning, so that a task that ends and a consumer that waits allocate nothing. A
 * child that ends starts the next item itself: the consumer may be busy with something else for long.
 *
 *     not started -- start_more() --> running -- child_done() --> in line -- next() --> taken
 *              \________ the group is cancelled, or no task can be made ________^
 *
 * Failures are told to the consumer alone: they cancel nobody, and are not the group's. Those left in line when the
 * block is left are reported as lost, unless it ends with a failure itself. */

#include "base/alloc.h"
#include "core/core.h"

struct entry {
        struct rs_record *failure; /* while it stands in line */
        int status;
        uint32_t behind; /* the next in line, from 1 */
};

struct completions {
        struct rs_group group;
        struct rs_batch batch;
        struct entry *entries;
        uint32_t first, last; /* of the line, from 1; 0: it is empty */
        size_t started, taken, limit;
        struct rs_wait *consumer;
        struct rs_local *locals; /* of the consumer at begin: those of each item */
};

_Static_assert(sizeof(struct completions) <= sizeof(resha_completions), "resha_completions is too small");

static struct completions *inside(resha_completions *c)
{
        return (struct completions *)(void *)c;
}

static void settle(struct rs_loop *l, struct completions *c, size_t index, int rc, const resha_error *e)
{
        struct entry *entry = &c->entries[index];
        uint32_t place = (uint32_t)(index + 1);

        *entry = (struct entry){ .status = rc };
        if (rc < 0 && rc != -ECANCELED)
                entry->failure = rs_record_new(l, e);
        if (c->last)
                c->entries[c->last - 1].behind = place;
        else
                c->first = place;
        c->last = place;
        if (c->consumer) {
                struct rs_wait *w = c->consumer;
                c->consumer = NULL;
                rs_wake(w, 0);
        }
}

static int start(struct rs_loop *l, struct completions *c, size_t index)
{
        resha_call call = rs_batch_call(&c->batch, index);
        struct rs_task *t;
        int rc = rs_spawn(l, &c->group, call.fn, call.arg, call.name, c->batch.site, &t);

        if (rc < 0)
                return rc;
        t->item = (uint32_t)(index + 1);
        t->items = (uint32_t)c->batch.n;
        rs_local_drop(l, t->locals); /* of the child that ended just now */
        t->locals = rs_local_hold(c->locals);
        return 0;
}

/* As many as there are places for. One that cannot be started has failed with that. */
static void start_more(struct rs_loop *l, struct completions *c)
{
        const struct rs_group *g = &c->group;

        while (c->started < c->batch.n && (g->scope.effective || g->running < c->limit)) {
                size_t index = c->started++;
                int rc = g->scope.effective ? -ECANCELED : start(l, c, index);
                if (rc < 0) {
                        resha_error e;
                        rs_error_describe(l, l->current ? l->current : g->scope.task, rc, &e);
                        settle(l, c, index, rc, &e);
                }
        }
}

static void child_done(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e)
{
        struct completions *c = RS_CONTAINER(g, struct completions, group);
        struct rs_loop *l = g->child_done_arg;

        settle(l, c, t->item - 1, rc, e);
        start_more(l, c);
}

/* 0, and the group is open; or a negative code. */
static int open(struct rs_loop *l, struct completions *c, const struct rs_batch *batch,
                const resha_completions_opts *opts)
{
        static const resha_completions_opts defaults;
        const resha_completions_opts *o = opts ? opts : &defaults;
        bool valid = rs_reserved_zero(o->_reserved) && batch->n < UINT32_MAX;

        *c = (struct completions){ .limit = o->limit ? o->limit : SIZE_MAX };
        rs_group_open(l, &c->group, &(resha_group_opts){ .background = true });
        c->group.child_done = child_done;
        c->group.child_done_arg = l;
        c->group.collected = true;
        if (valid && batch->n)
                c->entries = resha_calloc(batch->n, sizeof *c->entries);
        if (!valid || (batch->n && !c->entries))
                return valid ? -ENOMEM : -EINVAL;
        c->batch = *batch;
        c->locals = rs_local_hold(l->current->locals);
        return 0;
}

void resha_completions_begin_at(resha_completions *completions, resha_fn *fn, void *items, size_t n, size_t size,
                                const resha_completions_opts *opts, const char *name, const char *site)
{
        struct completions *c = inside(completions);
        struct rs_batch batch = { .fn = fn, .items = items, .n = n, .size = size, .name = name, .site = site };
        struct rs_loop *l;

        if (c->group.scope.task) {
                if (!rs_scope_open_twice(rs_loop_current, &c->group.scope))
                        *c = (struct completions){ .group.scope = { .begin_code = -EINVAL, .dirty = true } };
                return;
        }
        int rc = rs_enter_shielded(&l);
        if (rc < 0) {
                *c = (struct completions){ .group = { .scope = { .begin_code = rc } } };
        } else {
                c->group.scope.begin_code = open(l, c, &batch, opts);
                start_more(l, c);
        }
}

/* What begin could not do, with its record. */
static __attribute__((noinline, cold)) int refused(const struct completions *c)
{
        const struct rs_scope *s = &c->group.scope;

        if (s->begin_code == -EINVAL && !s->twice && !s->dirty)
                return resha_fail_at(-EINVAL, NULL, "completions take less than 2^32 items, and reserved words zero");
        if (s->begin_code == -ENOMEM)
                return resha_fail_at(-ENOMEM, NULL, "no memory for the results of completions");
        return rs_scope_refused(s);
}

static void consumer_cancel(struct rs_wait *w)
{
        struct completions *c = (struct completions *)(uintptr_t)w->object;

        c->consumer = NULL;
        rs_wake(w, -ECANCELED);
}

/* The first in line. */
static void take(struct rs_loop *l, struct completions *c, size_t *ret_index, int *ret_status)
{
        size_t index = c->first - 1;
        struct entry *entry = &c->entries[index];

        c->first = entry->behind;
        if (!c->first)
                c->last = 0;
        c->taken++;
        if (entry->failure) {
                rs_error_give(l, &entry->failure->error);
                rs_record_free(l, entry->failure);
                entry->failure = NULL;
        }
        if (ret_index)
                *ret_index = index;
        if (ret_status)
                *ret_status = entry->status;
}

int resha_completions_next(resha_completions *completions, size_t *ret_index, int *ret_status)
{
        struct completions *c = inside(completions);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (c->group.scope.begin_code < 0 || c->group.scope.task != l->current)
                return refused(c);
        bool waits = !c->first && c->taken < c->batch.n;
        if (waits) {
                struct rs_wait w = { .cancel = consumer_cancel, .what = "completions", .object = c };
                c->consumer = &w;
                rc = (int)rs_wait(l, &w);
                if (rc < 0)
                        return rc;
        }
        if (!c->first)
                return rs_complete(l, 0);
        take(l, c, ret_index, ret_status);
        return waits ? 1 : rs_complete(l, 1);
}

/* Every task has ended. */
static void finish(struct rs_loop *l, struct completions *c, bool failed)
{
        while (c->first) {
                struct entry *entry = &c->entries[c->first - 1];
                c->first = entry->behind;
                if (!entry->failure)
                        continue;
                if (!failed)
                        rs_report_lost(l, l->current, &entry->failure->error,
                                       "nobody took it; call resha_completions_next() until it gives 0");
                rs_record_free(l, entry->failure);
        }
        resha_free(c->entries);
        c->entries = NULL;
        rs_local_drop(l, c->locals);
        c->locals = NULL;
}

int resha_completions_end(resha_completions *completions, int rc)
{
        struct completions *c = inside(completions);
        struct rs_loop *l = rs_loop_current;

        if (!c->group.scope.task || !l || l->current != c->group.scope.task)
                return rc < 0 ? rc : refused(c);
        int begun = c->group.scope.begin_code;
        rc = rs_group_close(l, &c->group, rc);
        if (RS_UNLIKELY(begun < 0 && rc == begun))
                refused(c);
        finish(l, c, rc < 0);
        return rc;
}

void resha_completions_leave(resha_completions *completions)
{
        struct completions *c = inside(completions);

        if (!c->group.scope.task)
                return;
        resha_group_leave((resha_group *)(void *)&c->group);
        finish(rs_loop_current, c, false);
}
