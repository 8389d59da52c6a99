/* SPDX-License-Identifier: MIT */
/* All of a process at once: its input is written while both of its outputs are read, each by a task of its own, so that
 * no full pipe can make the two wait for each other. What has come lies with the caller at any moment, and is there
 * after a failure, too. */

#include <string.h>

#include <resha/alloc.h>
#include <resha/group.h>

#include "process/process.h"

enum { CHUNK_FIRST = 4096 };

void resha_output_free(resha_output *o)
{
        resha_free(o->data);
        *o = (resha_output){ 0 };
}

/* Room for one byte more than there is, and for the 0 behind. */
static int make_room(resha_output *o)
{
        if (o->_capacity > o->size + 1)
                return 0;
        size_t capacity = o->_capacity ? o->_capacity * 2 : CHUNK_FIRST;
        char *data = resha_realloc(o->data, capacity);
        if (!data)
                return -ENOMEM;
        o->data = data;
        o->_capacity = capacity;
        return 0;
}

struct feed {
        resha_process *p;
        const void *data;
        size_t size;
};

static int feed(void *arg)
{
        struct feed *f = arg;
        int rc = f->size ? resha_write_all(resha_process_stdin(f->p), f->data, f->size, NULL) : 0;

        if (rc == -EPIPE)
                rc = 0; /* it does not read all: that is its affair */
        resha_process_close_stdin(f->p);
        return rc;
}

struct drain {
        resha_stream *from;
        resha_output *to; /* NULL: dropped */
        size_t limit;     /* of to->size */
        const char *name, *what;
};

static int drop(resha_stream *s)
{
        char buf[CHUNK_FIRST];
        ssize_t n;

        while ((n = resha_read(s, buf, sizeof buf)) > 0)
                ;
        return (int)n;
}

/* One byte more than may come is looked for: an output that has just as many is none too long. */
static int drain(void *arg)
{
        struct drain *d = arg;
        resha_output *o = d->to;

        if (!o)
                return drop(d->from);
        for (;;) {
                int rc = make_room(o);
                if (rc < 0)
                        return rc;
                size_t room = o->_capacity - 1 - o->size, left = d->limit - o->size;
                char over;
                ssize_t n = resha_read(d->from, left ? o->data + o->size : &over, left ? left < room ? left : room : 1);
                if (n <= 0)
                        return (int)n;
                if (!left)
                        return resha_fail_at(-EMSGSIZE, NULL, "%s: its standard %s has more than %zu bytes", d->name,
                                             d->what, d->limit);
                o->size += (size_t)n;
                o->data[o->size] = 0;
        }
}

static int communicate(resha_process *p, struct feed *f, struct drain drains[2])
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        if (resha_process_stdin(p))
                resha_spawn(&g, feed, f);
        for (int i = 0; i < 2; i++)
                if (drains[i].from)
                        resha_spawn(&g, drain, &drains[i]);
        return resha_group_end(&g, 0);
}

static size_t limit_of(const resha_output *o, size_t limit)
{
        size_t most = limit ? limit : RESHA_OUTPUT_LIMIT, has = o ? o->size : 0;

        return has > SIZE_MAX - most ? SIZE_MAX : has + most;
}

int resha_process_communicate(resha_process *p, const void *input, size_t n, size_t limit, resha_output *out,
                              resha_output *err)
{
        struct feed f = { p, input, n };
        struct drain drains[2] = {
                { resha_process_stdout(p), out, limit_of(out, limit), p->name, "output" },
                { resha_process_stderr(p), err, limit_of(err, limit), p->name, "error" },
        };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        rc = communicate(p, &f, drains);
        return rc < 0 ? rc : resha_process_wait(p, NULL);
}

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
        resha_process_opts o = *opts;

        if (o.in == RESHA_INHERIT)
                o.in = input ? RESHA_PIPE : RESHA_NULL;
        if (o.out == RESHA_INHERIT && out)
                o.out = RESHA_PIPE;
        if (o.err == RESHA_INHERIT && err)
                o.err = RESHA_PIPE;
        return run(&o, &p, input, n, limit, out, err, ret_exit);
}
