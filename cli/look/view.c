/* SPDX-License-Identifier: MIT */

/* What somebody wants to see first. Each finding is a fact of the snapshot; whether it is a fault, the reader knows. */

#include "view.h"

#include <stdio.h>
#include <string.h>

#include "answer.h"
#include "exits.h"
#include "waits.h"

enum { MAX_SHOWN = 10, FULL = 80 /* per cent */ };

bool view_is_blocked(const struct loop_row *l)
{
        return strcmp(l->state, "blocked") == 0;
}

void view_done(struct view *v)
{
        family_done(&v->family);
        cycles_done(&v->cycles);
        snapshot_done(&v->snapshot);
}

int view_init(struct view *v)
{
        v->s = &v->snapshot;
        v->screen = screen_here();
        int rc = family_init(&v->family, v->s);
        return rc < 0 ? rc : cycles_init(&v->cycles, v->s, &v->family);
}

/* Those of the tasks that block their loops are wanted at once; those of all cost too much. */
static int load_stacks(struct view *v, const struct asked *a, struct text *why)
{
        struct snapshot *s = &v->snapshot;
        char request[64];
        int rc = EXIT_DONE;
        s->frames_only = true;
        for (size_t i = 0; i < s->loops.n && rc == EXIT_DONE; i++) {
                const struct loop_row *l = &s->loops.row[i];
                if (!view_is_blocked(l) || l->current <= 0)
                        continue;
                snprintf(request, sizeof request, "snapshot stacks task=%u.%lld", l->loop, (long long)l->current);
                rc = snapshot_load(s, &v->process, &(struct wanted){ a->command, request, 0, -1 }, why);
        }
        return rc == EXIT_REFUSED ? EXIT_DONE : rc; /* it has ended meanwhile */
}

int view_find(struct process *p, const struct asked *a)
{
        TEXT(why);
        if (process_look(a->pid, p) == 0)
                return EXIT_DONE;
        text_printf(&why, "there is no process %d; resha ps lists the programs that can be asked", a->pid);
        asked_say(a, &why);
        return EXIT_NO_PROCESS;
}

int view_load(struct view *v, const struct asked *a, const char *request)
{
        TEXT(why);
        int rc = view_find(&v->process, a);
        if (rc != EXIT_DONE)
                return rc;
        rc = snapshot_load(&v->snapshot, &v->process, &(struct wanted){ a->command, request, 0, -1 }, &why);
        if (rc == EXIT_DONE && !v->snapshot.frames.n)
                rc = load_stacks(v, a, &why);
        if (rc == EXIT_DONE && view_init(v) < 0) {
                text_puts(&why, "out of memory");
                rc = EXIT_SOME_FAILED;
        }
        if (rc != EXIT_DONE && rc != EXIT_INTERRUPTED)
                asked_say(a, &why);
        return rc;
}

int view_pass(const struct asked *a, struct question *q, int fd)
{
        struct process p;
        TEXT(why);
        int rc = view_find(&p, a);
        if (rc != EXIT_DONE)
                return rc;
        q->process = &p;
        q->command = a->command;
        rc = answer_pass(q, fd, &why);
        if (rc != EXIT_DONE && why.len)
                asked_say(a, &why);
        return rc;
}

static void add_line(const struct view *v, struct text *t, struct text *line)
{
        screen_add_line(&v->screen, t, text_string(line), line->len);
        t->failed |= line->failed;
        text_clear(line);
}

static void add_count(struct text *t, int64_t n, const char *one, const char *many)
{
        text_add_grouped(t, n < 0 ? 0 : (uint64_t)n);
        text_putc(t, ' ');
        text_puts(t, n == 1 ? one : many);
}

void view_add_head(const struct view *v, struct text *t)
{
        TEXT(line);
        screen_add(&v->screen, &line, *v->s->program ? v->s->program : v->process.name);
        text_printf(&line, " (pid %d), resha ", (int)v->process.pid);
        screen_add(&v->screen, &line, v->s->version);
        text_puts(&line, v->s->debug ? ", RESHA_DEBUG=1: " : ": ");
        if (v->s->all_loops > (int64_t)v->s->loops.n)
                text_printf(&line, "%zu of ", v->s->loops.n);
        add_count(&line, v->s->all_loops > (int64_t)v->s->loops.n ? v->s->all_loops : (int64_t)v->s->loops.n, "loop",
                  "loops");
        text_puts(&line, ", ");
        add_count(&line, (int64_t)v->s->tasks.n, "task", "tasks");
        add_line(v, t, &line);
}

