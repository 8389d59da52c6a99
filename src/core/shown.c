/* SPDX-License-Identifier: MIT */
/* What is open, and what tasks say that they do.
 *
 * An object is in the list from the call that opens it to the one that closes it. It costs a dozen stores each time,
 * and nothing in between: descriptions are made when somebody looks. Public calls that open things call each other;
 * each notes its own return address on success, so that the outermost one's stays, which lies in the program.
 *
 * Invariants
 *  1. Whatever is in the list is alive: each way to the end of an object takes it out before its memory goes.
 *  2. The list is in order of opening; what a walk is at is in it.
 *  3. Once the loop has ended, `loop` is NULL in all that is left, so that a late end does nothing. */

#include "core/shown.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "core/inbox.h"
#include "sys/observe.h"
#include "sys/symbol.h"

enum { PAST_MOST = 256 };

/* ---- the list ---- */

void rs_shown_add(struct rs_loop *l, struct rs_shown *s, const struct resha_shown_kind *kind, void *object, int fd)
{
        *s = (struct rs_shown){ .kind = kind, .object = object, .loop = l, .opened = l->now, .fd = fd };
        rs_shown_opened(s, NULL);
        rs_list_push(&l->shown, &s->node);
        l->counters.shown++;
        l->counters.descriptors += fd >= 0;
}

void rs_shown_opened(struct rs_shown *s, const void *opened_by)
{
        const struct rs_task *t = s->loop->current;

        s->opened_by = opened_by;
        s->task = t && !t->named ? t->name : NULL;
        s->site = t ? t->site : NULL;
}

static __attribute__((cold)) void leave_walks(struct rs_shown_walks *w, const struct rs_node *n)
{
        for (size_t i = 0; i < RS_SHOWN_WALKS; i++)
                if (w->walk[i].next == n)
                        w->walk[i].next = n->next;
}

/* ---- those that have ended ---- */

struct past {
        struct rs_shown shown;
        uint64_t values[RESHA_FIGURES_MAX];
        char name[];
};

static bool has_counters(const resha_shown_kind *kind)
{
        for (size_t i = 0; i < kind->count; i++)
                if (kind->figures[i].type == RESHA_FIGURE_COUNTER)
                        return true;
        return false;
}

static struct past *past_of(struct rs_loop *l, const struct rs_shown *s)
{
        const char *name = s->name ? s->name : "";
        size_t n = 0, size = strlen(name) + 1;

        for (struct rs_node *x = l->shown_past.first; x; x = x->next, n++) {
                struct past *p = RS_CONTAINER(RS_CONTAINER(x, struct rs_shown, node), struct past, shown);
                if (p->shown.kind == s->kind && strcmp(p->name, name) == 0)
                        return p;
        }
        struct past *p = n < PAST_MOST ? resha_calloc(1, sizeof *p + size) : NULL;
        if (!p)
                return NULL;
        memcpy(p->name, name, size);
        p->shown = (struct rs_shown){ .kind = s->kind, .name = p->name, .values = p->values, .loop = l, .past = true };
        rs_list_push(&l->shown_past, &p->shown.node);
        return p;
}

/* What an object has counted stays in the sum: who watches takes a counter that sinks for one that has begun anew, and
 * all that is left of it for what has come since. */
static void keep_counters(struct rs_loop *l, const struct rs_shown *s)
{
        const resha_shown_kind *kind = s->kind;

        if (!s->values || !has_counters(kind))
                return;
        if (kind->refresh)
                kind->refresh(s->object);
        struct past *p = past_of(l, s);
        for (size_t i = 0; p && i < kind->count; i++)
                if (kind->figures[i].type == RESHA_FIGURE_COUNTER)
                        p->values[i] += s->values[i];
}

/* ---- the end of one ---- */

/* Of a loop that is not the running one. The host of an embedded run tidies up between two steps, a forked child what
 * it has got from its parent; another thread would leave the loop with a list of what is gone. */
static __attribute__((cold, noinline)) bool may_remove(const struct rs_shown *s)
{
        if (rs_inbox_of_parent(s->loop->inbox))
                return false;
        if (s->loop->tid != rs_observe_self())
                rs_task_abort(rs_loop_current ? rs_loop_current->current : NULL,
                              "closes or frees a %s on another thread than that of its loop", s->kind->kind);
        return true;
}

void rs_shown_remove(struct rs_shown *s)
{
        struct rs_loop *l = s->loop;

        if (!l)
                return;
        if (RS_UNLIKELY(l != rs_loop_current) && !may_remove(s)) {
                s->loop = NULL;
                return;
        }
        keep_counters(l, s);
        if (l->shown_walks.last)
                leave_walks(&l->shown_walks, &s->node);
        rs_list_remove(&l->shown, &s->node);
        l->counters.shown--;
        l->counters.descriptors -= s->fd >= 0;
        s->loop = NULL;
}

void rs_shown_no_fd(struct rs_shown *s)
{
        if (s->loop)
                s->loop->counters.descriptors -= s->fd >= 0;
        s->fd = -1;
}

