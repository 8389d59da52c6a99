/* SPDX-License-Identifier: MIT */
/* race: a group whose first success cancels the rest. The body starts the items, with a pause between them if it is
 * staggered, and looks at each child that ends. */

#include "core/core.h"

struct race {
        resha_event moved; /* somebody has ended */
        size_t failed, winner;
        int result, last_failure;
        const struct rs_batch *batch;
        resha_drop_fn *drop;
        struct rs_loop *loop;
        struct rs_record *failure;
};

static void race_child_done(struct rs_group *g, struct rs_task *t, int rc, const resha_error *e)
{
        struct race *r = g->child_done_arg;
        size_t index = t->item - 1;

        if (rc >= 0 && r->winner == SIZE_MAX) {
                r->winner = index;
                r->result = rc;
                if (!g->scope.requested)
                        rs_scope_request(r->loop, &g->scope, RS_CAUSE_RACE, NULL);
        } else if (rc >= 0) {
                if (r->drop)
                        r->drop(rs_batch_call(r->batch, index).arg);
        } else if (rc != -ECANCELED || !g->scope.effective) {
                r->failed++;
                r->last_failure = rc;
                if (r->failure)
                        rs_record_free(r->loop, r->failure);
                r->failure = e ? rs_record_new(r->loop, e) : NULL; /* NULL: it alone was cancelled */
        }
        resha_event_set(&r->moved);
}

static int wait_moved(void *arg)
{
        return resha_event_wait(arg);
}

/* Until the next one is due: the stagger has passed, one has failed meanwhile, or all that were started have before. */
static int race_pause(struct race *r, size_t started, resha_duration stagger)
{
        size_t failed = r->failed;
        resha_instant due = resha_after(stagger);
        int rc = 0;

        while (rc == 0 && r->winner == SIZE_MAX && r->failed == failed && r->failed < started) {
                resha_event_clear(&r->moved);
                rc = resha_timeout(resha_between(resha_now(), due), wait_moved, &r->moved);
        }
        return rc == -ETIME ? 0 : rc;
}

static int race_start(struct race *r, struct rs_group *g, resha_duration stagger)
{
        size_t n = r->batch->n;
        int rc = 0;

        for (size_t i = 0; i < n && rc == 0 && r->winner == SIZE_MAX; i++) {
                rc = rs_spawn_item(g, r->batch, i);
                if (rc == 0 && stagger.ns > 0 && i + 1 < n)
                        rc = race_pause(r, i + 1, stagger);
        }
        return rc;
}

static int race_run(const struct rs_batch *b, const resha_race_opts *opts, size_t *ret_winner)
{
        static const resha_race_opts defaults;
        const resha_race_opts *o = opts ? opts : &defaults;
        RESHA_GROUP(group);
        struct rs_group *g = rs_group_of(&group);
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0 && (!rs_reserved_zero(o->_reserved) || b->n == 0 || b->n >= UINT32_MAX))
                rc = resha_fail_at(-EINVAL, NULL, "a race of %zu items: 1 to 2^32, and reserved words zero", b->n);
        if (rc < 0)
                return rc;
        struct race r = { .winner = SIZE_MAX, .batch = b, .drop = o->drop, .loop = l };
        rs_group_open(l, g, &(resha_group_opts){ .keep_going = true });
        g->child_done = race_child_done;
        g->child_done_arg = &r;
        rc = race_start(&r, g, o->stagger);
        rc = rs_group_close(l, g, rc);
        if (r.winner != SIZE_MAX) {
                rc = r.result;
                if (ret_winner)
                        *ret_winner = r.winner;
        } else if (r.failed < b->n && (l->current->attention & RS_CANCELLED)) {
                rc = -ECANCELED; /* some might have won: the failures of others are not why there is no winner */
        } else if (rc != -ECANCELED && r.last_failure) {
                rc = r.last_failure;
                if (r.failure)
                        rs_error_give(l, &r.failure->error);
        }
        if (r.failure)
                rs_record_free(l, r.failure);
        return rc;
}

int resha_race_at(resha_fn *fn, void *items, size_t n, size_t size, const resha_race_opts *opts, size_t *ret_winner,
                  const char *name, const char *site)
{
        return race_run(
                &(struct rs_batch){ .fn = fn, .items = items, .n = n, .size = size, .name = name, .site = site }, opts,
                ret_winner);
}

int resha_race_calls_at(const char *site, const resha_call *calls, size_t n, const resha_race_opts *opts,
                        size_t *ret_winner)
{
        return race_run(&(struct rs_batch){ .calls = calls, .n = n, .site = site }, opts, ret_winner);
}
