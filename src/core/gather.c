/* SPDX-License-Identifier: MIT */
/* gather: a group and a loop, as a user could write it. What it has of its own is a look at each child that ends, and
 * the numbers of the items. */

#include "core/core.h"

struct gather {
        const resha_gather_opts *opts;
        size_t failed;
};

static void gather_child_done(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e)
{
        struct gather *gather = g->child_done_arg;
        const resha_gather_opts *o = gather->opts;

        gather->failed += rc < 0;
        if (o->ret_status)
                o->ret_status[t->item - 1] = rc;
        if (o->ret_errors) {
                if (e)
                        o->ret_errors[t->item - 1] = *e;
                else if (rc < 0)
                        rs_error_describe(rs_loop_current, t, rc, &o->ret_errors[t->item - 1]);
                else
                        o->ret_errors[t->item - 1] = (resha_error){ 0 };
        }
}

/* What items say that were never started. */
void rs_gather_not_started(const resha_gather_opts *o, size_t from, size_t n)
{
        for (size_t i = from; i < n && (o->ret_status || o->ret_errors); i++) {
                if (o->ret_status)
                        o->ret_status[i] = -ECANCELED;
                if (o->ret_errors)
                        o->ret_errors[i] =
                                (resha_error){ .code = -ECANCELED, .text = "cancelled before it was started" };
        }
}

bool rs_reserved_zero(const uint64_t words[4])
{
        return !(words[0] | words[1] | words[2] | words[3]);
}

int rs_spawn_item(struct rs_group *g, const struct rs_batch *b, size_t index)
{
        resha_call call = rs_batch_call(b, index);
        struct rs_task *t;
        int rc = resha_spawn_at((resha_group *)(void *)g, call.fn, call.arg, call.name ? call.name : "task", b->site);

        if (rc == 0) {
                t = RS_CONTAINER(g->children.last, struct rs_task, sibling);
                t->item = (uint32_t)(index + 1);
                t->items = (uint32_t)b->n;
        }
        return rc;
}

static int gather_run(const struct rs_batch *b, const resha_gather_opts *opts)
{
        static const resha_gather_opts defaults;
        const resha_gather_opts *o = opts ? opts : &defaults;
        struct gather gather = { .opts = o };
        RESHA_GROUP(group);
        struct rs_group *g = rs_group_of(&group);
        struct rs_loop *l = NULL;
        int rc = rs_enter(&l);
        size_t i = 0;

        if (rc == 0 && (!rs_reserved_zero(o->_reserved) || b->n >= UINT32_MAX))
                rc = resha_fail_at(-EINVAL, NULL, "a gather of %zu items: less than 2^32, and reserved words zero",
                                   b->n);
        if (rc == 0) {
                rs_group_open(l, g, &(resha_group_opts){ .limit = o->limit, .keep_going = o->keep_going });
                g->child_done = gather_child_done;
                g->child_done_arg = &gather;
                for (; i < b->n && rc == 0; i += rc == 0)
                        rc = rs_spawn_item(g, b, i);
        }
        rs_gather_not_started(o, i, b->n);
        if (g->scope.task)
                rc = rs_group_close(l, g, rc);
        gather.failed += b->n - i;
        if (o->ret_failed)
                *o->ret_failed = gather.failed;
        if (!o->keep_going || rc >= 0 || i < b->n || !g->limit) /* no limit: it was never opened */
                return rc;
        return (rc == -ECANCELED || g->cancelled) && resha_cancelled() ? -ECANCELED : 0;
}

int resha_gather_at(resha_fn *fn, void *items, size_t n, size_t size, const resha_gather_opts *opts, const char *name,
                    const char *site)
{
        return gather_run(
                &(struct rs_batch){ .fn = fn, .items = items, .n = n, .size = size, .name = name, .site = site }, opts);
}

int resha_gather_calls_at(const char *site, const resha_call *calls, size_t n, const resha_gather_opts *opts)
{
        return gather_run(&(struct rs_batch){ .calls = calls, .n = n, .site = site }, opts);
}