void rs_shown_describe(const struct rs_shown *s, char *buf, size_t size)
{
        int n = snprintf(buf, size, "%s%s%s", s->kind->kind, s->name ? " " : "", s->name ? s->name : "");

        if (n < 0 || (size_t)n + 1 >= size || !s->kind->describe)
                return;
        buf[n] = ' ';
        buf[n + 1] = '\0';
        s->kind->describe(s->object, buf + n + 1, size - (size_t)n - 1);
        if (!buf[n + 1])
                buf[n] = '\0';
}

/* ---- walks ---- */

uint64_t rs_shown_walk_begin(struct rs_loop *l)
{
        uint64_t ticket = ++l->shown_walks.last;

        l->shown_walks.walk[ticket % RS_SHOWN_WALKS] = (struct rs_shown_walk){ ticket, l->shown.first };
        return ticket;
}

const struct rs_shown *rs_shown_walk_at(const struct rs_shown_walks *w, uint64_t ticket)
{
        const struct rs_shown_walk *walk = &w->walk[ticket % RS_SHOWN_WALKS];
        const struct rs_node *n = walk->ticket == ticket ? walk->next : NULL;

        return n ? RS_CONTAINER((void *)(uintptr_t)n, struct rs_shown, node) : NULL;
}

void rs_shown_walk_on(struct rs_loop *l, uint64_t ticket)
{
        struct rs_shown_walk *walk = &l->shown_walks.walk[ticket % RS_SHOWN_WALKS];

        if (walk->ticket == ticket && walk->next)
                walk->next = walk->next->next;
}

/* ---- left over ---- */

/* left open: stream tcp 127.0.0.1:80 (descriptor 7), opened 1.2 s ago by task "fetch" from x.c:31, at get+0x12
 * (x.c:88) */
static void report_left(struct rs_loop *l, const struct rs_shown *s)
{
        char what[RESHA_DESCRIBE_MAX], at[160] = "", number[32] = "";

        rs_shown_describe(s, what, sizeof what);
        if (s->fd >= 0)
                snprintf(number, sizeof number, " (descriptor %d)", s->fd);
        bool known = s->opened_by && rs_symbol_format(s->opened_by, at, sizeof at);
        rs_report(l, RESHA_REPORT_LEFT_OPEN, 0, NULL, "left open: %s%s, opened %.1f s ago%s%s%s%s%s%s%s", what, number,
                  (double)(rs_now(l) - s->opened) / 1e9, s->task ? " by task \"" : "", s->task ? s->task : "",
                  s->task ? "\"" : "", s->task && s->site ? " from " : "", s->task && s->site ? s->site : "",
                  known ? ", at " : "", known ? at : "");
}

void rs_shown_left(struct rs_shown *s)
{
        if (s->loop && s->loop->debug)
                report_left(s->loop, s);
        rs_shown_remove(s);
}

void rs_shown_end(struct rs_loop *l)
{
        for (struct rs_node *n; (n = l->shown.first);) {
                struct rs_shown *s = RS_CONTAINER(n, struct rs_shown, node);
                if (s->ours)
                        rs_shown_remove(s);
                else
                        rs_shown_left(s);
        }
        for (struct rs_node *n; (n = rs_list_pop(&l->shown_past));)
                resha_free(RS_CONTAINER(RS_CONTAINER(n, struct rs_shown, node), struct past, shown));
}

/* ---- objects of the program ---- */

int resha_shown_begin(resha_shown *public, const resha_shown_kind *kind, void *object, const char *name,
                      const uint64_t *values, const void *opened_by)
{
        struct rs_shown *s = rs_shown_of(public);
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return -EPERM;
        if (kind->_reserved[0] | kind->_reserved[1])
                return resha_fail_at(-EINVAL, NULL, "a reserved word of what is shown is not zero");
        if (kind->count > RESHA_FIGURES_MAX)
                return resha_fail_at(-EINVAL, NULL, "%zu figures of one object: at most %d", kind->count,
                                     RESHA_FIGURES_MAX);
        rs_shown_add(l, s, kind, object, -1);
        s->name = name;
        s->values = values;
        s->opened_by = opened_by;
        return 0;
}

void resha_shown_end(resha_shown *s)
{
        rs_shown_remove(rs_shown_of(s));
}

/* ---- what tasks do ---- */

void resha_doing_begin(resha_doing *d, const char *what, const char *text)
{
        struct rs_task *t = rs_loop_current ? rs_loop_current->current : NULL;

        d->what = what;
        d->text = text;
        if (!t || d->_task)
                return;
        d->_task = t;
        d->_outer = (struct resha_doing *)(uintptr_t)t->doing;
        t->doing = d;
}

void resha_doing_end(resha_doing *d)
{
        struct rs_task *t = d->_task;

        if (!t || !rs_loop_current || rs_loop_current->current != t)
                return;
        if (t->doing == d)
                t->doing = d->_outer;
        /* one that ends before what began in it: nothing may lead to it any more */
        for (resha_doing *x = (resha_doing *)(uintptr_t)t->doing; x; x = x->_outer)
                if (x->_outer == d)
                        x->_outer = d->_outer;
        d->_task = NULL;
}

const resha_doing *resha_doing_current(void)
{
        return rs_loop_current && rs_loop_current->current ? rs_loop_current->current->doing : NULL;
}
