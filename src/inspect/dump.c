/* SPDX-License-Identifier: MIT */
/* All tasks of a loop as text, one paragraph each: who, where from, what it waits for and who holds that, its stack.
 *
 *     resha: loop 1 of process 4711, 2 tasks:
 *
 *     task 2 "fetch" from fetch.c:31: waits for mutex 0x7f5c80, held by task 3; for 2.4 s; deadline in 7.6 s
 *         resha_mutex_lock+0x14d (libresha.so.0)
 *         fetch+0x2e (fetch.c:12)
 *
 * It comes from the walk that snapshots come from (walk.c). resha_dump() makes it on the loop's own thread, on the
 * thread's own stack, as that of a task may be nearly full, which is one of the things it shows. On a signal another
 * thread makes it, from copies of what the loop's memory says at that moment: the loop is not asked, for it may be
 * stuck, and goes on if it is not. Of a task that has run meanwhile no stack is shown. */

#include "inspect/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <resha/inspect.h>

#include "base/alloc.h"
#include "inspect/stacks.h"
#include "inspect/walk.h"
#include "sys/door.h"
#include "sys/print.h"
#include "sys/spare.h"
#include "sys/sys.h"

enum { ROOM = 16 * 1024, LINE = 1024, TRIES = 20, PAUSE_NS = 10000000 };
static const int64_t PATIENCE_NS = (int64_t)RS_DUMP_PATIENCE_MS * 1000000, EACH_NS = 100000000;

struct dump {
        int fd, rc;
        struct rs_loop *own;  /* on its thread; NULL: on another one, */
        pid_t tid;            /* its own being this */
        const int64_t *until; /* and when it is given up */
        struct rs_texts *texts;
        void *copy; /* RS_STACKS_ROOM bytes for that */
        struct rs_walk walk;
        const void *addresses[RS_STACKS_DEPTH];
        const char *frames[RS_STACKS_DEPTH];
        size_t n;
        char room[ROOM];
};

/* ---- writing ---- */

/* Whether something may be written now. On a loop's thread it is the caller who knows whether that may wait. On
 * another one the end of a run waits for us: where nobody reads, that must not be for ever. */
static bool may_write(struct dump *d)
{
        if (d->own)
                return true;
        int64_t now = rs_sys_now(), end = now + PATIENCE_NS;
        int rc = 0;
        for (; rc == 0 && d->rc == 0; now = rs_sys_now()) {
                if (now >= end || now >= __atomic_load_n(d->until, __ATOMIC_SEQ_CST))
                        d->rc = -ETIME;
                else if ((rc = rs_door_wait(d->fd, POLLOUT, -1, now + EACH_NS)) < 0)
                        d->rc = rc;
        }
        return d->rc == 0;
}

static void flush(struct dump *d)
{
        size_t done = 0;

        while (done < d->n && d->rc == 0) {
                if (!may_write(d))
                        break;
                ssize_t n = d->own ? rs_sys_write(d->fd, d->room + done, d->n - done)
                                   : rs_print_ready(d->fd, d->room + done, d->n - done);
                if (n < 0 && (d->own || n != -EAGAIN))
                        d->rc = (int)n;
                done += n > 0 ? (size_t)n : 0;
        }
        d->n = 0;
}

static void say(struct dump *d, const char *format, ...) RESHA_PRINTF(2, 3);
static void say(struct dump *d, const char *format, ...)
{
        va_list args;

        if (ROOM - d->n < LINE)
                flush(d);
        va_start(args, format);
        int n = vsnprintf(d->room + d->n, LINE, format, args);
        va_end(args);
        d->n += n < 0 ? 0 : n < LINE ? (size_t)n : LINE - 1;
}

static void say_time(struct dump *d, const char *before, int64_t ns)
{
        if (ns == INT64_MIN)
                return;
        if (ns >= 1000000000 || ns <= -1000000000)
                say(d, "%s%.1f s", before, (double)ns / 1e9);
        else
                say(d, "%s%.1f ms", before, (double)ns / 1e6);
}

/* It may be past: of a loop that is blocked, or in a task that does not come to its turn. */
static void say_until(struct dump *d, const char *before, const char *past, int64_t ns)
{
        say_time(d, ns < 0 ? past : before, ns < 0 && ns != INT64_MIN ? -ns : ns);
        say(d, "%s", ns < 0 && ns != INT64_MIN ? " ago" : "");
}

/* ---- a task ---- */

static void say_who(struct dump *d, const struct rs_seen_task *t)
{
        say(d, "task %" PRIu32 " \"%s\"", t->id, t->name[0] ? t->name : "?");
        if (t->items)
                say(d, " (%" PRIu32 " of %" PRIu32 ")", t->item, t->items);
        if (t->site[0])
                say(d, " from %s", t->site);
}

static void say_wait(struct dump *d, const struct rs_seen_task *t)
{
        bool held = strcmp(t->what, "mutex") == 0;

        say(d, "waits for %s", t->what[0] ? t->what : "?");
        if (t->object && t->due == INT64_MIN)
                say(d, " %p", t->object);
        for (size_t i = 0; i < t->holders_n; i++)
                say(d, "%s%" PRIu32, i ? ", " : held ? ", held by task " : ": task ", t->holders[i]);
        if (held && !t->holders_n)
                say(d, ", whose holder has ended without unlocking it");
        if (d->walk.waited.detail[0])
                say(d, ", %s", d->walk.waited.detail);
        say_until(d, ", over in ", ", due ", t->due);
}

