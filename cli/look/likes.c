/* SPDX-License-Identifier: MIT */

/* Keys of tasks are hashes of pointers, since equal texts of a snapshot are equal pointers. */

#include "likes.h"

#include <resha/alloc.h>

#include "waits.h"

static uint64_t with(uint64_t key, uint64_t x)
{
        return keep_mix(key ^ x) * UINT64_C(0xff51afd7ed558ccd);
}

static uint64_t with_text(uint64_t key, const char *s)
{
        return with(key, (uint64_t)(uintptr_t)s);
}

uint64_t likes_kind(const struct task_row *task)
{
        uint64_t key = with(0, task->loop);
        key = with_text(key, task->name);
        key = with_text(key, task->site);
        key = with_text(key, task->state);
        return with_text(key, task->what);
}

uint64_t likes_key(const struct task_row *task)
{
        uint64_t key = with_text(likes_kind(task), task->detail);
        key = with_text(key, task->doing);
        key = with_text(key, task->cancelled);
        if (waits_for_ends(task)) /* each for its own */
                return key;
        key = with(key, task->object);
        for (unsigned i = 0; i < task->n_holders; i++)
                key = with(key, (uint64_t)task->holders[i]);
        return key;
}

bool likes_none(const struct task_row *task, uint32_t circle)
{
        return circle || task->ignored > 0 || waits_is(task, "runs");
}

void likes_done(struct likes *l)
{
        resha_free(l->like);
        keep_index_done(&l->at);
        *l = (struct likes){ .n = 0 };
}

int likes_add(struct likes *l, const struct snapshot *s, uint64_t key, int32_t row)
{
        int64_t at = keep_index_find(&l->at, 0, key);
        if (at >= 0) {
                struct like *k = &l->like[at];
                if (s->tasks.row[row].since > s->tasks.row[k->first].since)
                        k->first = row;
                k->n++;
                return 0;
        }
        if (l->n == l->cap) {
                size_t cap = l->cap ? 2 * l->cap : 32;
                struct like *more = resha_realloc(l->like, cap * sizeof *more);
                if (!more)
                        return -ENOMEM;
                l->like = more;
                l->cap = cap;
        }
        l->like[l->n] = (struct like){ .key = key, .first = row, .n = 1, .order = (uint32_t)l->n };
        return keep_index_set(&l->at, 0, key, (uint32_t)l->n++);
}
