/* SPDX-License-Identifier: MIT */

/* `resha ps PID`: the tasks of a program, what others wait at, what is open, and where tasks come from. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "exits.h"
#include "help.h"
#include "likes.h"
#include "look.h"
#include "pictures.h"
#include "programs.h"
#include "table.h"
#include "waits.h"

enum { MANY = 50 };

static void cell_text(struct table *t, const struct screen *screen, const char *s)
{
        screen_add(screen, &t->cells, s);
        table_cell(t);
}

static void cell_count(struct table *t, int64_t n)
{
        if (n >= 0)
                text_add_grouped(&t->cells, (uint64_t)n);
        table_cell(t);
}

static void cell_time(struct table *t, int64_t ns)
{
        screen_add_time(&t->cells, ns);
        table_cell(t);
}

static void cell_size(struct table *t, int64_t bytes)
{
        if (bytes > 0)
                text_add_size(&t->cells, (uint64_t)bytes);
        table_cell(t);
}

static void add_title(const struct view *v, const char *title, struct text *out)
{
        text_putc(out, '\n');
        screen_add_line(&v->screen, out, title, strlen(title));
}

/* ---- tasks ---- */

/* What is in a circle or holds up the rest first, then what has been so for longest. */
static unsigned rank(const struct view *v, const struct like *l)
{
        const struct task_row *task = &v->s->tasks.row[l->first];
        return v->cycles.of[l->first] ? 0 : waits_is(task, "runs") ? 1 : task->ignored > 0 ? 2 : 3;
}

static const struct view *sorted; /* qsort() has no argument for it */

static int compare_likes(const void *a, const void *b)
{
        const struct like *x = a, *y = b;
        unsigned rx = rank(sorted, x), ry = rank(sorted, y);
        int64_t sx = sorted->s->tasks.row[x->first].since, sy = sorted->s->tasks.row[y->first].since;
        if (rx != ry)
                return rx < ry ? -1 : 1;
        if (sx != sy)
                return sx > sy ? -1 : 1;
        return x->order < y->order ? -1 : x->order > y->order;
}

/* Each by itself; those alike together; those of a kind together: the first of these that is short enough. */
static int group(const struct view *v, bool all, struct likes *l)
{
        int rc = 0;
        for (int how = all || v->s->tasks.n <= MANY ? 0 : 1; how < 3; how++) {
                likes_done(l);
                for (size_t i = 0; i < v->s->tasks.n && rc == 0; i++) {
                        const struct task_row *t = &v->s->tasks.row[i];
                        bool none = how == 0 || likes_none(t, v->cycles.of[i]);
                        uint64_t key = none ? i + 1 : how == 1 ? likes_key(t) : likes_kind(t);
                        rc = likes_add(l, v->s, key, (int32_t)i);
                }
                if (rc < 0 || how == 0 || l->n <= MANY)
                        break;
        }
        return rc;
}

static void add_task(const struct view *v, const struct like *l, struct table *t)
{
        const struct task_row *task = &v->s->tasks.row[l->first];
        if (l->n > 1) {
                text_add_grouped(&t->cells, l->n);
                text_puts(&t->cells, v->screen.ascii ? " x" : " \u00d7");
        } else {
                waits_add_id(v->s, task->loop, (int64_t)task->id, &t->cells);
        }
        table_cell(t);
        cell_text(t, &v->screen, task->name);
        cell_text(t, &v->screen, task->site);
        cell_text(t, &v->screen, v->cycles.of[l->first] ? "DEADLOCK" : *task->cancelled ? "cancelled" : task->state);
        cell_time(t, task->since);
        cell_time(t, task->deadline);
        if (waits_is(task, "waits"))
                waits_add(v->s, &v->screen, task, &t->cells);
        else
                screen_add(&v->screen, &t->cells, task->doing);
        if (*task->cancelled) {
                bool first = t->n_cells && t->cells.len == t->ends[t->n_cells - 1];
                text_puts(&t->cells, first ? "cancelled: " : "; cancelled: ");
                screen_add(&v->screen, &t->cells, task->cancelled);
        }
        table_cell(t);
}

static int add_tasks(const struct view *v, bool all, struct text *out)
{
        static const char *const heads[] = { "-TASK", "NAME", "PLACE", "STATE", "-FOR", "-LEFT", "WAITS FOR" };
        LIKES(l);
        TABLE(t);
        int rc = group(v, all, &l);
        table_init(&t, heads, sizeof heads / sizeof heads[0]);
        if (rc < 0)
                return rc;
        sorted = v;
        if (l.n)
                qsort(l.like, l.n, sizeof *l.like, compare_likes);
        for (size_t i = 0; i < l.n; i++)
                add_task(v, &l.like[i], &t);
        bool each = l.n == v->s->tasks.n;
        add_title(v, each ? "tasks" : "tasks, likes in one line with the longest time (--all: each by itself)", out);
        table_add(&t, &v->screen, out);
        return 0;
}

