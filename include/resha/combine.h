/* SPDX-License-Identifier: MIT */
#ifndef RESHA_COMBINE_H
#define RESHA_COMBINE_H

/* Combining: calls that start tasks, own them, and return when the last of them has ended. */

#include <resha/base.h>
#include <resha/error.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_gather_opts {
        unsigned limit; /* at most this many at once [0: all] */
        /* a failure cancels nobody, and the result is 0 unless the caller is cancelled [false] */
        bool keep_going;
        /* n results, one for each item; -ECANCELED for those never started [NULL]; written always */
        int *ret_status;
        resha_error *ret_errors; /* n records, code 0 for those that succeeded [NULL]; written always */
        size_t *ret_failed;      /* how many results are negative [NULL]; written always */
        uint64_t _reserved[4];
} resha_gather_opts;

/* Runs fn(&items[i]) for all n items of `size` bytes as tasks at once, started in order. 0, or the first failure in
 * time, which has cancelled the others; -ECANCELED. n = 0: 0. [task] cancellation point (waits for its children even
 * so) */
RESHA_API RESHA_MUST int resha_gather_at(resha_fn *fn, void *items, size_t n, size_t size,
                                         const resha_gather_opts *opts, const char *name, const char *site);
/* resha_gather(fn, items, n, size, opts); variadic: the commas of a compound literal part arguments of macros. */
#define resha_gather(fn, items, n, ...) resha_gather_at((fn), (items), (n), __VA_ARGS__, #fn, RESHA_SITE)

/* A call of its own, for tasks that do different things. */
typedef struct resha_call {
        resha_fn *fn;
        void *arg;        /* borrowed until the call that was given it returns */
        const char *name; /* of the task; static [NULL: "task"] */
} resha_call;

/* RESHA_CALL(fn, arg): one, with the function's name. */
#define RESHA_CALL(fn, ...) \
        { \
                (fn), (__VA_ARGS__), #fn \
        }

/* As resha_gather(), over n different calls:
 *
 *     resha_call calls[] = { RESHA_CALL(load_user, &user), RESHA_CALL(load_orders, &orders) };
 *     int rc = resha_gather_calls(calls, 2, NULL);
 *
 * [task] cancellation point (waits for its children even so) */
RESHA_API RESHA_MUST int resha_gather_calls_at(const char *site, const resha_call *calls, size_t n,
                                               const resha_gather_opts *opts);
/* resha_gather_calls(calls, n, opts) */
#define resha_gather_calls(...) resha_gather_calls_at(RESHA_SITE, __VA_ARGS__)

typedef struct resha_race_opts {
        resha_duration stagger; /* start the next when this has passed, or when one has failed [0: all at once] */
        resha_drop_fn *drop;    /* called with the item, or arg, of a second one that succeeded too [NULL] */
        uint64_t _reserved[4];
} resha_race_opts;

/* The first success wins; the others are cancelled and joined. Result: that of the winner, *ret_winner its index (may
 * be NULL). If all fail, the last failure; -ECANCELED; n = 0: -EINVAL. [task] cancellation point (waits for its
 * children even so) */
RESHA_API RESHA_MUST int resha_race_at(resha_fn *fn, void *items, size_t n, size_t size, const resha_race_opts *opts,
                                       size_t *ret_winner, const char *name, const char *site);
/* resha_race(fn, items, n, size, opts, ret_winner) */
#define resha_race(fn, items, n, ...) resha_race_at((fn), (items), (n), __VA_ARGS__, #fn, RESHA_SITE)

/* As resha_race(), over n different calls. [task] cancellation point (waits for its children even so) */
RESHA_API RESHA_MUST int resha_race_calls_at(const char *site, const resha_call *calls, size_t n,
                                             const resha_race_opts *opts, size_t *ret_winner);
/* resha_race_calls(calls, n, opts, ret_winner) */
#define resha_race_calls(...) resha_race_calls_at(RESHA_SITE, __VA_ARGS__)

