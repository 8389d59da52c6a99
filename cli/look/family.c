/* SPDX-License-Identifier: MIT */

/* Lists of relatives, built from the last row to the first, so that each list is in the order of the rows. */

#include "family.h"

#include <string.h>

#include <resha/alloc.h>

void family_done(struct family *f)
{
        resha_free(f->scope_first);
        resha_free(f->scope_next);
        resha_free(f->inner_first);
        resha_free(f->task_first);
        resha_free(f->task_next);
        *f = (struct family){ .root_first = NO_ROW };
}

static int32_t *rows(size_t n)
{
        int32_t *a = resha_malloc((n + 1) * sizeof *a);
        if (a)
                memset(a, 0xff, (n + 1) * sizeof *a); /* NO_ROW */
        return a;
}

static void push(int32_t *first, int32_t *next, size_t i)
{
        next[i] = *first;
        *first = (int32_t)i;
}

int family_init(struct family *f, const struct snapshot *s)
{
        f->scope_first = rows(s->tasks.n);
        f->task_next = rows(s->tasks.n);
        f->scope_next = rows(s->scopes.n);
        f->inner_first = rows(s->scopes.n);
        f->task_first = rows(s->scopes.n);
        f->root_first = NO_ROW;
        if (!f->scope_first || !f->task_next || !f->scope_next || !f->inner_first || !f->task_first)
                return -ENOMEM;
        for (size_t i = s->scopes.n; i-- > 0;) {
                const struct scope_row *x = &s->scopes.row[i];
                const struct scope_row *parent = snapshot_scope(s, x->loop, x->parent);
                const struct task_row *t = snapshot_task(s, x->loop, x->task);
                if (parent && parent != x && parent->task == x->task)
                        push(&f->inner_first[parent - s->scopes.row], f->scope_next, i);
                else if (t)
                        push(&f->scope_first[t - s->tasks.row], f->scope_next, i);
        }
        for (size_t i = s->tasks.n; i-- > 0;) {
                const struct task_row *t = &s->tasks.row[i];
                const struct scope_row *group = snapshot_scope(s, t->loop, t->group);
                push(group ? &f->task_first[group - s->scopes.row] : &f->root_first, f->task_next, i);
        }
        return 0;
}
