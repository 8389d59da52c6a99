/* SPDX-License-Identifier: MIT */

/* `resha top`: round by round, how busy loops are, and which places of spawn have the time.
 *
 * A round is a sampling, which takes as long as the round; the tasks, for what they wait for, but for programs of very
 * many only every tenth time; and the figures for monitoring, of which the difference to the round before is shown. */

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "exits.h"
#include "gauges.h"
#include "help.h"
#include "interrupt.h"
#include "look.h"
#include "table.h"
#include "view.h"
#include "waits.h"

enum { VERY_MANY = 20000, SELDOM = 10, ROWS_IN_PIPE = 20 };

/* ---- the terminal ---- */

struct keys {
        bool raw;
};

static void keys_begin(struct keys *k)
{
        struct termios before, now;
        k->raw = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0 &&
                 tcgetpgrp(STDIN_FILENO) == getpgrp();
        if (!k->raw)
                return;
        now = before;
        now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        interrupt_terminal(&before, &now);
}

static void keys_end(struct keys *k)
{
        if (k->raw)
                interrupt_terminal_end();
}

/* Whether it shall end: a q, or the end of the terminal. Other keys are for nothing. */
static bool keys_quit(const struct keys *k)
{
        struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
        char c;
        while (k->raw && poll(&p, 1, 0) > 0) {
                ssize_t n = read(STDIN_FILENO, &c, 1);
                if (n <= 0 || c == 'q' || c == 'Q' || c == 4)
                        return true;
        }
        return interrupt_came();
}

/* ---- a round ---- */

struct row { /* a place of spawn */
        const char *site, *name;
        uint32_t tasks, order;
        int64_t hits;
        int32_t example;  /* the row of a task that waits for what most of them wait for */
        uint32_t waiting; /* how many do */
};

struct round {
        struct view view;
        struct gauges gauges;
        bool with_tasks;
        struct timespec at;
};

static uint64_t key_of(const char *site, const char *name)
{
        return keep_mix((uint64_t)(uintptr_t)site) ^ (uint64_t)(uintptr_t)name;
}

struct rows {
        struct row *row;
        size_t n;
        struct keep_index at;
};

static struct row *find_row(struct rows *r, const char *site, const char *name)
{
        uint64_t key = key_of(site, name);
        int64_t i = keep_index_find(&r->at, 0, key);
        if (i >= 0)
                return &r->row[i];
        if (keep_index_set(&r->at, 0, key, (uint32_t)r->n) < 0)
                return NULL;
        r->row[r->n] = (struct row){ .site = site, .name = name, .order = (uint32_t)r->n, .example = NO_ROW };
        return &r->row[r->n++];
}

static int count_tasks(const struct snapshot *s, struct rows *r)
{
        struct keep_index whats RESHA_CLEANUP(keep_index_done) = { .slots = NULL };
        for (size_t i = 0; i < s->tasks.n; i++) {
                const struct task_row *t = &s->tasks.row[i];
                struct row *row = find_row(r, t->site, t->name);
                if (!row)
                        return -ENOMEM;
                row->tasks++;
                uint64_t key = keep_mix((uint64_t)(uintptr_t)t->what ^ keep_mix((uint64_t)(uintptr_t)t->doing));
                int64_t n = keep_index_find(&whats, row->order, key);
                if (keep_index_set(&whats, row->order, key, (uint32_t)(n < 0 ? 1 : n + 1)) < 0)
                        return -ENOMEM;
                if (waits_is(t, "waits") && (uint32_t)(n < 0 ? 1 : n + 1) > row->waiting) {
                        row->waiting = (uint32_t)(n < 0 ? 1 : n + 1);
                        row->example = (int32_t)i;
                }
        }
        return 0;
}

static int busiest_first(const void *a, const void *b)
{
        const struct row *x = a, *y = b;
        if (x->hits != y->hits)
                return x->hits > y->hits ? -1 : 1;
        if (x->tasks != y->tasks)
                return x->tasks > y->tasks ? -1 : 1;
        return x->order < y->order ? -1 : x->order > y->order;
}