static void add_some(struct text *t, int64_t n, const char *one, const char *many)
{
        if (n <= 0)
                return;
        text_puts(t, ", ");
        add_count(t, n, one, many);
}

void view_add_loop(const struct view *v, const struct loop_row *l, struct text *t)
{
        TEXT(line);
        text_printf(&line, "loop %u", l->loop);
        if (*l->backend) {
                text_puts(&line, " (");
                screen_add(&v->screen, &line, l->backend);
                text_putc(&line, ')');
        }
        text_puts(&line, ": ");
        screen_add(&v->screen, &line, view_is_blocked(l) ? "BLOCKED" : l->state);
        if (l->since >= 0 && view_is_blocked(l)) {
                text_puts(&line, " for ");
                screen_add_time(&line, l->since);
        }
        add_some(&line, l->tasks, "task", "tasks");
        add_some(&line, l->ready, "ready", "ready");
        add_some(&line, l->jobs, "thread job", "thread jobs");
        add_some(&line, l->open, "handle open", "handles open");
        if (strcmp(l->mode, "blocked") == 0)
                text_puts(&line, "; read from outside");
        add_line(v, t, &line);
}

void view_add_frames(const struct view *v, uint32_t loop, uint64_t task, const char *indent, struct text *t)
{
        TEXT(line);
        for (size_t i = 0; i < v->s->frames.n; i++) {
                const struct frame_row *f = &v->s->frames.row[i];
                if (f->loop != loop || f->task != task)
                        continue;
                text_puts(&line, indent);
                screen_add(&v->screen, &line, f->text);
                add_line(v, t, &line);
        }
}

static void add_circle(const struct view *v, size_t number, struct text *t)
{
        const struct cycles *c = &v->cycles;
        const char *arrow = v->screen.ascii ? " -> " : " \u2192 ";
        int32_t first = c->first[number], i = first;
        unsigned n = 0;
        TEXT(line);
        text_puts(&line, "! deadlock: ");
        do {
                const struct task_row *task = &v->s->tasks.row[i];
                if (n < MAX_SHOWN)
                        waits_add_row(v->s, &v->screen, task, &line);
                text_puts(&line, n < MAX_SHOWN ? arrow : "");
                n++;
                i = c->next[i];
        } while (i != first);
        if (n > MAX_SHOWN)
                text_printf(&line, "... %u more%s", n - MAX_SHOWN, arrow);
        waits_add_id(v->s, v->s->tasks.row[first].loop, (int64_t)v->s->tasks.row[first].id, &line);
        text_puts(&line, n == 1 ? ": it waits for itself" : ": each waits for the next");
        add_line(v, t, &line);
        for (unsigned k = 0; k < n && k < MAX_SHOWN; k++, i = c->next[i]) {
                const struct task_row *task = &v->s->tasks.row[i];
                text_puts(&line, "    ");
                waits_add_row(v->s, &v->screen, task, &line);
                waits_add_place(&v->screen, task->site, &line);
                text_putc(&line, ' ');
                waits_add_state(v->s, &v->screen, task, &line);
                add_line(v, t, &line);
        }
}

static void add_circles(const struct view *v, struct text *t)
{
        for (size_t i = 0; i < v->cycles.n && i < MAX_SHOWN; i++)
                add_circle(v, i, t);
        if (v->cycles.n > MAX_SHOWN)
                text_printf(t, "! ... and %zu deadlocks more\n", v->cycles.n - MAX_SHOWN);
}

static void add_blocked(const struct view *v, struct text *t)
{
        TEXT(line);
        for (size_t i = 0; i < v->s->loops.n; i++) {
                const struct loop_row *l = &v->s->loops.row[i];
                if (!view_is_blocked(l))
                        continue;
                text_printf(&line, "! loop %u is blocked", l->loop);
                if (l->since >= 0) {
                        text_puts(&line, " for ");
                        screen_add_time(&line, l->since);
                }
                if (l->current > 0) {
                        const struct task_row *task = snapshot_task(v->s, l->loop, l->current);
                        text_puts(&line, " by ");
                        waits_add_task(v->s, &v->screen, l->loop, l->current, &line);
                        waits_add_place(&v->screen, task ? task->site : "", &line);
                        text_puts(&line, ": no other task of it runs");
                }
                add_line(v, t, &line);
                if (l->current > 0)
                        view_add_frames(v, l->loop, (uint64_t)l->current, "    ", t);
        }
}