/* ---- objects ---- */

static void add_objects(const struct view *v, bool all, struct text *out)
{
        static const char *const heads[] = { "KIND", "NAME", "-HELD", "-OF", "-WAITING", "OWNER", "STATE" };
        TABLE(t);
        table_init(&t, heads, sizeof heads / sizeof heads[0]);
        for (size_t i = 0; i < v->s->objects.n; i++) {
                const struct object_row *o = &v->s->objects.row[i];
                if (!all && o->waiting <= 0)
                        continue;
                cell_text(&t, &v->screen, o->kind);
                cell_text(&t, &v->screen, o->name);
                cell_count(&t, o->held);
                cell_count(&t, o->limit);
                waits_add_count(o, &t.cells);
                table_cell(&t);
                if (o->owner >= 0)
                        waits_add_task(v->s, &v->screen, o->loop, o->owner, &t.cells);
                table_cell(&t);
                cell_text(&t, &v->screen, o->detail);
        }
        if (t.n_cells)
                add_title(v, all ? "locks, queues, pools and the like" : "what tasks wait at", out);
        table_add(&t, &v->screen, out);
}

/* ---- handles ---- */

struct opening { /* those of one kind that were opened at one place */
        uint32_t n, order;
        int32_t oldest;
};

static int compare_openings(const void *a, const void *b)
{
        const struct opening *x = a, *y = b;
        if (x->n != y->n)
                return x->n > y->n ? -1 : 1;
        return x->order < y->order ? -1 : x->order > y->order;
}

/* By place, most first. The number of places, or -ENOMEM. */
static int64_t sort_handles(const struct snapshot *s, struct opening *o)
{
        struct keep_index at RESHA_CLEANUP(keep_index_done) = { .slots = NULL };
        uint32_t n = 0;
        for (size_t i = 0; i < s->handles.n; i++) {
                const struct handle_row *h = &s->handles.row[i];
                uint64_t key = keep_mix((uint64_t)(uintptr_t)h->kind) ^ (uint64_t)(uintptr_t)h->opened_at;
                int64_t k = keep_index_find(&at, h->loop, key);
                if (k < 0) {
                        if (keep_index_set(&at, h->loop, key, n) < 0)
                                return -ENOMEM;
                        k = n;
                        o[n] = (struct opening){ .order = n, .oldest = (int32_t)i };
                        n++;
                }
                o[k].n++;
                if (h->age > s->handles.row[o[k].oldest].age)
                        o[k].oldest = (int32_t)i;
        }
        if (n)
                qsort(o, n, sizeof *o, compare_openings);
        return n;
}

/* Which one it is: what it says of itself, but for its kind, which it says first. */
static const char *which(const struct handle_row *h)
{
        size_t n = strlen(h->kind);
        if (!*h->detail || strncmp(h->detail, h->kind, n) != 0)
                return *h->detail ? h->detail : h->name;
        return h->detail[n] == ' ' ? h->detail + n + 1 : h->name;
}

static void add_handle(const struct view *v, const struct handle_row *h, uint32_t n, struct table *t)
{
        cell_count(t, n ? n : h->fd);
        cell_text(t, &v->screen, h->kind);
        cell_text(t, &v->screen, h->opened_at);
        cell_time(t, h->age);
        if (h->task >= 0)
                waits_add_task(v->s, &v->screen, h->loop, h->task, &t->cells);
        table_cell(t);
        cell_text(t, &v->screen, which(h));
}

static int add_handles(const struct view *v, bool all, struct text *out)
{
        static const char *const alone[] = { "-FD", "KIND", "OPENED AT", "-AGE", "WAITED AT BY", "NAME" };
        static const char *const piled[] = { "-OPEN", "KIND", "OPENED AT", "-OLDEST", "WAITED AT BY", "THE OLDEST" };
        TABLE(t);
        struct opening *o = resha_malloc((v->s->handles.n + 1) * sizeof *o);
        int64_t n = o ? sort_handles(v->s, o) : -ENOMEM;
        bool each = all || (n >= 0 && v->s->handles.n <= MANY);
        table_init(&t, each ? alone : piled, sizeof alone / sizeof alone[0]);
        for (int64_t i = 0; i < n && !each; i++)
                add_handle(v, &v->s->handles.row[o[i].oldest], o[i].n, &t);
        for (size_t i = 0; i < v->s->handles.n && each; i++)
                add_handle(v, &v->s->handles.row[i], 0, &t);
        resha_free(o);
        add_title(v, each ? "open handles" : "open handles, by where they were opened (--all: each)", out);
        table_add(&t, &v->screen, out);
        return n < 0 ? -ENOMEM : 0;
}