/* All samples: those of sleeping loops, too. */
static int64_t all_samples(const struct snapshot *s)
{
        int64_t of = 0;
        for (size_t i = 0; i < s->samples.n; i++)
                if (s->samples.row[i].hits < 0 && s->samples.row[i].of > 0)
                        of += s->samples.row[i].of;
        return of;
}

static void add_row(const struct round *now, const struct row *row, int64_t of, struct table *t)
{
        if (of > 0)
                text_printf(&t->cells, "%.0f %%", 100.0 * (double)row->hits / (double)of);
        table_cell(t);
        if (now->with_tasks)
                text_add_grouped(&t->cells, row->tasks);
        table_cell(t);
        screen_add(&now->view.screen, &t->cells, row->name);
        table_cell(t);
        screen_add(&now->view.screen, &t->cells, row->site);
        table_cell(t);
        if (row->example != NO_ROW && row->waiting < row->tasks) {
                text_add_grouped(&t->cells, row->waiting);
                text_puts(&t->cells, ": ");
        }
        if (row->example != NO_ROW)
                waits_add(now->view.s, &now->view.screen, &now->view.s->tasks.row[row->example], &t->cells);
        table_cell(t);
}

static int add_rows(const struct round *now, size_t lines, struct text *out)
{
        static const char *const heads[] = { "-TIME", "-TASKS", "NAME", "PLACE", "MOST WAIT FOR" };
        const struct snapshot *s = now->view.s;
        struct rows r = { .n = 0 };
        TABLE(t);
        table_init(&t, heads, sizeof heads / sizeof heads[0]);
        r.row = resha_malloc((s->tasks.n + s->samples.n + 1) * sizeof *r.row);
        int rc = r.row ? count_tasks(s, &r) : -ENOMEM;
        for (size_t i = 0; i < s->samples.n && rc == 0; i++) {
                const struct sample_row *x = &s->samples.row[i];
                struct row *row = x->hits < 0 ? NULL : find_row(&r, x->site, x->name);
                if (row)
                        row->hits += x->hits;
        }
        if (rc == 0 && r.n)
                qsort(r.row, r.n, sizeof *r.row, busiest_first);
        for (size_t i = 0; i < r.n && i < lines && rc == 0; i++)
                add_row(now, &r.row[i], all_samples(s), &t);
        text_putc(out, '\n');
        table_add(&t, &now->view.screen, out);
        if (r.n > lines)
                text_printf(out, "  ... %zu places more\n", r.n - lines);
        resha_free(r.row);
        keep_index_done(&r.at);
        return rc;
}

static double busy_of(const struct round *before, const struct round *now, uint32_t loop)
{
        double busy = gauge_busy(gauges_find(&before->gauges, loop), gauges_find(&now->gauges, loop));
        for (size_t i = 0; i < now->view.s->samples.n && busy < 0; i++) {
                const struct sample_row *x = &now->view.s->samples.row[i];
                if (x->loop == loop && x->hits < 0 && x->of > 0)
                        busy = 1 - (double)(x->sleeps < 0 ? 0 : x->sleeps) / (double)x->of;
        }
        return busy;
}

static const struct loop_row *loop_of(const struct snapshot *s, uint32_t loop)
{
        for (size_t i = 0; s && i < s->loops.n; i++)
                if (s->loops.row[i].loop == loop)
                        return &s->loops.row[i];
        return NULL;
}

static void add_rate(int64_t before, int64_t now, double seconds, struct table *t)
{
        if (before >= 0 && now >= before && seconds > 0)
                text_add_grouped(&t->cells, (uint64_t)((double)(now - before) / seconds));
        table_cell(t);
}

