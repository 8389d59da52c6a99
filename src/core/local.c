/* SPDX-License-Identifier: MIT */
/* Task-locals: a task has a chain of counted values, shared with its children until one of them sets something.
 *
 *     parent -> [user] -> [request 1] -> NULL
 *                 ^
 *     child ------+          parent sets request 2: [request 2] -> [user] -> NULL, of its own; the child's stays
 *
 * Invariants
 *  1. A chain holds each key once, so a look-up costs as much as there are keys in use, however deep the tasks nest.
 *  2. A value that more than one holds (a task, a saved block, a value in front of it) is not changed. Those in front
 *     of the first such one belong to the task alone, and are changed where they are.
 *  3. Counts change on the loop's thread only. A job on another thread reads the chain of its task, which waits for it.
 */

#include <string.h>

#include "base/alloc.h"
#include "core/core.h"

enum { RS_LOCAL_MAX = 4096, RS_LOCAL_ZEROS = 64 };

struct rs_local {
        struct rs_local *next;
        const resha_local *key;
        size_t holders;
        _Alignas(max_align_t) char value[];
};

/* What a thread job sees; set on its thread while it runs. The job may run a loop of its own there, whose tasks have
 * values of their own. */
static _Thread_local struct {
        const struct rs_local *values;
        const struct rs_loop *loop;
        bool runs;
} job;

void rs_local_job(bool begins, const struct rs_local *values)
{
        job.runs = begins;
        job.loop = rs_loop_current;
        job.values = values;
}

static bool in_job(void)
{
        return job.runs && job.loop == rs_loop_current;
}

struct rs_local *rs_local_hold(struct rs_local *v)
{
        if (v)
                v->holders++;
        return v;
}

void rs_local_drop(struct rs_loop *l, struct rs_local *v)
{
        while (v && --v->holders == 0) {
                struct rs_local *next = v->next;

                resha_free(v);
                if (l)
                        l->locals--;
                v = next;
        }
}

static struct rs_local *value_new(struct rs_loop *l, const resha_local *key, const void *value)
{
        struct rs_local *v = resha_malloc(sizeof *v + key->size);

        if (!v)
                return NULL;
        *v = (struct rs_local){ .key = key, .holders = 1 };
        memcpy(v->value, value, key->size);
        l->locals++;
        return v;
}

/* The chain of t with another value for the key of v: v, copies of what stood in front of the old value, and what
 * stands behind it. The copies are linked in the order they had. NULL: no memory. */
static struct rs_local *chain_around(struct rs_loop *l, struct rs_task *t, struct rs_local *v, struct rs_local *old)
{
        struct rs_local *end = v;

        for (const struct rs_local *p = t->locals; p != old; p = p->next) {
                struct rs_local *copy = value_new(l, p->key, p->value);
                if (!copy) {
                        rs_local_drop(l, v);
                        return NULL;
                }
                end->next = copy;
                end = copy;
        }
        end->next = rs_local_hold(old->next);
        return v;
}

/* Neither a job's thread nor the report sink has values of its own. */
static bool may_change(const struct rs_loop *l)
{
        return l && l->current && !l->told && !in_job();
}

/* In front, or where the old value stands if it is the task's alone. */
static int set(struct rs_loop *l, struct rs_task *t, const resha_local *key, const void *value)
{
        struct rs_local *old = t->locals;
        bool own = true;

        for (; old && old->key != key; old = old->next)
                own &= old->holders == 1;
        if (old && own && old->holders == 1) {
                memmove(old->value, value, key->size);
                return 0;
        }
        struct rs_local *v = value_new(l, key, value);
        if (!v)
                return -ENOMEM;
        if (!old) {
                v->next = t->locals;
                t->locals = v;
                return 0;
        }
        v = chain_around(l, t, v, old);
        if (!v)
                return -ENOMEM;
        rs_local_drop(l, t->locals);
        t->locals = v;
        return 0;
}

int resha_local_set(const resha_local *key, const void *value)
{
        struct rs_loop *l = rs_loop_current;

        if (!may_change(l))
                return resha_fail_at(-EPERM, NULL,
                                     "a task-local is set by its task, not by a thread job or a report sink");
        if (key->size == 0 || key->size > RS_LOCAL_MAX)
                return resha_fail_at(-EINVAL, NULL, "a task-local of %zu bytes: 1 to %d", key->size, RS_LOCAL_MAX);
        return set(l, l->current, key, value);
}

/* The chain that counts here. */
static const struct rs_local *values_here(void)
{
        const struct rs_loop *l = rs_loop_current;

        if (in_job())
                return job.values;
        if (!l)
                return NULL;
        return l->told ? l->told->locals : l->current ? l->current->locals : NULL;
}

const void *resha_local_get(const resha_local *key)
{
        static const max_align_t zeros[RS_LOCAL_ZEROS / sizeof(max_align_t)];

        for (const struct rs_local *v = values_here(); v; v = v->next)
                if (v->key == key)
                        return v->value;
        return key->initial ? key->initial : key->size <= sizeof zeros ? zeros : NULL;
}

resha_locals resha_locals_save(void)
{
        struct rs_loop *l = rs_loop_current;

        if (!may_change(l))
                return (resha_locals){ NULL, NULL };
        return (resha_locals){ l->current, rs_local_hold(l->current->locals) };
}

void resha_locals_restore(resha_locals *saved)
{
        struct rs_loop *l = rs_loop_current;

        if (!saved->_task)
                return;
        struct rs_task *t = saved->_task;
        if (!l || l->current != t)
                rs_task_abort(t, "its block of locals is left on another task");
        rs_local_drop(l, t->locals);
        t->locals = saved->_values;
        saved->_task = NULL;
}
