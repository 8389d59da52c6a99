/* SPDX-License-Identifier: MIT */

/* A search in depth along what tasks wait for, with a stack of its own: a task that comes again while it is on the way
 * closes a circle.
 *
 * A task waits for those that its inspector names, all of which must do something first; and if it waits for the end of
 * a group of its own, for all tasks of that, of which the inspector names a few only. */

#include "cycles.h"

#include <string.h>

#include <resha/alloc.h>

struct search {
        const struct snapshot *s;
        const struct family *f;
        struct cycles *c;
        uint8_t *colour; /* 0: not seen, 1: on the way, 2: done */
        uint8_t *holder; /* how many of its holders have been looked at */
        int32_t *child;  /* the next one of its group to look at; NO_ROW */
        int32_t *from;   /* where the way came from */
};

void cycles_done(struct cycles *c)
{
        resha_free(c->of);
        resha_free(c->next);
        resha_free(c->first);
        *c = (struct cycles){ .n = 0 };
}

static int32_t first_child(const struct search *x, int32_t i)
{
        const struct task_row *t = &x->s->tasks.row[i];
        const struct scope_row *g = snapshot_scope(x->s, t->loop, t->object);
        bool own = g && strcmp(t->state, "waits") == 0 && g->task == (int64_t)t->id && strcmp(t->what, "children") == 0;
        return own ? x->f->task_first[g - x->s->scopes.row] : NO_ROW;
}

/* The next one that a task waits for; NO_ROW: there are no more. */
static int32_t next_of(struct search *x, int32_t i)
{
        const struct task_row *t = &x->s->tasks.row[i];
        unsigned n_holders = strcmp(t->state, "waits") == 0 ? t->n_holders : 0;
        while (x->holder[i] < n_holders) {
                const struct task_row *h = snapshot_task(x->s, t->loop, t->holders[x->holder[i]++]);
                if (h)
                        return (int32_t)(h - x->s->tasks.row);
        }
        int32_t child = x->child[i];
        if (child != NO_ROW)
                x->child[i] = x->f->task_next[child];
        return child;
}

/* From `first` on the way to `last`, and back. */
static int note(struct search *x, int32_t first, int32_t last)
{
        struct cycles *c = x->c;
        for (int32_t i = last;; i = x->from[i]) {
                if (c->of[i])
                        return 0; /* one that has been told crosses it */
                if (i == first)
                        break;
        }
        if (c->n == c->cap) {
                size_t cap = c->cap ? 2 * c->cap : 8;
                int32_t *more = resha_realloc(c->first, cap * sizeof *more);
                if (!more)
                        return -ENOMEM;
                c->first = more;
                c->cap = cap;
        }
        c->first[c->n++] = first;
        int32_t next = first;
        for (int32_t i = last;; i = x->from[i]) {
                c->of[i] = (uint32_t)c->n;
                c->next[i] = next;
                next = i;
                if (i == first)
                        return 0;
        }
}

static int search_from(struct search *x, int32_t start)
{
        int32_t at = start;
        int rc = 0;
        x->from[at] = NO_ROW;
        x->colour[at] = 1;
        x->child[at] = first_child(x, at);
        while (at != NO_ROW && rc == 0) {
                int32_t next = next_of(x, at);
                if (next == NO_ROW) {
                        x->colour[at] = 2;
                        at = x->from[at];
                } else if (x->colour[next] == 1) {
                        rc = note(x, next, at);
                } else if (x->colour[next] == 0) {
                        x->from[next] = at;
                        x->colour[next] = 1;
                        x->child[next] = first_child(x, next);
                        at = next;
                }
        }
        return rc;
}

int cycles_init(struct cycles *c, const struct snapshot *s, const struct family *f)
{
        size_t n = s->tasks.n + 1;
        struct search x = { .s = s, .f = f, .c = c };
        c->of = resha_calloc(n, sizeof *c->of);
        c->next = resha_calloc(n, sizeof *c->next);
        x.colour = resha_calloc(n, 1);
        x.holder = resha_calloc(n, 1);
        x.child = resha_calloc(n, sizeof *x.child);
        x.from = resha_calloc(n, sizeof *x.from);
        int rc = c->of && c->next && x.colour && x.holder && x.child && x.from ? 0 : -ENOMEM;
        for (size_t i = 0; i < s->tasks.n && rc == 0; i++)
                if (x.colour[i] == 0)
                        rc = search_from(&x, (int32_t)i);
        resha_free(x.colour);
        resha_free(x.holder);
        resha_free(x.child);
        resha_free(x.from);
        return rc;
}
