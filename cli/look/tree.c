/* SPDX-License-Identifier: MIT */

/* `resha tree`: loops, their tasks in scopes and groups, what each waits for.
 *
 * Of branches that are alike the first three are drawn, and how many there are more. Where even the kinds of branches
 * are many, as with ten thousand tasks that talk to as many hosts, those that are roughly alike count as one. What is
 * in a circle, runs or ignores a cancel is always drawn, with all that is above it. */

#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "exits.h"
#include "forest.h"
#include "help.h"
#include "look.h"
#include "pictures.h"
#include "tree.h"
#include "waits.h"

enum { FEW = 5, SHOWN = 3, MANY_KINDS = 12, MANY_ALONE = 50, DEEPEST = 200 };

/* A line to draw below a node: a branch, or how many there are more. */
struct entry {
        int32_t node;      /* NO_ROW: it is a number of branches alike ... */
        uint32_t n, tasks; /* ... and of tasks in them */
        bool rough;
};

/* Branches of one key, below one node. */
struct pile {
        uint32_t n, tasks;
        int32_t first[SHOWN + 1]; /* of them */
};

struct level {
        size_t start, end, at; /* of the entries */
        size_t indent;         /* length of the indent of its lines */
};

struct drawing {
        const struct view *v;
        const struct forest *f;
        bool all;
        struct entry *entries; /* those of the levels that are being drawn, one behind the other */
        size_t n_entries, entries_cap;
        struct level *levels;
        size_t n_levels, levels_cap;
        struct pile *piles;
        size_t piles_cap;
        struct text indent;
        struct text *out;
};

/* Room for one more. */
static int reserve(void *array, size_t n, size_t *cap, size_t size)
{
        void **a = array;
        if (n < *cap)
                return 0;
        size_t more = *cap ? 2 * *cap : 64;
        void *grown = resha_realloc(*a, more * size);
        if (!grown)
                return -ENOMEM;
        *a = grown;
        *cap = more;
        return 0;
}

/* ---- what is drawn below a node ---- */

static int add_entry(struct drawing *d, struct entry e)
{
        int rc = reserve(&d->entries, d->n_entries, &d->entries_cap, sizeof *d->entries);
        if (rc == 0)
                d->entries[d->n_entries++] = e;
        return rc;
}

static uint64_t key_of(const struct node *n, bool rough)
{
        return rough ? n->kind : n->shape;
}

/* Lays the branches from `first` on, but for those alone, on piles by their keys. The number of piles, or -ENOMEM. */
static int64_t sort_out(struct drawing *d, int32_t first, bool rough, bool alone)
{
        struct keep_index at RESHA_CLEANUP(keep_index_done) = { .slots = NULL };
        size_t n = 0;
        for (int32_t i = first; i != NO_ROW; i = d->f->node[i].next) {
                const struct node *node = &d->f->node[i];
                if (alone && node->alone)
                        continue;
                int64_t k = keep_index_find(&at, 0, key_of(node, rough));
                if (k < 0) {
                        if (reserve(&d->piles, n, &d->piles_cap, sizeof *d->piles) < 0 ||
                            keep_index_set(&at, 0, key_of(node, rough), (uint32_t)n) < 0)
                                return -ENOMEM;
                        d->piles[n] = (struct pile){ 0 };
                        k = (int64_t)n++;
                }
                struct pile *p = &d->piles[k];
                if (p->n <= SHOWN)
                        p->first[p->n] = i;
                p->n++;
                p->tasks += node->tasks;
        }
        return (int64_t)n;
}

static int add_pile(struct drawing *d, const struct pile *p, bool rough)
{
        uint32_t shown = p->n > SHOWN + 1 ? SHOWN : p->n, tasks = p->tasks;
        int rc = 0;
        for (uint32_t i = 0; i < shown && rc == 0; i++) {
                tasks -= d->f->node[p->first[i]].tasks;
                rc = add_entry(d, (struct entry){ .node = p->first[i] });
        }
        if (rc == 0 && shown < p->n)
                rc = add_entry(d, (struct entry){ .node = NO_ROW, .n = p->n - shown, .tasks = tasks, .rough = rough });
        return rc;
}

