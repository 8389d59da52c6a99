/* SPDX-License-Identifier: MIT */
#ifndef RESHA_TEST_H
#define RESHA_TEST_H

/* Tests of your own program in the simulated world: its clock is virtual, its connections are memory, and which of the
 * ready tasks runs next comes from a seed. A test runs your function under many seeds, and under each of them again and
 * again with one thing going wrong. Build it with `pkg-config --cflags --libs resha-test`.
 *
 *     static int program(void *arg) { ... }           // the main task of every trial; *arg is zeroed before
 *
 *     static void check(void *arg, int rc, const resha_test_trial *t)
 *     {                                               // after it: what must hold, whatever went wrong
 *             struct bank *b = arg;
 *             resha_test_expect(b->paid_in == b->paid_out + b->balance);
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_test_run(program, &(resha_test_opts){ .state = sizeof(struct bank), .check = check });
 *     }
 *
 * Trials of one seed: undisturbed; a cancel at its k-th checkpoint, for every k, once and twice, of the main task, of
 * the task that is there, and of the one that was at the checkpoint before; its n-th allocation by resha_malloc()
 * failing, for every n; its n-th operation of the backend (what would be a system call) failing, for every n.
 *
 * A task that is cancelled alone is no failure of its group (group.h): if the rest waits for something that only that
 * task would have done, it waits for ever, and the trial fails as a deadlock, or by `checkpoints`. Then let the task
 * say on every way out that it has ended: shut its queue down, cancel the group.
 *
 * After each of them: every task has ended, and without a deadlock; what was allocated is released; no error was lost;
 * the result is one that may come of what was done to it (-ECANCELED after a cancel, -ENOMEM after an allocation, ...;
 * undisturbed, 0 or more); no task goes on for long although its waits say that it is cancelled; check() agrees. The
 * first trial that fails is printed as one line on stderr, and ends the test:
 *
 *     program: cancel of the current task at checkpoint 12: bank.c:40: not true: ...; again: RESHA_TEST_TRIAL='program
 *     seed=7 cancel=12 victim=current'
 *
 * In the environment
 *     RESHA_TEST_TRIAL        this one trial alone, as a failure names it: for a debugger, or with RESHA_TIMELINE=1.
 *                             Tests of other names are skipped and say so; a trial that is never reached fails
 *     RESHA_TEST_SEEDS        how many seeds instead, as "500", or as "500%" of what the test says
 *     RESHA_TEST_FIRST_SEED   from which seed on [0] */

#include <resha/addr.h>
#include <resha/base.h>
#include <resha/run.h>
#include <resha/stream.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

enum resha_test_victim {
        RESHA_TEST_MAIN,     /* the main task, and so everything; twice: the current one, then the main task */
        RESHA_TEST_CURRENT,  /* the task that is at the checkpoint */
        RESHA_TEST_PREVIOUS, /* the one that was at the checkpoint before: it waits by now, or is about to go on */
        RESHA_TEST_VICTIMS
};

/* What luck may bring, where the world allows it. The first five are what every correct program must bear: they are
 * there in all seeds but 0. The others make connections fail, and datagrams what they are, and happen only if asked
 * for. */
enum resha_test_fault {
        RESHA_TEST_LATENCY,      /* bytes, ends and connects travel for a while */
        RESHA_TEST_STALL,        /* what could be done at once is done a little later */
        RESHA_TEST_SHORT_READ,   /* fewer bytes than are there */
        RESHA_TEST_SHORT_WRITE,  /* fewer bytes than there is room for */
        RESHA_TEST_SMALL_BUFFER, /* a connection takes 1 .. 4096 bytes instead of 64 KiB before its writer waits */
        RESHA_TEST_RESET,        /* the connection breaks at a read or write: -ECONNRESET at both ends */
        RESHA_TEST_REFUSED,      /* a connect is refused though somebody listens */
        RESHA_TEST_ACCEPT,       /* an accept fails for lack of descriptors: -EMFILE */
        RESHA_TEST_LOSS,         /* a UDP datagram gets lost */
        RESHA_TEST_DUPLICATE,    /* it comes twice */
        RESHA_TEST_REORDER,      /* it comes later than those that were sent behind it */
        RESHA_TEST_FAULTS
};

/* One trial: what is done, and what has happened. */
typedef struct resha_test_trial {
        uint64_t seed;
        uint64_t cancel;               /* at which checkpoint, from 1; 0: none */
        uint64_t again;                /* and once more so many checkpoints later; 0: no */
        enum resha_test_victim victim; /* who is cancelled */
        uint64_t alloc;                /* which allocation fails, from 1; 0: none */
        uint64_t operation;            /* which operation of the backend fails, from 1; 0: none */
        /* Until now, in check() of the whole run. */
        uint64_t checkpoints, operations;
        uint64_t allocs;                                /* counted only where none was to fail */
        bool cancelled, alloc_failed, operation_failed; /* it came to that */
        bool disturbed; /* one of these, or a connection or datagram that luck has made fail: it need not
                        * succeed */
        uint64_t _reserved[4];
} resha_test_trial;

