/* SPDX-License-Identifier: MIT */
/* A worker: runs what waits at its desk, and sends a byte when there is something to see.
 *
 * An item is run when its cell could be moved from WAITING to RUNNING, and is done when it could be moved from RUNNING
 * to DONE: if not, the program has given it up, and this process is about to be killed. What was done is in shared
 * memory and so stays when the process ends, at the next item or otherwise.
 *
 * Under a limit of memory an item that failed for want of it is the last one of its worker: what it holds, and may
 * never give back, would be missed by those that come after it.
 *
 * The byte is sent when all is run, at a failure, and each few milliseconds; the program looks at the cells, not at the
 * byte, so that one too many does no harm. */

#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "sys/fork.h"
#include "sys/ready.h"
#include "sys/sys.h"
#include "workers/workers.h"

static const int64_t TELL_NS = 5000000;

struct worker {
        resha_workers *w;
        struct rs_desk *desk;
        int fd;
        int init; /* its result */
        struct rs_said init_said;
        uint32_t generation;
        uint64_t file; /* what fd is */
        int64_t told;
};

static bool in_child; /* of a worker, which has forked */
static struct worker *this_worker;

/* The end of the socket is the worker's alone: the program takes it for its end when that is closed. */
static void forked(void)
{
        const struct worker *k = this_worker;

        in_child = true;
        if (rs_sys_file_id(k->fd) == k->file)
                rs_sys_close(k->fd);
}

static void tell(struct worker *k, int64_t now)
{
        k->told = now;
        (void)rs_sys_send(k->fd, "", 1);
}

static void say(struct rs_said *said, const resha_error *e)
{
        snprintf(said->text, sizeof said->text, "%s", e ? e->text : "");
        snprintf(said->site, sizeof said->site, "%s", e && e->site ? e->site : "");
}

/* It is about to be killed. */
static __attribute__((noreturn)) void await_end(void)
{
        for (;;)
                (void)rs_ready_wait(NULL, 0, -1);
}

/* fn(arg), and what it has said. */
static int run(resha_fn *fn, void *arg, struct rs_said *said)
{
        struct rs_records records = { 0 };

        rs_thread_records_set(&records);
        int rc = fn(arg);
        if (in_child)
                rs_task_abort(NULL, "a forked child returns from an item of a worker: end it with _exit() or exec()");
        rs_thread_records_set(NULL);
        if (rc < 0)
                say(said, rs_records_find(&records, rc));
        rs_records_free(NULL, &records);
        return rc;
}

/* ---- bytes ---- */

struct call {
        resha_bytes_fn *fn;
        const void *data;
        size_t size, ret_size;
        void *ret_data;
};

static int call(void *arg)
{
        struct call *c = arg;

        return c->fn(c->data, c->size, &c->ret_data, &c->ret_size);
}

/* False: the program is gone, or an item has closed the descriptor and opened something else, where no byte comes. */
static bool wait_for_byte(const struct worker *k)
{
        return rs_sys_file_id(k->fd) == k->file && rs_sys_wake_wait(k->fd);
}

/* Where a result of that size goes. There is room for one of the largest when those before have been fetched. */
static uint64_t make_room(struct worker *k, size_t size)
{
        struct rs_desk *d = k->desk;

        if (d->ret_used + size > k->w->area) {
                __atomic_store_n(&d->want_room, 1, __ATOMIC_SEQ_CST);
                tell(k, k->told);
                while (__atomic_load_n(&d->want_room, __ATOMIC_SEQ_CST))
                        if (!wait_for_byte(k))
                                rs_sys_exit(0);
                d->ret_used = 0;
        }
        uint64_t at = d->ret_used;
        d->ret_used += (size + 15) & ~(uint64_t)15;
        return at;
}

