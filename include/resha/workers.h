/* SPDX-License-Identifier: MIT */
#ifndef RESHA_WORKERS_H
#define RESHA_WORKERS_H

/* A map over processes: for code that may crash, leak, hang or need a limit, and for code that is not safe in threads.
 * Guide: docs/workers.md.
 *
 *     int main(void)
 *     {
 *             resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;
 *             int rc = resha_workers_start(&(resha_workers_opts){ .time = RESHA_S(10) }, &w);  // before threads
 *             return rc < 0 ? 1 : resha_main(program, w);
 *     }
 *
 *     rc = resha_workers_map(w, thumbnail, pictures, n, sizeof pictures[0], NULL);             // in a task
 *
 * Workers are forked by a template, a process that is forked at the very beginning and does nothing else: it has one
 * thread and no descriptors of the program but 0, 1 and 2. A worker that has ended, of whatever, is replaced from it,
 * and the item that it ran has failed; nothing else is lost, and nothing runs twice. What an item leaves behind in its
 * worker (threads, alarms, damaged memory) is there for the next ones.
 *
 * A worker is a copy of the process as it was at the start: pointers to functions and constants are good there, those
 * to what was allocated or opened later are not, and a library that was loaded later is not there. It has no loop; to
 * wait for several things in it there is resha_run(). What it writes to the memory of the program stays in it. */

#include <resha/base.h>
#include <resha/combine.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_workers resha_workers;

typedef struct resha_workers_opts {
        unsigned processes; /* 1..256 [one for each processor that the process may use] */
        unsigned chunk;     /* items that go to a worker in one message, 1..256 [chosen, and moved to who is idle] */
        /* bytes that a worker may allocate beside what the process had at the start; then resha_malloc(), malloc() and
         * their kin give NULL there. What items have not given back counts, until one fails with -ENOMEM: then the
         * worker is replaced [0: no limit] */
        size_t memory;
        size_t largest;      /* bytes of an item; of an argument and of a result, if they are bytes [1 MiB] */
        resha_duration time; /* that an item, or init, may take; then the worker is killed [0: no limit] */
        const char *name;    /* of the processes; at most 15 bytes ["resha-worker"] */
        resha_fn *init;      /* called in each worker before its first item; if it fails, all its items do [NULL] */
        void *arg;           /* of init */
        uint64_t _reserved[4];
} resha_workers_opts;

/* Forks the template, and it forks the workers. At the beginning of main(), before there are threads and outside of a
 * run: -EBUSY, with what is in the way. What stdio has buffered is written first. All of them, and what they have
 * started, end with this process, also if it is killed, and with the thread that has called this. They are in process
 * groups of their own, so that Ctrl-C is for this process alone; signals are handled in the default way. 0; -EINVAL,
 * -ENOMEM, -EAGAIN, -EMFILE. In the simulated world (inside of a run, too) there are no processes: items run inline, as
 * thread jobs do, and `memory` and `time` do not hold, as nothing in an item takes virtual time. [any-thread] */
RESHA_API int resha_workers_start(const resha_workers_opts *opts, resha_workers **ret_workers);

/* Kills the workers, and waits until they and the template have ended. Maps that are under way, on other threads, fail
 * with -EBADF. NULL is fine. [any-thread] */
RESHA_API void resha_workers_stop(resha_workers *w);
RESHA_API void resha_workers_stopp(resha_workers **w);

/* fn(&items[i]) for all n items of `size` bytes, each on a copy in a worker (aligned to 16 bytes), at most as many at
 * once as there are workers, or opts->limit. Where it succeeds the bytes come back into the item; where it fails the
 * item is as it was, and the error record of the worker's resha_fail() is that of the failure. Results and options as
 * resha_gather()'s: 0, or the first failure, which has ended the others; with keep_going 0, and `ret_status`,
 * `ret_errors`, `ret_failed` say the rest.
 *
 * An item fails alone, and says why: RESHA_EPROCESS: its worker was killed by a signal or has exited ("killed by signal
 * 11 (SIGSEGV)", "exit status 3"); -ETIMEDOUT: it has taken longer than `time`; -EAGAIN: for 2 s no worker could be
 * forked for it. Of the whole: RESHA_EPROCESS: the template was killed; -EBADF: the workers are stopped; -EMSGSIZE:
 * items are larger than `largest`; -EPERM: called in a worker or another fork of the process.
 *
 * Cancelled, it returns at once: items that run are killed with their worker. Any number of tasks and loops may map
 * over the same workers: they take turns, in order. [task] cancellation point */
RESHA_API RESHA_MUST int resha_workers_map(resha_workers *w, resha_fn *fn, void *items, size_t n, size_t size,
                                           const resha_gather_opts *opts);

/* An argument and a result of any size up to `largest`. */
typedef struct resha_bytes {
        const void *data; /* borrowed */
        size_t size;
        void *ret_data; /* of an item that succeeded: the caller's, who gives it to resha_free(); else NULL */
        size_t ret_size;
        uint64_t _reserved[2];
} resha_bytes;

/* What runs in a worker: *ret_data is to be from resha_malloc(), and is freed there once it has been sent; NULL at the
 * call. */
typedef int resha_bytes_fn(const void *data, size_t size, void **ret_data, size_t *ret_size);

/* The same for bytes. -EMSGSIZE of one item: its argument or result is larger than `largest`; -ENOMEM: there was no
 * memory for its result here. [task] cancellation point */
RESHA_API RESHA_MUST int resha_workers_map_bytes(resha_workers *w, resha_bytes_fn *fn, resha_bytes *items, size_t n,
                                                 const resha_gather_opts *opts);

RESHA_END_DECLS
#endif