/* What a whole test was. */
typedef struct resha_test_result {
        uint64_t trials;
        uint64_t checkpoints; /* of all of them */
        uint64_t fired[RESHA_TEST_FAULTS];
        resha_test_trial failed; /* if it failed: which trial, and what was wrong with it */
        char text[512];          /* "": it passed */
        uint64_t _reserved[4];
} resha_test_result;

typedef struct resha_test_opts {
        size_t state;   /* bytes of the state that program and check get, zeroed before each trial [0: they get NULL] */
        unsigned seeds; /* 0 .. seeds - 1 [20] */
        /* called after each run that has come to the program, outside of tasks; t says what was done. [NULL: nothing
         * more is checked] */
        void (*check)(void *state, int rc, const resha_test_trial *t);
        bool no_cancels, no_allocs, no_operations; /* leave these trials out [false] */
        /* at most so many trials of each of the three kinds for each seed, spread evenly, other ones for each seed
         * [0: all] */
        unsigned most;
        int may_fail[4];      /* codes that the program may end with by itself [none] */
        unsigned may_report;  /* bits 1u << RESHA_REPORT_...: reports that are no failure [0: none] */
        unsigned checkpoints; /* a trial that has more ends the process: it does not end by itself [1,000,000] */
        unsigned faults[RESHA_TEST_FAULTS]; /* per mille, of all seeds but 0 [0: as the world has it] */
        const resha_run_opts *run;          /* options of the runs; backend and report are the test's own [NULL] */
        const resha_test_trial *only;       /* this trial alone; fails if it is never reached [NULL] */
        resha_test_result *ret_result;      /* [NULL]; written always */
        uint64_t _reserved[8];
} resha_test_opts;

/* Runs the trials of fn. A failure is printed as one line on stderr; a trial that crashes the process prints its line
 * first. Result, an exit status: 0 all is well, 1 failed. Not inside a running loop, one at a time in a process. opts:
 * NULL is fine. [any-thread] */
#define resha_test_run(fn, ...) resha_test_run_at((fn), __VA_ARGS__, #fn)
RESHA_API int resha_test_run_at(resha_fn *fn, const resha_test_opts *opts, const char *name);

/* In program and check: the trial fails if it is not true. The trial goes on; the first one is told. Gives `ok`.
 * [any-thread] */
#define resha_test_expect(x) resha_test_expect_at(!!(x), #x, RESHA_SITE)
RESHA_API bool resha_test_expect_at(bool ok, const char *text, const char *site);

/* What repeats the trial that runs, as "RESHA_TEST_TRIAL='program seed=7 cancel=12 victim=current'": for messages of
 * your own; NULL outside of trials. Valid until the trial has ended. [any-thread] */
RESHA_API const char *resha_test_trial_text(void);

/* For tests that are made by hand, in any simulated run (resha_run_opts.backend "sim:7", or RESHA_BACKEND=sim:7). */

/* The seed of the world; 0 also where there is none. [loop] */
RESHA_API uint64_t resha_test_seed(void);

/* A random number of its seed; 0 where there is no such world. [loop] */
RESHA_API uint64_t resha_test_random(void);

/* How often a kind of fault happens from now on where it could, per mille; how long bytes and stalls may take at most.
 * 0; -EINVAL; -EPERM where there is no simulated world. [loop] */
RESHA_API int resha_test_fault(enum resha_test_fault kind, unsigned per_mille);
RESHA_API int resha_test_latency(resha_duration at_most);

/* From now on resha_resolve() of this name, in any case, gives these addresses, of IPv4 and IPv6, at most 1000, in this
 * order, whatever their ports; n = 0: there is no such name. Until something is said "localhost" is 127.0.0.1, and no
 * other name is there. 0; -EINVAL; -EPERM where there is no simulated world; -ENOMEM. [loop]
 *
 *     resha_addr addrs[2];
 *     resha_addr_parse("2001:db8::1", 0, &addrs[0]);
 *     resha_addr_parse("192.0.2.1", 0, &addrs[1]);
 *     resha_test_name("db.example", addrs, 2); */
RESHA_API int resha_test_name(const char *host, const resha_addr *addrs, size_t n);

/* From now on nobody answers who connects to this address, of IPv4 or IPv6; port 0: to any port of it. The connect
 * fails with -ETIMEDOUT after 127 s, as on Linux; datagrams are lost; what connections there are go on. At an address
 * that is not silent somebody listens, or a connect is refused at once. 0; -EINVAL; -EPERM where there is no simulated
 * world; -ENOMEM. [loop] */
RESHA_API int resha_test_silent(const resha_addr *addr);