static void say_state(struct dump *d, const struct rs_seen_task *t)
{
        switch (t->state) {
        case RS_SEEN_NEW: say(d, "has not started"); break;
        case RS_SEEN_READY: say(d, "waits for its turn"); break;
        case RS_SEEN_RUNS: say(d, "runs"); break;
        case RS_SEEN_WAITS: say_wait(d, t); break;
        }
        say_time(d, "; for ", t->since);
        say_until(d, "; deadline in ", "; deadline ", t->deadline);
        if (t->cancelled)
                say(d, "; cancelled: %s", t->cancelled);
        if (t->doing[0])
                say(d, "; %s", t->doing);
        if (t->ignored)
                say(d, "; has ignored that %" PRIu32 " times", t->ignored);
}

/* Whether the task is what it was when it was looked at: on another thread it may have run. */
static bool is_still(const struct dump *d)
{
        const struct rs_task *seen = d->walk.task;
        struct rs_task now;

        return d->own || (d->walk.reader->read(&now, d->walk.seen.at, sizeof now) && now.mark == seen->mark &&
                          now.sp == seen->sp && now.wait == seen->wait);
}

static size_t stack_of(struct dump *d)
{
        const struct rs_walk *w = &d->walk;
        size_t n = 0;

        if (w->seen.state != RS_SEEN_RUNS) {
                n = rs_walk_stack(w, d->copy, d->addresses, RS_STACKS_DEPTH);
                return is_still(d) ? n : 0;
        }
        if (d->own)
                return rs_task_stack(d->own, w->seen.at, d->addresses, RS_STACKS_DEPTH);
        for (int i = 0; i < TRIES && n == 0; i++) {
                if (i > 0) /* it may be in the handler of the signal that asks for this, where it cannot be held */
                        rs_door_wait(-1, 0, -1, rs_sys_now() + PAUSE_NS);
                n = rs_stacks_running(d->tid, w->at, w->seen.at, d->addresses, RS_STACKS_DEPTH);
        }
        return n;
}

static void say_stack(struct dump *d)
{
        const struct rs_walk *w = &d->walk;
        const struct rs_stack_use *use = &w->seen.stack;

        if (!w->task->sp || !w->stack)
                return;
        size_t n = rs_texts_stack(d->texts, d->addresses, stack_of(d), d->frames);
        for (size_t i = 0; i < n; i++)
                say(d, "    %s\n", d->frames[i]);
        if (n == 0)
                say(d, "    (its stack cannot be told)\n");
        if (!rs_stack_nearly_full(use))
                return;
        say(d, "    note: its stack is nearly full: at most %zu KiB of %zu were used", use->high / 1024,
            use->size / 1024);
        if (use->used)
                say(d, ", %zu are now", use->used / 1024);
        say(d, "\n");
}

/* ---- all ---- */

/* No program writes to the terminal of who looks at it, or lines that look like ours. */
static void be_plain(struct dump *d)
{
        char *const texts[] = { d->walk.seen.name, d->walk.seen.site, d->walk.seen.doing, d->walk.waited.detail };

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                for (char *c = texts[i]; *c; c++)
                        if ((unsigned char)*c < ' ' || *c == 0x7f)
                                *c = '?';
}

static void say_all(struct dump *d)
{
        const struct rs_walk *w = &d->walk;

        say(d, "%sresha: loop %" PRIu32 " of process %d, %zu task%s:\n", d->own ? "" : "\n", w->number, rs_sys_pid(),
            w->loop.tasks, w->loop.tasks == 1 ? "" : "s");
        while (d->rc == 0 && rs_walk_next(&d->walk)) {
                say(d, "\n");
                if (!d->own) /* the loop goes on meanwhile, and its clock */
                        d->walk.now = rs_sys_now();
                be_plain(d);
                say_who(d, &d->walk.seen);
                say(d, ": ");
                say_state(d, &d->walk.seen);
                say(d, "\n");
                say_stack(d);
        }
        if (rs_spare_missed())
                say(d, "note: %s\n", RS_SPARE_MISSED);
        flush(d);
}

static int with_room(struct dump *d, const struct rs_reader *reader, const struct rs_loop *l, int64_t now)
{
        const struct rs_task *running = NULL;

        (void)rs_spare_missed(); /* what this thread has done before */
        d->texts = rs_texts_new();
        bool ok = d->texts && (d->own || (d->copy = resha_malloc(RS_STACKS_ROOM)));
        if (ok && reader->read(&running, &l->current, sizeof running) && rs_walk_begin(&d->walk, reader, l) &&
            rs_walk_resume(&d->walk, now, running || !d->own ? running : d->own->reporter))
                say_all(d);
        rs_texts_free(d->texts);
        resha_free(d->copy);
        return ok ? d->rc : -ENOMEM;
}

static int dump(const struct rs_reader *reader, struct rs_loop *own, const struct rs_loop *l, pid_t tid,
                const int64_t *until, int64_t now, int fd)
{
        struct dump *d = resha_calloc(1, sizeof *d);

        if (!d)
                return -ENOMEM;
        d->fd = fd;
        d->own = own;
        d->tid = tid;
        d->until = until;
        int rc = with_room(d, reader, l, now);
        resha_free(d);
        return rc;
}

int rs_dump_loop(const struct rs_loop *l, pid_t tid, int fd, const int64_t *until)
{
        return dump(&rs_reader_copies, NULL, l, tid, until, rs_sys_now(), fd);
}

/* ---- of this thread's loop ---- */

struct own {
        struct rs_loop *loop;
        int fd;
};

static int dump_own(void *arg)
{
        const struct own *o = arg;

        return dump(&rs_reader_here, o->loop, o->loop, 0, NULL, rs_now(o->loop), o->fd);
}

int resha_dump(int fd)
{
        struct own o = { rs_loop_current, fd };

        return o.loop ? resha_deep_call(dump_own, &o) : -EPERM;
}