static bool is_full(int64_t used, int64_t size)
{
        return used > 0 && size > 0 && used / FULL >= size / 100;
}

static void add_full(const char *what, int64_t used, int64_t size, struct text *line)
{
        text_puts(line, what);
        text_add_size(line, (uint64_t)used);
        text_puts(line, " of its stack of ");
        text_add_size(line, (uint64_t)size);
}

static void add_tasks(const struct view *v, struct text *t)
{
        unsigned ignored = 0, full = 0;
        TEXT(line);
        for (size_t i = 0; i < v->s->tasks.n; i++) {
                const struct task_row *task = &v->s->tasks.row[i];
                int64_t used = task->stack_high > task->stack_used ? task->stack_high : task->stack_used;
                bool ignores = task->ignored > 0, fills = is_full(used, task->stack_size);
                ignored += ignores;
                full += fills;
                if (!(ignores && ignored <= MAX_SHOWN) && !(fills && full <= MAX_SHOWN))
                        continue;
                text_puts(&line, "! ");
                waits_add_row(v->s, &v->screen, task, &line);
                waits_add_place(&v->screen, task->site, &line);
                text_putc(&line, ' ');
                if (ignores) {
                        text_puts(&line, "goes on though it was cancelled: ");
                        waits_add_state(v->s, &v->screen, task, &line);
                }
                if (fills)
                        add_full(ignores ? "; it has used " : "has used ", used, task->stack_size, &line);
                add_line(v, t, &line);
        }
        if (ignored > MAX_SHOWN || full > MAX_SHOWN)
                text_printf(t, "! ... in all %u that go on though cancelled, %u with nearly full stacks\n", ignored,
                            full);
}

/* What it says of itself says mostly how much is held, and by some also who waits: neither is said twice. */
static void add_used_up(const struct view *v, const struct object_row *o, struct text *line)
{
        char held[64];
        snprintf(held, sizeof held, "%lld of %lld", (long long)o->held, (long long)o->limit);
        bool told = strstr(o->detail, held);
        screen_add(&v->screen, line, o->kind);
        text_puts(line, *o->name ? " " : "");
        screen_add(&v->screen, line, o->name);
        text_puts(line,
                  strcmp(o->kind, "queue") == 0 || strcmp(o->kind, "channel") == 0 ? " is full: " : " is used up: ");
        text_puts(line, told ? "" : held);
        text_puts(line, told ? "" : *o->detail ? " are held; " : " are held");
        screen_add(&v->screen, line, o->detail);
        if (strstr(o->detail, " wait"))
                return;
        text_puts(line, ", ");
        waits_add_count(o, line);
        text_puts(line, o->waiting == 1 ? " task waits" : " tasks wait");
}

static void add_objects(const struct view *v, struct text *t)
{
        TEXT(line);
        for (size_t i = 0, n = 0; i < v->s->objects.n && n < MAX_SHOWN; i++) {
                const struct object_row *o = &v->s->objects.row[i];
                if (o->waiting <= 0 || o->limit <= 0 || o->held < o->limit)
                        continue;
                n++;
                text_puts(&line, "! ");
                add_used_up(v, o, &line);
                add_line(v, t, &line);
        }
}

static void add_notes(const struct view *v, struct text *t)
{
        TEXT(line);
        TEXT(note);
        const char *p = text_string(&v->s->notes);
        for (const char *nl; (nl = strchr(p, '\n')); p = nl + 1) {
                text_clear(&note);
                text_add(&note, p, (size_t)(nl - p));
                text_puts(&line, "note: ");
                screen_add(&v->screen, &line, text_string(&note));
                add_line(v, t, &line);
        }
}

void view_add_findings(const struct view *v, struct text *t)
{
        add_blocked(v, t);
        add_circles(v, t);
        add_tasks(v, t);
        add_objects(v, t);
        add_notes(v, t);
}