/* A signal comes, for this loop, as if the process had sent it to itself by kill(2): tasks that wait for it go on
 * (resha/signal.h); where none has asked for it, SIGINT does what Ctrl-C does, and SIGTERM too if the run has
 * `terminate`. The loop looks at it when the task waits next. A main task that is ended so gives -ECANCELED, which a
 * test of it says in may_fail. 0; -ESRCH if nobody asks for it (any more: in a trial who asked may have been
 * cancelled): it would do what it does by default; -EINVAL; -EPERM where there is no simulated world. [loop] */
RESHA_API int resha_test_signal(int sig);

/* ---- programs ---- */

/* A process of the simulated world, as its program sees it. */
typedef struct resha_test_process resha_test_process;

/* What a program does, in a task of its own. Its result is the exit status (the lower 8 bits); a negative one is 1, as
 * of resha_main(), but for -ECANCELED, which is the signal that has cancelled it. */
typedef int resha_test_program_fn(resha_test_process *p, void *arg);

/* From now on resha_process_spawn() of this argv[0], in the simulated world, makes no process, but runs fn(p, arg) in a
 * task of this loop, with pipes in memory. It is as much a process as can be: no cancel and no deadline of its spawner
 * reaches it, signals do, and what is left of it when the run ends is killed. A trial also cancels it at its
 * checkpoints, which is as if somebody had sent SIGTERM, and lets its allocations fail. fn NULL: there is no such
 * program, and spawning it fails with -ENOENT. A name of which nothing was said is that of a real program. arg is
 * borrowed until the run ends, name is copied. 0; -EINVAL; -EPERM where there is no simulated world; -ENOMEM. [loop]
 *
 *     static int upper(resha_test_process *p, void *arg)
 *     {
 *             char c;
 *             ssize_t n;
 *             int rc = 0;
 *             while (rc == 0 && (n = resha_read(resha_test_process_stream(p, 0), &c, 1)) > 0) {
 *                     c = (char)toupper(c);
 *                     rc = resha_write_all(resha_test_process_stream(p, 1), &c, 1, NULL);
 *             }
 *             return rc < 0 ? rc : (int)n;
 *     }
 *             ...
 *             resha_test_program("upper", upper, NULL); */
RESHA_API int resha_test_program(const char *name, resha_test_program_fn *fn, void *arg);

/* Its arguments, NULL at the end; a variable of its environment, or NULL; its working directory if the options named
 * one, else NULL. Valid as long as it runs. All [loop] */
RESHA_API const char *const *resha_test_process_argv(const resha_test_process *p);           /* [loop] */
RESHA_API const char *resha_test_process_env(const resha_test_process *p, const char *name); /* [loop] */
RESHA_API const char *resha_test_process_dir(const resha_test_process *p);                   /* [loop] */

/* Its descriptor: 0, 1, 2, and 3, 4, ... of the options. The stream is the process's: resha_test_process_close() closes
 * it, or its end. NULL: it has no such one. [loop] */
RESHA_API resha_stream *resha_test_process_stream(resha_test_process *p, int fd);

/* Closes a descriptor. The other end of a pipe finds its end when all who have it have closed it. None, and one that is
 * closed, is fine. [task] not a cancellation point */
RESHA_API void resha_test_process_close(resha_test_process *p, int fd);

/* What a process does when a signal comes. */
enum resha_test_action {
        /* As the kernel: nothing for SIGCHLD, SIGURG, SIGWINCH and SIGCONT; SIGSTOP and its kin stop it, which here
         * means that other signals but SIGKILL wait until SIGCONT; all others cancel it. Then it returns -ECANCELED, or
         * a status of its own if it is to have a handler that does so. SIGKILL cancels within shields too, breaks its
         * streams off, and is the status whatever it returns. */
        RESHA_TEST_DEFAULT,
        RESHA_TEST_IGNORE,
        RESHA_TEST_KEEP, /* for resha_test_process_signal() */
};

/* 0; -EINVAL for what is no signal, and for SIGKILL and SIGSTOP. [loop] */
RESHA_API int resha_test_process_on(resha_test_process *p, int sig, enum resha_test_action action);

/* The next signal that it keeps; the same one twice before it is taken is one. 0; -EBUSY: another task waits. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_test_process_signal(resha_test_process *p, int *ret_sig);

/* Sends a signal to itself; `return resha_test_process_raise(p, SIGSEGV);` is a crash. -ECANCELED if that ends it, else
 * 0; -EINVAL. [loop] */
RESHA_API int resha_test_process_raise(resha_test_process *p, int sig);

/* Starts a process that nobody waits for: fn(p, arg) in a task of its own, with all descriptors that p has open. It
 * goes on when p has ended, and as long as it has a pipe open the reader of that finds no end. Signals come to it only
 * if the process was started with `group` or `session`. 0, -ENOMEM, -EAGAIN. [task] never suspends */
RESHA_API int resha_test_process_fork(resha_test_process *p, resha_test_program_fn *fn, void *arg);

/* How often it has happened in this run. [loop] */
RESHA_API uint64_t resha_test_fired(enum resha_test_fault kind);

RESHA_END_DECLS
#endif
