/* SPDX-License-Identifier: MIT */
/* All of a process at once: its input is written while both of its outputs are read, each by a task of its own, so that
 * no full pipe can make the two wait for each other. What has come lies with the caller at any moment, and is there
 * after a failure, too.
 *
 *     group      feed, drain of the output, drain of the error
 *     its body   waits for the process; then, for the time of `held`, for the three
 *
 * Who reads until the pipes end waits for everybody who holds them: the daemon that the process has started, too, for
 * ever. Who stops reading when the process has ended loses what lies in the pipes. So the tasks get a time after the
 * process's end, and when that is over each reads what is there still without waiting: all that the process itself has
 * written is among it.
 *
 * While a task is in here it counts as inside of the process, so that a close waits for it; the close cancels the
 * group (p->talk). */

#include <string.h>

#include <resha/alloc.h>
#include <resha/group.h>
#include <resha/scope.h>

#include "process/process.h"

enum {
        CHUNK_FIRST = 4096,
        CHUNK_DROPPED = 64 * 1024,
        /* When the time is over: reads that find nothing wait for so long in all, and so much is read at most, which
         * is more than a pipe may hold: somebody may write on and on, also a little at a time. */
        REST_MS = 40,
        REST_MAX = 2 << 20,
};

struct talk {
        resha_process *p;
        const char *input;
        size_t n;
        unsigned left; /* of the tasks: those that have not said that theirs is done */
        bool over;     /* the process has ended, and what cancels the tasks now is the time after that */
};

struct drain {
        struct talk *talk;
        resha_stream *from;
        resha_output *to; /* the caller's, or `dropped` */
        resha_output dropped;
        size_t limit; /* of to->size */
        const char *what;
};

/* The end of each task. One that was cancelled alone takes the others with it: they would wait for what it has not
 * done. */
static int task_done(struct talk *t, int rc)
{
        if (rc == 0)
                t->left--;
        else if (rc == -ECANCELED && t->p->talk)
                resha_group_cancel(t->p->talk);
        return rc;
}

/* ---- outputs ---- */

void resha_output_free(resha_output *o)
{
        resha_free(o->data);
        *o = (resha_output){ 0 };
}

/* Room for one byte more than there is, and for the 0 behind. */
static int make_room(resha_output *o, size_t first)
{
        if (o->_capacity > o->size + 1)
                return 0;
        size_t capacity = o->_capacity ? o->_capacity * 2 : first;
        char *data = capacity > o->_capacity ? resha_realloc(o->data, capacity) : NULL;
        if (!data)
                return -ENOMEM;
        o->data = data;
        o->_capacity = capacity;
        o->data[o->size] = 0;
        return 0;
}

/* Some bytes of it: how many, 0 at its end, or negative. One byte more than may come is looked for: an output that has
 * just as many is none too long. Of what is dropped there is no limit. */
static __attribute__((noinline)) ssize_t take(struct drain *d)
{
        resha_output *o = d->to;
        bool drops = o == &d->dropped;
        int rc = make_room(o, drops ? CHUNK_DROPPED : CHUNK_FIRST);

        if (rc < 0)
                return resha_fail_at(rc, NULL, "%s: no memory for more than %zu bytes of its standard %s",
                                     d->talk->p->name, o->size, d->what);
        size_t room = o->_capacity - 1 - o->size, left = d->limit - o->size;
        char over;
        ssize_t n = resha_read(d->from, left ? o->data + o->size : &over, !left ? 1 : left < room ? left : room);
        if (n <= 0 || drops)
                return n;
        if (!left)
                return resha_fail_at(-EMSGSIZE, NULL, "%s: its standard %s has more than %zu bytes", d->talk->p->name,
                                     d->what, d->limit);
        o->size += (size_t)n;
        o->data[o->size] = 0;
        return n;
}

/* The time is over. Somebody else has the pipe open, or it would have ended long ago. */
static __attribute__((noinline)) int take_rest(struct drain *d)
{
        size_t taken = 0;
        ssize_t n;
        RESHA_SCOPE(s);

        resha_shield_begin(&s, RESHA_MS(REST_MS));
        do {
                n = take(d);
                taken += n > 0 ? (size_t)n : 0;
        } while (n > 0 && taken < REST_MAX);
        int rc = resha_scope_end(&s, (int)n);
        d->to->held = rc == -ETIME || rc > 0;
        return d->to->held ? 0 : rc;
}

static int drain(void *arg)
{
        struct drain *d = arg;
        ssize_t n;

        do
                n = take(d);
        while (n > 0);
        return task_done(d->talk, n == -ECANCELED && d->talk->over ? take_rest(d) : (int)n);
}

/* ---- input ---- */