static int run_bytes(struct worker *k, struct rs_cell *c, struct rs_said *said)
{
        struct call b = { .fn = k->desk->bytes, .data = rs_desk_items(k->desk) + c->at, .size = c->size };
        int rc = run(call, &b, said);

        c->ret_size = 0;
        if (rc >= 0 && b.ret_data && b.ret_size > k->w->largest) {
                rc = -EMSGSIZE;
                snprintf(said->text, sizeof said->text, "a result of %zu bytes: at most %zu (largest in the options)",
                         b.ret_size, k->w->largest);
                said->site[0] = 0;
        } else if (rc >= 0 && b.ret_data && b.ret_size) {
                c->ret_at = make_room(k, b.ret_size);
                c->ret_size = b.ret_size;
                memcpy(rs_desk_results(k->w, k->desk) + c->ret_at, b.ret_data, b.ret_size);
        }
        resha_free(b.ret_data);
        return rc;
}

/* ---- items ---- */

static void run_cell(struct worker *k, unsigned i)
{
        struct rs_desk *d = k->desk;
        struct rs_cell *c = &d->cells[i];
        struct rs_said *said = &d->said[i];
        int64_t now = rs_sys_now();
        int rc = k->init;

        c->generation = k->generation;
        __atomic_store_n(&d->began, now, __ATOMIC_RELEASE);
        if (!rs_cell_move(c, RS_CELL_WAITING, RS_CELL_RUNNING))
                return;
        if (rc < 0)
                *said = k->init_said;
        else
                rc = d->fn ? run(d->fn, rs_desk_items(d) + c->at, said) : run_bytes(k, c, said);
        c->result = rc;
        rs_sys_flush();
        if (!rs_cell_move(c, RS_CELL_RUNNING, RS_CELL_DONE)) {
                if (rs_cell_state(c) != RS_CELL_KILLED)
                        rs_sys_exit(1); /* it was overwritten, which the program sees once this process has ended */
                await_end();
        }
        if (rc < 0 || now - k->told > TELL_NS)
                tell(k, now);
        if (rc == -ENOMEM && k->w->memory && k->init >= 0)
                rs_sys_exit(RS_WORKER_FULL);
}

static void run_desk(struct worker *k)
{
        struct rs_desk *d = k->desk;
        bool any = false;

        for (unsigned i = 0; i < RS_CELLS && i < __atomic_load_n(&d->count, __ATOMIC_ACQUIRE); i++) {
                if (rs_cell_state(&d->cells[i]) != RS_CELL_WAITING)
                        continue;
                if (!any)
                        k->told = rs_sys_now();
                any = true;
                run_cell(k, i);
        }
        if (any)
                tell(k, k->told);
}

static int limit(const resha_workers *w, struct rs_said *said)
{
        int rc = rs_sys_limit_data(w->memory);

        if (rc < 0)
                snprintf(said->text, sizeof said->text,
                         "worker process: its memory cannot be limited: %s (/proc/self/statm, setrlimit)",
                         resha_strerror(rc));
        return rc;
}

static void init(struct worker *k)
{
        __atomic_store_n(&k->desk->began, rs_sys_now(), __ATOMIC_RELEASE);
        __atomic_store_n(&k->desk->init, RS_CELL_RUNNING, __ATOMIC_RELEASE);
        k->init = run(k->w->init, k->w->arg, &k->init_said);
        if (!rs_state_move(&k->desk->init, RS_CELL_RUNNING, RS_CELL_DONE))
                await_end();
}

void rs_worker_main(resha_workers *w, struct rs_seat *s)
{
        struct worker k = { .w = w, .desk = s->desk, .fd = s->theirs, .generation = s->desk->generation };

        k.file = rs_sys_file_id(k.fd);
        this_worker = &k;
        (void)rs_thread_at_fork(NULL, NULL, forked); /* fails for want of memory: then the child is not found out */
        if (w->memory)
                k.init = limit(w, &k.init_said);
        if (w->init && k.init == 0)
                init(&k);
        do
                run_desk(&k);
        while (wait_for_byte(&k));
        rs_sys_exit(0);
}