/* One line: how many, and where most of them were opened. */
static int add_handles_line(const struct view *v, struct text *out)
{
        TEXT(line);
        struct opening *o = resha_malloc((v->s->handles.n + 1) * sizeof *o);
        int64_t n = o ? sort_handles(v->s, o) : -ENOMEM;
        if (n > 0) {
                const struct handle_row *h = &v->s->handles.row[o[0].oldest];
                text_puts(&line, "handles: ");
                text_add_grouped(&line, v->s->handles.n);
                text_puts(&line, " open, most (");
                text_add_grouped(&line, o[0].n);
                text_puts(&line, ") ");
                screen_add(&v->screen, &line, h->kind);
                if (*h->opened_at) {
                        text_puts(&line, " opened at ");
                        screen_add(&v->screen, &line, h->opened_at);
                }
                if (h->age >= 0) {
                        text_puts(&line, ", the oldest ");
                        screen_add_time(&line, h->age);
                        text_puts(&line, " ago");
                }
                text_puts(&line, " (--handles)");
                text_putc(out, '\n');
                screen_add_line(&v->screen, out, text_string(&line), line.len);
        }
        resha_free(o);
        return n < 0 ? -ENOMEM : 0;
}

/* ---- places ---- */

static void add_places(const struct view *v, struct text *out)
{
        static const char *const heads[] = { "-TASKS", "-STACK", "-OF", "PLACE", "NAME" };
        TABLE(t);
        table_init(&t, heads, sizeof heads / sizeof heads[0]);
        for (size_t i = 0; i < v->s->places.n; i++) {
                const struct place_row *p = &v->s->places.row[i];
                cell_count(&t, p->tasks);
                cell_size(&t, p->stack_high);
                cell_size(&t, p->stack_size);
                cell_text(&t, &v->screen, p->site);
                cell_text(&t, &v->screen, p->name);
        }
        add_title(v, "places that start tasks, and the most that a task of each used of its stack", out);
        table_add(&t, &v->screen, out);
        if (!t.n_cells)
                text_puts(out, "  none was told\n");
}

static void add_places_line(const struct view *v, struct text *out)
{
        const struct place_row *most = NULL;
        TEXT(line);
        for (size_t i = 0; i < v->s->places.n; i++)
                if (!most || v->s->places.row[i].stack_high > most->stack_high)
                        most = &v->s->places.row[i];
        if (!most)
                return;
        text_puts(&line, "places: ");
        text_add_grouped(&line, v->s->places.n);
        text_puts(&line, v->s->places.n == 1 ? " starts tasks" : " start tasks");
        if (most->stack_high > 0) {
                text_puts(&line, ", most stack ");
                text_add_size(&line, (uint64_t)most->stack_high);
                text_puts(&line, " by ");
                screen_add(&v->screen, &line, most->name);
                waits_add_place(&v->screen, most->site, &line);
        }
        text_puts(&line, " (--places)");
        screen_add_line(&v->screen, out, text_string(&line), line.len);
}

int ps_add(const struct view *v, const struct asked *a, struct text *t)
{
        bool chosen = a->handles || a->places || a->objects;
        int rc = 0;
        view_add_head(v, t);
        for (size_t i = 0; i < v->s->loops.n && !chosen; i++)
                view_add_loop(v, &v->s->loops.row[i], t);
        if (!chosen) {
                view_add_findings(v, t);
                rc = add_tasks(v, a->all, t);
        }
        if (!chosen || a->objects)
                add_objects(v, a->all || a->objects, t);
        if (rc == 0 && (a->handles || (!chosen && a->all)))
                rc = add_handles(v, a->all, t);
        else if (rc == 0 && !chosen)
                rc = add_handles_line(v, t);
        if (a->places || (!chosen && a->all))
                add_places(v, t);
        else if (!chosen)
                add_places_line(v, t);
        return rc;
}

int ps_main(int argc, char **argv)
{
        struct asked a;
        int rc;
        VIEW(v);
        TEXT(t);
        if (!asked_begin(&a, "ps", help_ps, argc, argv, &rc))
                return rc;
        if (!a.pid)
                return programs_list(&a);
        if (a.json)
                return view_pass(&a, &(struct question){ .request = "snapshot" }, STDOUT_FILENO);
        rc = view_load(&v, &a, "snapshot");
        if (rc != EXIT_DONE)
                return rc;
        t.failed |= ps_add(&v, &a, &t) < 0;
        return asked_write(&a, &t);
}
