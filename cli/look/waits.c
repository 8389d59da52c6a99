/* SPDX-License-Identifier: MIT */

/* Waits in words: the kind of wait first, then which one, who has it, and what it is good for. */

#include "waits.h"

#include <string.h>

enum { SHOWN_HOLDERS = 3, COUNTED_TO = 1000 /* those who wait at an object */ };

bool waits_is(const struct task_row *task, const char *state)
{
        return strcmp(task->state, state) == 0;
}

void waits_add_id(const struct snapshot *s, uint32_t loop, int64_t id, struct text *t)
{
        if (s->loops.n > 1 || s->all_loops > 1)
                text_printf(t, "%u.", loop);
        text_printf(t, "%lld", (long long)id);
}

void waits_add_row(const struct snapshot *s, const struct screen *screen, const struct task_row *task, struct text *t)
{
        waits_add_id(s, task->loop, (int64_t)task->id, t);
        text_putc(t, ' ');
        screen_add(screen, t, *task->name ? task->name : "(no name)");
}

void waits_add_task(const struct snapshot *s, const struct screen *screen, uint32_t loop, int64_t id, struct text *t)
{
        const struct task_row *task = snapshot_task(s, loop, id);
        if (task)
                waits_add_row(s, screen, task, t);
        else
                waits_add_id(s, loop, id, t);
}

void waits_add_place(const struct screen *screen, const char *site, struct text *t)
{
        if (!*site)
                return;
        text_puts(t, " (");
        screen_add(screen, t, site);
        text_putc(t, ')');
}

bool waits_for_ends(const struct task_row *task)
{
        return strcmp(task->what, "task") == 0 || strcmp(task->what, "tasks") == 0 ||
               strcmp(task->what, "children") == 0;
}

static void add_holders(const struct snapshot *s, const struct screen *screen, const struct task_row *task,
                        struct text *t)
{
        for (unsigned i = 0; i < task->n_holders; i++) {
                if (i == SHOWN_HOLDERS) {
                        text_puts(t, " and others");
                        return;
                }
                text_puts(t, i ? ", " : "");
                waits_add_task(s, screen, task->loop, task->holders[i], t);
        }
}

/* The end of others: which, or how many. */
static void add_ends(const struct snapshot *s, const struct screen *screen, const struct task_row *task, struct text *t)
{
        const struct scope_row *g = snapshot_scope(s, task->loop, task->object);
        if (g && g->running > (int64_t)task->n_holders) {
                text_puts(t, "the end of ");
                text_add_grouped(t, (uint64_t)g->running);
                text_puts(t, g->running == 1 ? " task" : " tasks");
        } else if (task->n_holders) {
                text_puts(t, "the end of ");
                add_holders(s, screen, task, t);
        } else {
                screen_add(screen, t, task->what);
        }
}

static void add_object(const struct snapshot *s, const struct screen *screen, const struct task_row *task,
                       struct text *t)
{
        const struct object_row *o = snapshot_object(s, task->loop, task->object);
        bool told = *task->detail && strncmp(task->detail, task->what, strlen(task->what)) == 0;
        if (!told || !*task->what) /* "descriptor", "descriptor 7 readable" */
                screen_add(screen, t, *task->what ? task->what : "something");
        if (o && *o->name) {
                text_putc(t, ' ');
                screen_add(screen, t, o->name);
        }
        if (*task->detail) {
                text_puts(t, told && *task->what ? "" : " ");
                screen_add(screen, t, task->detail);
        } else if (o && *o->detail) {
                text_puts(t, " (");
                screen_add(screen, t, o->detail);
                text_putc(t, ')');
        }
        if (task->n_holders) {
                text_puts(t, ", held by ");
                add_holders(s, screen, task, t);
        } else if (o && o->owner >= 0) {
                text_puts(t, ", held by ");
                waits_add_task(s, screen, task->loop, o->owner, t);
        }
}

void waits_add_count(const struct object_row *o, struct text *t)
{
        if (o->waiting < 0)
                return;
        text_add_grouped(t, (uint64_t)o->waiting);
        text_puts(t, o->waiting >= COUNTED_TO ? "+" : "");
}

void waits_add(const struct snapshot *s, const struct screen *screen, const struct task_row *task, struct text *t)
{
        if (!waits_is(task, "waits"))
                return;
        if (*task->doing) { /* what it is about says more than what it is made of */
                screen_add(screen, t, task->doing);
                text_puts(t, " (");
        }
        if (waits_for_ends(task))
                add_ends(s, screen, task, t);
        else
                add_object(s, screen, task, t);
        if (task->due >= 0) {
                text_puts(t, ", ");
                screen_add_time(t, task->due);
                text_puts(t, " left");
        }
        if (*task->doing)
                text_putc(t, ')');
}

void waits_add_state(const struct snapshot *s, const struct screen *screen, const struct task_row *task, struct text *t)
{
        if (waits_is(task, "waits")) {
                text_puts(t, "waits ");
                if (task->since >= 0) {
                        screen_add_time(t, task->since);
                        text_putc(t, ' ');
                }
                text_puts(t, *task->doing ? "in " : "for ");
                waits_add(s, screen, task, t);
        } else {
                text_puts(t, waits_is(task, "ready") ? "is ready" : waits_is(task, "new") ? "has not begun" : "runs");
                if (*task->doing) {
                        text_puts(t, ", in ");
                        screen_add(screen, t, task->doing);
                }
        }
        if (*task->cancelled) {
                text_puts(t, ", cancelled: ");
                screen_add(screen, t, task->cancelled);
        }
        if (task->ignored > 0) {
                text_puts(t, ", ignored it ");
                text_add_grouped(t, (uint64_t)task->ignored);
                text_puts(t, task->ignored == 1 ? " time" : " times");
        }
}
