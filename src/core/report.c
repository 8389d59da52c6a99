/* SPDX-License-Identifier: MIT */
/* Reports: what nobody else can see, told to the sink of the run, one line each.
 *
 * The sink runs outside of tasks, also where a task reports: what it calls that would wait gives -EPERM, and its
 * failures are not the task's. It sees the task-locals of the one it is told of. What it does that would be reported is
 * counted alone. Reports of what many tasks take part in (a circle, a deadlock, what is stuck) come one for each task,
 * and know how many they are. */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/core.h"

enum { RS_REPORT_DEPTH = 64, RS_REPORT_NAMES = 3, RS_REPORT_MEMBERS = 32 };

static void deliver(struct rs_loop *l, const struct rs_task *t, resha_report *r)
{
        struct rs_task *current = l->current;
        int saved = errno;

        l->reports++;
        if (!l->opts.report || l->reporting)
                return;
        if (t) {
                r->task = t->name;
                r->spawned_at = t->site;
        }
        l->reporting = true;
        l->told = t ? t : current;
        l->reporter = current;
        l->current = NULL;
        l->opts.report(r, l->opts.report_arg);
        l->current = current;
        l->told = l->reporter = NULL;
        l->reporting = false;
        errno = saved;
}

/* The same with its stack. */
static void deliver_stack(struct rs_loop *l, const struct rs_task *t, resha_report *r)
{
        const void *stack[RS_REPORT_DEPTH];

        if (l->opts.report && !l->reporting)
                r->depth = rs_task_stack(l, t, stack, RS_REPORT_DEPTH);
        r->stack = r->depth ? stack : NULL;
        deliver(l, t, r);
}

static void report(struct rs_loop *l, enum resha_report_kind kind, int code, const struct rs_task *t,
                   const char *format, va_list args)
{
        resha_report r = { .kind = kind, .code = code, .part = 1, .parts = 1 };
        char text[512] = "";

        if (l->opts.report)
                vsnprintf(text, sizeof text, format, args);
        r.text = text;
        if (kind == RESHA_REPORT_IGNORED_CANCEL)
                deliver_stack(l, t, &r);
        else
                deliver(l, t, &r);
}

void rs_report(struct rs_loop *l, enum resha_report_kind kind, int code, const struct rs_task *t, const char *format,
               ...)
{
        va_list args;

        va_start(args, format);
        report(l, kind, code, t, format, args);
        va_end(args);
}

int resha_report_text(enum resha_report_kind kind, int code, const char *format, ...)
{
        struct rs_loop *l = rs_loop_current;
        va_list args;

        if (!l)
                return -EPERM;
        va_start(args, format);
        report(l, kind, code, l->current, format, args);
        va_end(args);
        return 0;
}

/* a failure was lost: disk is gone (x.c:6, task "failer" from x.c:11): nobody passed it on: ... */
void rs_report_lost(struct rs_loop *l, const struct rs_task *t, const resha_error *e, const char *remedy)
{
        rs_report(l, RESHA_REPORT_LOST_ERROR, e->code, t, "a failure was lost: %s (%s%stask \"%s\"%s%s): %s", e->text,
                  e->site ? e->site : "", e->site ? ", " : "", e->task ? e->task : "?", e->spawned_at ? " from " : "",
                  e->spawned_at ? e->spawned_at : "", remedy);
}

/* ---- what a task waits for, in words ---- */

struct line {
        size_t n;
        char text[512];
};

static void say(struct line *line, const char *format, ...) RESHA_PRINTF(2, 3);

/* What does not fit is cut, and looks so. */
static void say(struct line *line, const char *format, ...)
{
        size_t left = sizeof line->text - line->n;
        va_list args;

        va_start(args, format);
        int n = vsnprintf(line->text + line->n, left, format, args);
        va_end(args);
        if (n < 0)
                return;
        if ((size_t)n < left) {
                line->n += (size_t)n;
        } else {
                line->n = sizeof line->text - 1;
                memcpy(line->text + line->n - 3, "...", 3);
        }
}

/* task "get" (2 of 5, fetch.c:31) */
static void say_task(struct line *line, const struct rs_task *t)
{
        say(line, "task \"%s\"", t->name ? t->name : "?");
        if (t->items)
                say(line, " (%u of %u, %s)", t->item, t->items, t->site ? t->site : "?");
        else if (t->site)
                say(line, " (%s)", t->site);
}

/* The end of 3 tasks: task "a" (f.c:1), task "b" (f.c:2), ... */
static void say_whom(struct line *line, const struct rs_task *t)
{
        const struct rs_task *x = t->whom->next(t->wait, NULL);
        size_t n = 0;

        if (!x) {
                say(line, "%s", t->whom->nobody);
                return;
        }
        say(line, "%s", t->whom->says);
        for (const struct rs_task *y = x; y; y = t->whom->next(t->wait, y))
                n++;
        if (n > 1)
                say(line, "%zu tasks: ", n);
        for (size_t i = 0; x && i < RS_REPORT_NAMES; i++, x = t->whom->next(t->wait, x)) {
                say(line, "%s", i ? ", " : "");
                say_task(line, x);
        }
        say(line, "%s", x ? ", ..." : "");
}