static void add_loops(const struct round *before, const struct round *now, double seconds, struct text *out)
{
        static const char *const heads[] = { "-LOOP",  "-BUSY",       "-LAG",     "-TASKS",
                                             "-READY", "-SWITCHES/s", "-POLLS/s", "STATE" };
        TABLE(t);
        table_init(&t, heads, sizeof heads / sizeof heads[0]);
        for (size_t i = 0; i < now->view.s->loops.n; i++) {
                const struct loop_row *l = &now->view.s->loops.row[i], *old = loop_of(before->view.s, l->loop);
                double busy = busy_of(before, now, l->loop);
                double lag = gauge_lag(gauges_find(&before->gauges, l->loop), gauges_find(&now->gauges, l->loop));
                text_printf(&t.cells, "%u", l->loop);
                table_cell(&t);
                if (busy >= 0)
                        text_printf(&t.cells, "%.0f %%", 100 * busy);
                table_cell(&t);
                if (isinf(lag))
                        text_puts(&t.cells, "very long");
                else if (lag > 0)
                        text_printf(&t.cells, lag < 0.0995 ? "< %.3g ms" : "< %.3g s", lag < 0.0995 ? lag * 1e3 : lag);
                table_cell(&t);
                text_printf(&t.cells, "%lld", (long long)(l->tasks < 0 ? 0 : l->tasks));
                table_cell(&t);
                if (l->ready >= 0)
                        text_add_grouped(&t.cells, (uint64_t)l->ready);
                table_cell(&t);
                add_rate(old ? old->switches : -1, l->switches, seconds, &t);
                add_rate(old ? old->polls : -1, l->polls, seconds, &t);
                screen_add(&now->view.screen, &t.cells, view_is_blocked(l) ? "BLOCKED" : l->state);
                table_cell(&t);
        }
        table_add(&t, &now->view.screen, out);
}

/* ---- asking ---- */

static int ask_figures(struct round *r, const struct asked *a)
{
        char *line;
        size_t size;
        DOOR(d);
        if (door_open(&d, &r->view.process, a->command, "stats") != EXIT_DONE)
                return EXIT_DONE; /* the samples say nearly the same */
        while (door_line(&d, &line, &size) > 0)
                gauges_add(&r->gauges, line);
        return EXIT_DONE;
}

/* Of a program of another version some of it may be refused; what is left is shown. */
static int ask(struct round *r, const struct asked *a, const struct keys *k, bool tasks, int64_t takes,
               struct text *why)
{
        char request[48];
        struct snapshot *s = &r->view.snapshot;
        int key = k->raw ? STDIN_FILENO : -1, rc = EXIT_DONE;
        snprintf(request, sizeof request, "sample %lld", (long long)(takes / 1000000));
        if (takes)
                rc = snapshot_load(s, &r->view.process, &(struct wanted){ a->command, request, takes, key }, why);
        if (rc == EXIT_REFUSED && s->refusal) {
                text_clear(why);
                struct pollfd p[] = { { .fd = key, .events = POLLIN }, { .fd = interrupt_fd(), .events = POLLIN } };
                if (poll(p, 2, (int)(takes / 1000000)) != 0)
                        return EXIT_INTERRUPTED;
                rc = EXIT_DONE;
        }
        s->loops.n = 0; /* those of the sampling are older */
        if (rc == EXIT_DONE)
                rc = snapshot_load(s, &r->view.process,
                                   &(struct wanted){ a->command, tasks ? "snapshot" : "snapshot loops", 0, key }, why);
        r->with_tasks = tasks;
        clock_gettime(CLOCK_MONOTONIC, &r->at);
        if (rc == EXIT_DONE)
                rc = ask_figures(r, a);
        if (rc == EXIT_DONE && view_init(&r->view) < 0) {
                text_puts(why, "out of memory");
                rc = EXIT_SOME_FAILED;
        }
        return rc;
}

/* ---- rounds ---- */