/* What is alone comes first. */
static int add_entries(struct drawing *d, int32_t first)
{
        size_t n = 0, n_alone = 0;
        int rc = 0;
        for (int32_t i = first; i != NO_ROW; i = d->f->node[i].next, n++)
                n_alone += d->f->node[i].alone;
        bool alone = n_alone <= MANY_ALONE, rough = false, all = d->all || n <= FEW;
        for (int32_t i = first; i != NO_ROW && rc == 0; i = d->f->node[i].next)
                if ((alone || all) && d->f->node[i].alone)
                        rc = add_entry(d, (struct entry){ .node = i });
        for (int32_t i = first; i != NO_ROW && rc == 0 && all; i = d->f->node[i].next)
                if (!d->f->node[i].alone)
                        rc = add_entry(d, (struct entry){ .node = i });
        if (all || rc < 0)
                return rc;
        int64_t n_piles = sort_out(d, first, false, alone);
        if (n_piles > MANY_KINDS) {
                rough = true;
                n_piles = sort_out(d, first, true, alone);
        }
        for (int64_t i = 0; i < n_piles && rc == 0; i++)
                rc = add_pile(d, &d->piles[i], rough);
        return n_piles < 0 ? -ENOMEM : rc;
}

/* ---- lines ---- */

static void add_left(int64_t left, struct text *t)
{
        if (left >= 0) {
                screen_add_time(t, left);
                text_puts(t, " left");
        } else {
                screen_add_time(t, -left);
                text_puts(t, " past its deadline");
        }
}

static void add_number(int64_t n, int64_t least, const char *before, const char *behind, struct text *t)
{
        if (n < least)
                return;
        text_puts(t, before);
        text_add_grouped(t, (uint64_t)n);
        text_puts(t, behind);
}

static void add_scope(const struct drawing *d, const struct scope_row *x, struct text *t)
{
        bool no_suspend = strcmp(x->kind, "nosuspend") == 0;
        screen_add(&d->v->screen, t, no_suspend ? "no-suspend region" : *x->kind ? x->kind : "scope");
        size_t before = t->len;
        add_number(x->running, 0, ", ", " running", t);
        add_number(x->limit, 1, ", at most ", "", t);
        add_number(x->waiting, 1, ", ", x->waiting == 1 ? " waits for a place" : " wait for a place", t);
        add_number(x->failures, 1, ", ", " failed", t);
        if (x->left != -1) {
                text_puts(t, ", ");
                add_left(x->left, t);
        }
        if (x->cancelled)
                text_puts(t, ", CANCELLED");
        if (t->len > before)
                t->data[before] = ':';
}

static void add_task(const struct drawing *d, int32_t row, struct text *t)
{
        const struct snapshot *s = d->v->s;
        const struct task_row *task = &s->tasks.row[row];
        waits_add_row(s, &d->v->screen, task, t);
        if (task->items > 0)
                text_printf(t, " [%lld of %lld]", (long long)task->item, (long long)task->items);
        waits_add_place(&d->v->screen, task->site, t);
        text_putc(t, ' ');
        waits_add_state(s, &d->v->screen, task, t);
        if (d->v->cycles.of[row])
                text_puts(t, d->v->screen.ascii ? "  <- DEADLOCK" : "  \u2190 DEADLOCK");
}

static void add_more(const struct entry *e, struct text *t)
{
        text_puts(t, "... ");
        text_add_grouped(t, e->n);
        text_puts(t, e->rough ? " more of this kind" : " more like these");
        if (e->tasks != e->n) {
                text_puts(t, ", ");
                text_add_grouped(t, e->tasks);
                text_puts(t, e->tasks == 1 ? " task" : " tasks");
        }
}

static void draw_line(struct drawing *d, const struct entry *e, bool last)
{
        bool ascii = d->v->screen.ascii;
        TEXT(line);
        text_add(&line, text_string(&d->indent), d->indent.len);
        text_puts(&line, ascii ? last ? "`- " : "|- " : last ? "\u2514\u2500 " : "\u251c\u2500 ");
        if (e->node == NO_ROW)
                add_more(e, &line);
        else if (d->f->node[e->node].is_scope)
                add_scope(d, &d->v->s->scopes.row[d->f->node[e->node].row], &line);
        else
                add_task(d, d->f->node[e->node].row, &line);
        screen_add_line(&d->v->screen, d->out, text_string(&line), line.len);
        d->out->failed |= line.failed;
}

