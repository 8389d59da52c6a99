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