/* The results of many tasks, one at a time, in the order in which they end: to work on each while the others run, or to
 * stop when enough is known. It owns the tasks: they have ended when its block is left, on every way out.
 *
 *     RESHA_COMPLETIONS(c);
 *     resha_completions_begin(&c, fetch, pages, n, sizeof pages[0], &(resha_completions_opts){ .limit = 8 });
 *     size_t i;
 *     int status, rc;
 *     while ((rc = resha_completions_next(&c, &i, &status)) > 0)
 *             if (status >= 0 && (rc = store(&pages[i])) < 0)
 *                     break;                          // the rest is cancelled and joined
 *     return resha_completions_end(&c, rc); */
typedef struct resha_completions {
        uint64_t _[48]; /* private; all zero before begin */
} resha_completions;

/* Declares one that ends, at the latest, when its block is left. */
#define RESHA_COMPLETIONS(c) resha_completions c __attribute__((cleanup(resha_completions_leave))) = { { 0 } }

typedef struct resha_completions_opts {
        unsigned limit; /* at most this many at once; one that ends starts the next [0: all] */
        uint64_t _reserved[4];
} resha_completions_opts;

/* Starts fn(&items[i]) for all n items of `size` bytes as tasks, in order. What it cannot do is told by next and end.
 * [task] never suspends */
RESHA_API void resha_completions_begin_at(resha_completions *c, resha_fn *fn, void *items, size_t n, size_t size,
                                          const resha_completions_opts *opts, const char *name, const char *site);
/* resha_completions_begin(c, fn, items, n, size, opts) */
#define resha_completions_begin(c, fn, items, n, ...) \
        resha_completions_begin_at((c), (fn), (items), (n), __VA_ARGS__, #fn, RESHA_SITE)

/* Waits for the next one that has ended. 1: its index and its result (each may be NULL), with the record of a failure
 * for resha_error_of(); a failure cancels nobody. 0: all have come. -ECANCELED: nothing was taken, it may be called
 * again where that is not cancelled (as after a timeout around it). -EINVAL, -ENOMEM of begin; -EPERM in another task
 * than the one that began. [task] cancellation point */
RESHA_API RESHA_MUST int resha_completions_next(resha_completions *c, size_t *ret_index, int *ret_status);

/* Cancels and joins those that still run. Result: rc, except 0 for -ECANCELED that nothing outside has caused, and
 * errors of begin. Failures that nobody took are reported as lost (run.h), unless the result is negative. [task] not a
 * cancellation point: waits for the tasks whatever is cancelled */
RESHA_API RESHA_MUST int resha_completions_end(resha_completions *c, int rc);

/* The clean-up of RESHA_COMPLETIONS: nothing after end or before begin. [task] not a cancellation point: waits for the
 * tasks */
RESHA_API void resha_completions_leave(resha_completions *c);

typedef struct resha_retry_opts {
        unsigned attempts;      /* most attempts, the first included [3] */
        resha_duration base;    /* back-off before attempt k + 1: a random time in 0..min(max, base * 2^(k-1)) [1 s] */
        resha_duration max;     /* [30 s] */
        bool no_jitter;         /* exactly min(max, base * 2^(k-1)) instead [false: full jitter] */
        resha_duration attempt; /* time for one attempt; then it counts as failed with -ETIME [0: no limit] */
        resha_duration total;   /* for all attempts and back-offs; then -ETIME [0: no limit] */
        /* whether this failure may pass [NULL: -EAGAIN, -ETIME, -ETIMEDOUT, -ECONNREFUSED, -ECONNRESET,
         * -ECONNABORTED, -EPIPE, -ENETUNREACH, -EHOSTUNREACH, http's timeouts (but of the pool) and truncated
         * bodies] */
        bool (*again)(int rc, void *arg);
        resha_duration (*delay)(unsigned attempt, int rc, void *arg); /* back-off of your own, as Retry-After [NULL] */
        unsigned *ret_attempts;                                       /* attempts made [NULL]; written always */
        uint64_t _reserved[4];
} resha_retry_opts;

/* fn(arg) in the current task until it succeeds, fails for good, or attempts or time are used up: its last result.
 * Never tries again after a cancel. The back-off gives up early, with the last failure, if it would outlast `total`.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_retry(resha_fn *fn, void *arg, const resha_retry_opts *opts);

RESHA_END_DECLS
#endif