/* ---- drawing ---- */

static int descend(struct drawing *d, int32_t first)
{
        size_t start = d->n_entries;
        int rc = add_entries(d, first);
        if (rc == 0)
                rc = reserve(&d->levels, d->n_levels, &d->levels_cap, sizeof *d->levels);
        if (rc == 0)
                d->levels[d->n_levels++] =
                        (struct level){ .start = start, .end = d->n_entries, .at = start, .indent = d->indent.len };
        return rc;
}

static int draw(struct drawing *d, int32_t first)
{
        int rc = descend(d, first);
        while (d->n_levels && rc == 0) {
                struct level *l = &d->levels[d->n_levels - 1];
                d->indent.len = l->indent;
                if (l->at == l->end) {
                        d->n_entries = l->start;
                        d->n_levels--;
                        continue;
                }
                struct entry e = d->entries[l->at++];
                bool last = l->at == l->end;
                draw_line(d, &e, last);
                if (e.node == NO_ROW || d->f->node[e.node].first == NO_ROW)
                        continue;
                if (d->n_levels < DEEPEST) /* else lines that are mostly indent: n * n bytes of them */
                        text_puts(&d->indent, last ? "   " : d->v->screen.ascii ? "|  " : "\u2502  ");
                rc = descend(d, d->f->node[e.node].first);
        }
        return d->out->failed || d->indent.failed ? -ENOMEM : rc;
}

static int draw_loops(struct drawing *d, bool blocked)
{
        const struct snapshot *s = d->v->s;
        int rc = 0;
        for (size_t i = 0; i < s->loops.n && rc == 0; i++) {
                if (view_is_blocked(&s->loops.row[i]) != blocked)
                        continue;
                text_putc(d->out, '\n');
                view_add_loop(d->v, &s->loops.row[i], d->out);
                rc = draw(d, d->f->roots[i]);
        }
        return rc;
}

static void done(struct drawing *d)
{
        resha_free(d->entries);
        resha_free(d->levels);
        resha_free(d->piles);
        text_done(&d->indent);
}

int tree_add(const struct view *v, bool all, struct text *t)
{
        FOREST(f);
        int rc = forest_init(&f, v);
        struct drawing d RESHA_CLEANUP(done) = { .v = v, .f = &f, .all = all, .out = t };
        view_add_head(v, t);
        view_add_findings(v, t);
        if (rc == 0)
                rc = draw_loops(&d, true);
        if (rc == 0)
                rc = draw_loops(&d, false);
        if (rc == 0 && f.roots[v->s->loops.n] != NO_ROW)
                rc = draw(&d, f.roots[v->s->loops.n]);
        return rc;
}

/* The node of a scope, NO_ROW: it is in no tree. */
static int32_t node_of(const struct forest *f, int32_t row)
{
        for (size_t i = 0; i < f->n; i++)
                if (f->node[i].is_scope && f->node[i].row == row)
                        return (int32_t)i;
        return NO_ROW;
}

int tree_add_group(const struct view *v, int32_t row, struct text *t)
{
        FOREST(f);
        int rc = forest_init(&f, v);
        struct drawing d RESHA_CLEANUP(done) = { .v = v, .f = &f, .out = t };
        int32_t node = rc == 0 ? node_of(&f, row) : NO_ROW;
        if (node == NO_ROW)
                return rc;
        add_scope(&d, &v->s->scopes.row[row], t);
        text_putc(t, '\n');
        return draw(&d, f.node[node].first);
}

int tree_main(int argc, char **argv)
{
        struct asked a;
        int rc;
        VIEW(v);
        TEXT(t);
        if (!asked_begin(&a, "tree", help_tree, argc, argv, &rc))
                return rc;
        if (a.json)
                return view_pass(&a, &(struct question){ .request = "snapshot" }, STDOUT_FILENO);
        rc = view_load(&v, &a, "snapshot");
        if (rc != EXIT_DONE)
                return rc;
        t.failed |= tree_add(&v, a.all, &t) < 0;
        return asked_write(&a, &t);
}