static size_t lines_for_rows(const struct round *r)
{
        struct winsize ws = { .ws_row = 0 };
        size_t above = r->view.s->loops.n + 6;
        if (!r->view.screen.terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0 || !ws.ws_row)
                return ROWS_IN_PIPE;
        return ws.ws_row > above + 3 ? ws.ws_row - above : 3;
}

static double seconds_between(const struct timespec *a, const struct timespec *b)
{
        return (double)(b->tv_sec - a->tv_sec) + (double)(b->tv_nsec - a->tv_nsec) / 1e9;
}

static int show(const struct asked *a, const struct round *before, const struct round *now, uint64_t number)
{
        TEXT(t);
        bool terminal = now->view.screen.terminal;
        text_puts(&t, terminal ? "\033[H\033[J" : number > 1 ? "\n" : "");
        view_add_head(&now->view, &t);
        add_loops(before, now, seconds_between(&before->at, &now->at), &t);
        t.failed |= add_rows(now, lines_for_rows(now), &t) < 0;
        if (terminal)
                text_puts(&t, "q ends\n");
        return asked_write(a, &t);
}

static void round_done(struct round *r)
{
        view_done(&r->view);
        *r = (struct round){ .with_tasks = false };
}

static bool wants_tasks(const struct round *before, uint64_t number)
{
        int64_t n = 0;
        for (size_t i = 0; before->view.s && i < before->view.s->loops.n; i++)
                n += before->view.s->loops.row[i].tasks;
        return n <= VERY_MANY || number % SELDOM == 1;
}

static int rounds(const struct asked *a, const struct process *p, const struct keys *k, struct text *why)
{
        struct round before RESHA_CLEANUP(round_done) = { .view = { .snapshot = SNAPSHOT_NOTHING, .process = *p } };
        int rc = ask(&before, a, k, false, 0, why);
        for (uint64_t i = 1; rc == EXIT_DONE && (!a->rounds || i <= a->rounds);) {
                struct round now = { .view = { .snapshot = SNAPSHOT_NOTHING, .process = *p } };
                rc = ask(&now, a, k, wants_tasks(&before, i), a->time.ns, why);
                if (rc == EXIT_INTERRUPTED && !keys_quit(k)) { /* another key: the same round again */
                        round_done(&now);
                        rc = EXIT_DONE;
                        continue;
                }
                if (rc == EXIT_DONE)
                        rc = show(a, &before, &now, i++);
                round_done(&before);
                before = now;
                before.view.s = &before.view.snapshot;
        }
        return rc == EXIT_INTERRUPTED ? EXIT_DONE : rc; /* that is how it ends */
}

static int pass_rounds(const struct asked *a)
{
        char request[48];
        int rc = EXIT_DONE;
        snprintf(request, sizeof request, "sample %lld", (long long)(a->time.ns / 1000000));
        for (uint64_t i = 0; rc == EXIT_DONE && (!a->rounds || i < a->rounds) && !interrupt_came(); i++) {
                rc = view_pass(a, &(struct question){ .request = request, .takes = a->time.ns }, STDOUT_FILENO);
                if (rc == EXIT_DONE)
                        rc = view_pass(a, &(struct question){ .request = "snapshot loops" }, STDOUT_FILENO);
        }
        return rc == EXIT_INTERRUPTED ? EXIT_DONE : rc;
}

int top_main(int argc, char **argv)
{
        struct asked a;
        struct process p;
        int rc;
        TEXT(why);
        if (!asked_begin(&a, "top", help_top, argc, argv, &rc))
                return rc;
        rc = view_find(&p, &a);
        if (rc != EXIT_DONE)
                return rc;
        interrupt_catch();
        if (a.json)
                return pass_rounds(&a);
        struct keys k RESHA_CLEANUP(keys_end) = { .raw = false };
        keys_begin(&k);
        rc = rounds(&a, &p, &k, &why);
        if (why.len && rc != EXIT_DONE)
                asked_say(&a, &why);
        return rc;
}
