/* SPDX-License-Identifier: MIT */

/* The tree is built from its roots down, each node being added behind its parent, so that a walk over the array from
 * its end comes to all children before their parent: no recursion, however deep a program nests.
 *
 * What is told of a program that goes on meanwhile need not fit together: a task whose group did not come is a root,
 * and what hangs together in a ring, below no root, becomes one. */

#include "forest.h"

#include <string.h>

#include <resha/alloc.h>

#include "likes.h"

enum { KINDS = 16 };

struct planting {
        struct forest *f;
        const struct view *v;
        uint8_t *task_seen, *scope_seen;
        int32_t *last; /* of a node: its last child */
        int32_t *last_root;
};

void forest_done(struct forest *f)
{
        resha_free(f->node);
        resha_free(f->roots);
        *f = (struct forest){ .n = 0 };
}

static size_t loop_index(const struct view *v, uint32_t loop)
{
        for (size_t i = 0; i < v->s->loops.n; i++)
                if (v->s->loops.row[i].loop == loop)
                        return i;
        return v->s->loops.n; /* one of which nothing was told */
}

static void add_node(struct planting *p, int32_t row, bool is_scope, int32_t parent)
{
        uint8_t *seen = is_scope ? &p->scope_seen[row] : &p->task_seen[row];
        if (*seen)
                return;
        *seen = 1;
        int32_t at = (int32_t)p->f->n++;
        p->f->node[at] =
                (struct node){ .row = row, .is_scope = is_scope, .parent = parent, .first = NO_ROW, .next = NO_ROW };
        p->last[at] = NO_ROW;
        int32_t *first, *last;
        if (parent == NO_ROW) {
                size_t i = loop_index(p->v, is_scope ? p->v->s->scopes.row[row].loop : p->v->s->tasks.row[row].loop);
                first = &p->f->roots[i];
                last = &p->last_root[i];
        } else {
                first = &p->f->node[parent].first;
                last = &p->last[parent];
        }
        if (*last == NO_ROW)
                *first = at;
        else
                p->f->node[*last].next = at;
        *last = at;
}

static void add_children(struct planting *p, int32_t at)
{
        const struct family *f = &p->v->family;
        struct node n = p->f->node[at];
        int32_t scope = n.is_scope ? f->inner_first[n.row] : f->scope_first[n.row];
        for (int32_t task = n.is_scope ? f->task_first[n.row] : NO_ROW; task != NO_ROW; task = f->task_next[task])
                add_node(p, task, false, at);
        for (; scope != NO_ROW; scope = f->scope_next[scope])
                add_node(p, scope, true, at);
}

static void grow(struct planting *p, size_t *done)
{
        for (; *done < p->f->n; ++*done)
                add_children(p, (int32_t)*done);
}

static uint64_t scope_key(const struct scope_row *x)
{
        uint64_t key = keep_mix((uint64_t)(uintptr_t)x->kind + x->cancelled);
        key = keep_mix(key ^ (uint64_t)(x->limit + 1));
        return keep_mix(key ^ (uint64_t)(x->left >= 0) << 1 ^ (uint64_t)(x->waiting > 0) << 2);
}

static unsigned magnitude(uint32_t n)
{
        unsigned bits = 0;
        for (; n; n >>= 1)
                bits++;
        return bits;
}

/* What its children are, in whatever order: of each kind about how many, so that 333 of one and 334 of the other are
 * like 334 and 333. Kinds beyond the first few count as one. */
static uint64_t children_key(const struct forest *f, const struct node *n)
{
        struct {
                uint64_t shape;
                uint32_t n;
        } seen[KINDS + 1];
        unsigned n_seen = 0;
        uint64_t key = 0;
        for (int32_t i = n->first; i != NO_ROW; i = f->node[i].next) {
                unsigned k = 0;
                while (k < n_seen && seen[k].shape != f->node[i].shape)
                        k++;
                if (k == n_seen && n_seen < KINDS) {
                        seen[n_seen].shape = f->node[i].shape;
                        seen[n_seen++].n = 0;
                }
                if (k < KINDS)
                        seen[k].n++;
        }
        for (unsigned k = 0; k < n_seen; k++)
                key += keep_mix(seen[k].shape + magnitude(seen[k].n));
        return n_seen == KINDS ? KINDS : key;
}

/* From the last node to the first: all children of a node come before it. */
static void compare(struct planting *p)
{
        const struct snapshot *s = p->v->s;
        for (size_t i = p->f->n; i-- > 0;) {
                struct node *n = &p->f->node[i];
                if (n->is_scope) {
                        n->kind = scope_key(&s->scopes.row[n->row]);
                        n->shape = n->kind;
                } else {
                        const struct task_row *t = &s->tasks.row[n->row];
                        n->shape = likes_key(t);
                        n->kind = likes_kind(t);
                        n->tasks++;
                        n->alone |= likes_none(t, p->v->cycles.of[n->row]);
                }
                n->shape = keep_mix(n->shape ^ children_key(p->f, n));
                if (n->parent == NO_ROW)
                        continue;
                struct node *up = &p->f->node[n->parent];
                up->tasks += n->tasks;
                up->alone |= n->alone;
        }
}

int forest_init(struct forest *f, const struct view *v)
{
        const struct snapshot *s = v->s;
        size_t n = s->tasks.n + s->scopes.n + 1, n_loops = s->loops.n + 1, done = 0;
        struct planting p = { .f = f, .v = v };
        f->node = resha_malloc(n * sizeof *f->node);
        f->roots = resha_malloc(n_loops * sizeof *f->roots);
        p.task_seen = resha_calloc(s->tasks.n + 1, 1);
        p.scope_seen = resha_calloc(s->scopes.n + 1, 1);
        p.last = resha_malloc(n * sizeof *p.last);
        p.last_root = resha_malloc(n_loops * sizeof *p.last_root);
        int rc = f->node && f->roots && p.task_seen && p.scope_seen && p.last && p.last_root ? 0 : -ENOMEM;
        if (rc == 0) {
                for (size_t i = 0; i < n_loops; i++)
                        f->roots[i] = p.last_root[i] = NO_ROW;
                for (int32_t i = v->family.root_first; i != NO_ROW; i = v->family.task_next[i])
                        add_node(&p, i, false, NO_ROW);
                grow(&p, &done);
                for (size_t i = 0; i < s->tasks.n; i++) {
                        add_node(&p, (int32_t)i, false, NO_ROW);
                        grow(&p, &done);
                }
                compare(&p);
        }
        resha_free(p.task_seen);
        resha_free(p.scope_seen);
        resha_free(p.last);
        resha_free(p.last_root);
        return rc;
}
