/* SPDX-License-Identifier: MIT */

/* `resha stack`: where tasks are in their functions. Those that are at the same place for the same reason are told of
 * once, with their number. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "exits.h"
#include "help.h"
#include "likes.h"
#include "look.h"
#include "pictures.h"
#include "waits.h"

struct stack {
        size_t first, n; /* frames */
        int32_t task;    /* row; of those alike that which has been there for longest */
        uint32_t alike, order;
};

struct stacks {
        struct stack *stack;
        size_t n, told; /* told: of tasks */
};

static void stacks_done(struct stacks *x)
{
        resha_free(x->stack);
}

static uint64_t key_of(const struct view *v, const struct stack *k, bool all)
{
        const struct task_row *t = &v->s->tasks.row[k->task];
        if (all || likes_none(t, v->cycles.of[k->task]))
                return (uint64_t)k->task + 1;
        uint64_t key = likes_kind(t);
        for (size_t i = 0; i < k->n; i++)
                key = keep_mix(key ^ (uint64_t)(uintptr_t)v->s->frames.row[k->first + i].text);
        return key;
}

/* The frames of a task come one behind the other. 0, -ENOMEM. */
static int collect(const struct view *v, bool all, struct stacks *x)
{
        struct keep_index at RESHA_CLEANUP(keep_index_done) = { .slots = NULL };
        const struct frame_row *f = v->s->frames.row;
        size_t n = v->s->frames.n, end;
        x->stack = resha_malloc((n + 1) * sizeof *x->stack);
        if (!x->stack)
                return -ENOMEM;
        for (size_t i = 0; i < n; i = end) {
                for (end = i + 1; end < n && f[end].task == f[i].task && f[end].loop == f[i].loop; end++) {}
                const struct task_row *t = snapshot_task(v->s, f[i].loop, (int64_t)f[i].task);
                if (!t)
                        continue;
                struct stack k = { i, end - i, (int32_t)(t - v->s->tasks.row), 1, (uint32_t)x->n };
                uint64_t key = key_of(v, &k, all);
                int64_t old = keep_index_find(&at, 0, key);
                x->told++;
                if (old < 0) {
                        if (keep_index_set(&at, 0, key, (uint32_t)x->n) < 0)
                                return -ENOMEM;
                        x->stack[x->n++] = k;
                        continue;
                }
                struct stack *same = &x->stack[old];
                same->alike++;
                if (t->since > v->s->tasks.row[same->task].since)
                        same->task = k.task;
        }
        return 0;
}

static int most_first(const void *a, const void *b)
{
        const struct stack *x = a, *y = b;
        if (x->alike != y->alike)
                return x->alike > y->alike ? -1 : 1;
        return x->order < y->order ? -1 : x->order > y->order;
}

static void add_stack(const struct view *v, const struct stack *k, struct text *t)
{
        const struct task_row *task = &v->s->tasks.row[k->task];
        TEXT(line);
        text_putc(t, '\n');
        if (k->alike > 1) {
                text_add_grouped(&line, k->alike);
                text_puts(&line, " tasks like ");
        }
        waits_add_row(v->s, &v->screen, task, &line);
        waits_add_place(&v->screen, task->site, &line);
        text_puts(&line, k->alike > 1 ? ", which " : " ");
        waits_add_state(v->s, &v->screen, task, &line);
        text_puts(&line, v->cycles.of[k->task] ? "  <- DEADLOCK" : "");
        screen_add_line(&v->screen, t, text_string(&line), line.len);
        for (size_t i = 0; i < k->n; i++) {
                text_clear(&line);
                text_puts(&line, "    ");
                screen_add(&v->screen, &line, v->s->frames.row[k->first + i].text);
                screen_add_line(&v->screen, t, text_string(&line), line.len);
        }
        t->failed |= line.failed;
}

int stack_add(const struct view *v, bool all, struct text *t)
{
        struct stacks x RESHA_CLEANUP(stacks_done) = { .n = 0 };
        int rc = collect(v, all, &x);
        view_add_head(v, t);
        if (rc < 0)
                return rc;
        if (x.n)
                qsort(x.stack, x.n, sizeof *x.stack, most_first);
        for (size_t i = 0; i < x.n; i++)
                add_stack(v, &x.stack[i], t);
        if (x.told < v->s->tasks.n) {
                text_puts(t, "\nno stack was told of ");
                text_add_grouped(t, v->s->tasks.n - x.told);
                text_puts(t, " more: they have not begun, or ran when it was looked at\n");
        }
        return 0;
}

static void add_missing(const struct asked *a, struct text *why)
{
        text_puts(why, "there is no task ");
        if (a->loop)
                text_printf(why, "%u.", a->loop);
        text_printf(why, "%u now: resha ps %d lists them", a->task, a->pid);
}

/* "snapshot stacks task=1.17", of the loop that has a task of that number. */
static int name_task(struct asked *a, char *request, size_t size)
{
        VIEW(v);
        TEXT(why);
        unsigned n = 0;
        int rc = a->loop ? EXIT_DONE : view_load(&v, a, "snapshot");
        if (rc != EXIT_DONE)
                return rc;
        for (size_t i = 0; i < v.snapshot.loops.n; i++) {
                if (!snapshot_task(&v.snapshot, v.snapshot.loops.row[i].loop, a->task))
                        continue;
                a->loop = v.snapshot.loops.row[i].loop;
                n++;
        }
        snprintf(request, size, "snapshot stacks task=%u.%u", a->loop, a->task);
        if (v.s && n != 1) {
                if (n)
                        text_printf(&why, "task %u is in several loops: write LOOP.%u", a->task, a->task);
                else
                        add_missing(a, &why);
                asked_say(a, &why);
                return EXIT_USAGE;
        }
        return EXIT_DONE;
}

int stack_main(int argc, char **argv)
{
        char request[64] = "snapshot stacks";
        struct asked a;
        int rc = EXIT_DONE;
        VIEW(v);
        TEXT(t);
        if (!asked_begin(&a, "stack", help_stack, argc, argv, &rc))
                return rc;
        if (a.task)
                rc = name_task(&a, request, sizeof request);
        if (rc != EXIT_DONE)
                return rc;
        if (a.json)
                return view_pass(&a, &(struct question){ .request = request }, STDOUT_FILENO);
        rc = view_load(&v, &a, request);
        if (rc != EXIT_DONE)
                return rc;
        if (a.task && !v.snapshot.tasks.n && !v.snapshot.notes.len && !v.snapshot.refusal) {
                add_missing(&a, &t);
                asked_say(&a, &t);
                return EXIT_USAGE;
        }
        t.failed |= stack_add(&v, a.all, &t) < 0;
        return asked_write(&a, &t);
}