static int feed(void *arg)
{
        struct talk *t = arg;
        resha_process *p = t->p;
        size_t done = 0;
        int rc = t->n > p->fed ? resha_write_all(resha_process_stdin(p), t->input + p->fed, t->n - p->fed, &done) : 0;

        p->fed += done;
        if (rc == -EPIPE || (rc == -ECANCELED && t->over))
                rc = 0; /* it does not read all: that is its affair */
        if (rc == 0) {
                resha_process_close_stdin(p);
                p->fed = SIZE_MAX;
        }
        return task_done(t, rc);
}

/* ---- both ---- */

static int body(struct talk *t, resha_group *g)
{
        int rc = resha_process_wait(t->p, NULL);

        if (rc == -ECANCELED || rc == -EBADF)
                return rc;
        t->over = true;
        int drained = resha_group_drain(g, RESHA_NS(t->p->held));
        return rc < 0 ? rc : drained == -ETIME ? 0 : drained;
}

static __attribute__((noinline)) int communicate(struct talk *t, struct drain drains[2])
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        rs_group_of(&g)->child_done = rs_group_passes_over;
        t->p->talk = &g;
        if (resha_process_stdin(t->p) && ++t->left)
                resha_spawn(&g, feed, t);
        for (int i = 0; i < 2; i++)
                if (drains[i].from && ++t->left)
                        resha_spawn(&g, drain, &drains[i]);
        int rc = resha_group_end(&g, body(t, &g));
        t->p->talk = NULL;
        return rc == 0 && t->left ? -ECANCELED : rc; /* one of the tasks alone */
}

static size_t limit_of(const resha_output *o, size_t limit)
{
        size_t most = limit ? limit : RESHA_OUTPUT_LIMIT;

        return o->size > SIZE_MAX - most ? SIZE_MAX : o->size + most;
}

static struct drain drain_of(struct talk *t, resha_stream *from, resha_output *to, size_t limit, const char *what)
{
        struct drain d = { .talk = t, .from = from, .to = to, .limit = SIZE_MAX, .what = what };

        if (to) {
                to->held = false;
                d.limit = limit_of(to, limit);
        }
        return d;
}

static int check(const resha_process *p, const void *input, size_t n)
{
        if (p->talk)
                return resha_fail_at(-EBUSY, NULL, "another task communicates with process %s", p->name);
        if (n > p->fed && (!input || !p->pipes[0]))
                return resha_fail_at(-EINVAL, NULL, "%zu bytes for process %s: %s", n, p->name,
                                     input ? "its standard input is no pipe, or closed" : "they are at NULL");
        return 0;
}

int resha_process_communicate(resha_process *p, const void *input, size_t n, size_t limit, resha_output *out,
                              resha_output *err)
{
        struct talk t = { .p = p, .input = input, .n = n };
        int rc = rs_process_enter(p);

        if (rc < 0)
                return rc;
        rc = check(p, input, n);
        if (rc == 0) {
                struct drain drains[2] = { drain_of(&t, p->pipes[1], out, limit, "output"),
                                           drain_of(&t, p->pipes[2], err, limit, "error") };
                for (int i = 0; i < 2; i++)
                        drains[i].to = drains[i].to ? drains[i].to : &drains[i].dropped;
                rc = communicate(&t, drains);
                for (int i = 0; i < 2; i++)
                        resha_output_free(&drains[i].dropped);
        }
        if (rc == 0)
                p->fed = 0; /* all of it is there: further bytes are no rest of it */
        if (rc >= 0 && p->closing)
                rc = resha_fail_at(-EBADF, NULL, "process %s is being closed", p->name);
        rs_process_leave(p);
        return rc;
}

/* ---- the whole of it ---- */

static int run(const resha_process_opts *opts, resha_process **p, const void *input, size_t n, size_t limit,
               resha_output *out, resha_output *err, resha_exit *ret_exit)
{
        int rc = resha_process_spawn(opts, p);

        if (rc == 0)
                rc = resha_process_communicate(*p, input, n, limit, out, err);
        if (rc < 0)
                return rc;
        return ret_exit ? resha_process_wait(*p, ret_exit) : resha_process_check(*p);
}

int resha_process_run(const resha_process_opts *opts, const void *input, size_t n, size_t limit, resha_output *out,
                      resha_output *err, resha_exit *ret_exit)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        resha_process_opts o = opts ? *opts : (resha_process_opts){ 0 };

        if (o.in == RESHA_INHERIT)
                o.in = input ? RESHA_PIPE : RESHA_NULL;
        if (o.out == RESHA_INHERIT && out)
                o.out = RESHA_PIPE;
        if (o.err == RESHA_INHERIT && err)
                o.err = RESHA_PIPE;
        return run(&o, &p, input, n, limit, out, err, ret_exit);
}