static void say_wait(struct line *line, const struct rs_task *t)
{
        if (!t->wait)
                say(line, "its turn");
        else if (t->whom)
                say_whom(line, t);
        else
                say(line, "%s", t->wait->what);
}

/* ---- circles ---- */

static void say_circle(struct line *line, const struct rs_task *first)
{
        say(line, "waits in a circle, which only a deadline or a cancel can break: for ");
        for (const struct rs_task *t = first;; t = t->link) {
                say(line, "%s", t->whom->says);
                if (t->link == first)
                        break;
                say_task(line, t->link);
                say(line, ", which waits for ");
        }
        say(line, "this task");
}

/* The members are noted before the first of them is told: a sink that cancels one uses `link` for that. */
static void report_circle(struct rs_loop *l, struct rs_task *first)
{
        struct rs_task *members[RS_REPORT_MEMBERS + 1], *t = first;
        unsigned parts = 0;

        do {
                members[parts++] = t;
                t = t->link;
        } while (t != first && parts < RS_REPORT_MEMBERS);
        members[parts] = t;
        for (unsigned i = 0; i < parts; i++) {
                struct line line = { 0 };
                resha_report r = { .kind = RESHA_REPORT_CYCLE, .part = i + 1, .parts = parts, .text = line.text };

                if (i == 0) {
                        say_circle(&line, first);
                } else {
                        say(&line, "waits in the same circle: for %s", members[i]->whom->says);
                        say_task(&line, members[i + 1]);
                }
                deliver_stack(l, members[i], &r);
        }
}

static void circle_of(struct rs_loop *l, struct rs_task *t, void *arg)
{
        (void)arg;
        if (!t->circle)
                return;
        t->circle = false;
        if (t->wait && t->whom && rs_circle_find(l, t))
                report_circle(l, t);
}

static void each_task(struct rs_loop *l, void (*fn)(struct rs_loop *l, struct rs_task *t, void *arg), void *arg)
{
        for (struct rs_node *n = l->slabs.first, *next; n; n = next) {
                next = n->next;
                rs_slab_each(l, n, fn, arg);
        }
}

void rs_report_circles(struct rs_loop *l)
{
        l->circles = false;
        each_task(l, circle_of, NULL);
}

/* ---- steps ---- */

void rs_report_slow_step(struct rs_loop *l)
{
        const struct rs_task *t = l->step.task;
        bool alive = rs_task_alive(l, t, l->step.mark);
        struct line line = { 0 };
        resha_report r = { .kind = RESHA_REPORT_SLOW, .part = 1, .parts = 1, .text = line.text };

        say(&line, "ran for %" PRId64 " ms without a wait: no other task ran meanwhile", l->step.took / 1000000);
        l->step.took = 0;
        if (alive) {
                say(&line, "; the stack is where it waited then");
                deliver_stack(l, t, &r);
        } else {
                r.task = l->step.name;
                r.spawned_at = l->step.site;
                deliver(l, NULL, &r);
        }
}

/* ---- reports of all tasks ---- */

struct telling {
        resha_report report;
        const char *before, *after;
};

static void tell(struct rs_loop *l, struct rs_task *t, void *arg)
{
        struct telling *telling = arg;
        struct line line = { 0 };
        resha_report r = telling->report;

        if (telling->report.part > telling->report.parts)
                return; /* begun by the sink meanwhile */
        telling->report.part++;
        say(&line, "%s", telling->before);
        if (t == l->current)
                say(&line, "runs");
        else if (!t->sp)
                say(&line, "has not started");
        else
                say(&line, "waits for "), say_wait(&line, t);
        say(&line, "%s", telling->after);
        r.text = line.text;
        deliver_stack(l, t, &r);
}

static void tell_all(struct rs_loop *l, enum resha_report_kind kind, int code, const char *before, const char *after)
{
        struct telling telling = { .report = { .kind = kind, .code = code, .part = 1, .parts = (unsigned)l->tasks },
                                   .before = before,
                                   .after = after };

        each_task(l, tell, &telling);
}

void rs_report_deadlock(struct rs_loop *l)
{
        tell_all(l, RESHA_REPORT_DEADLOCK, -EDEADLK, "nothing can wake it: ", "");
}

void rs_report_stuck(struct rs_loop *l)
{
        tell_all(l, RESHA_REPORT_STUCK, -ETIME, "has not ended within the grace: ", "; its memory is leaked");
}

int resha_report_tasks(void)
{
        struct rs_loop *l = rs_loop_current;

        if (!l)
                return -EPERM;
        tell_all(l, RESHA_REPORT_TASK, 0, "", "");
        return 0;
}

size_t resha_task_stack(const resha_task *h, const void **ret_addresses, size_t max)
{
        struct rs_loop *l = rs_loop_current;
        const struct rs_task *t = !l ? NULL : !h ? l->current : h->_loop == l ? h->_task : NULL;

        return t ? rs_task_stack(l, t, ret_addresses, max) : 0;
}
