/* SPDX-License-Identifier: MIT */
#ifndef CLI_RETRY_H
#define CLI_RETRY_H

/* When to ask again, and how long to wait before. Pure: no clock, no network. */

#include <resha/base.h>
#include <resha/time.h>

/* Random numbers for jitter, repeatable from a seed. */
struct rng {
        uint64_t state;
};

/* 0..below-1; below 0: 0. */
uint64_t rng_below(struct rng *r, uint64_t below);

struct retry_policy {
        unsigned retries;     /* after the first attempt */
        resha_duration total; /* for all attempts at one URL */
        resha_duration base;  /* the wait before retry k is random in 0..min(max, base * 2^(k-1)) */
        resha_duration max;
};

/* What an attempt came to. */
struct retry_facts {
        int rc;                  /* negative: no answer */
        int status;              /* of the answer, if there is one */
        unsigned attempts;       /* made so far, this one included */
        resha_duration spent;    /* since the first attempt began */
        const char *retry_after; /* header, or NULL */
        int64_t now_ms;          /* by the server's Date header if it has one, else the time of day; since 1970 */
};

enum retry_verdict {
        RETRY_NO,       /* done, or failed for good */
        RETRY_AGAIN,    /* after the delay */
        RETRY_USED_UP,  /* might pass, but attempts or time are used up */
        RETRY_TOO_LONG, /* the server asks for more patience than `total` has left: *ret_delay is what it asks for */
};

/* Whether this outcome may pass by itself: timeouts, resets, a broken body, 408 425 429 500 502 503 504 522 524. */
bool retry_transient(int rc, int status);

/* Retry-After as a delay from now: seconds or an HTTP date; at least 0. False if it says nothing that can be
 * understood. */
bool retry_parse_after(const char *value, int64_t now_ms, resha_duration *ret_delay);

enum retry_verdict retry_decide(const struct retry_policy *p, const struct retry_facts *f, struct rng *rng,
                                resha_duration *ret_delay);

#endif
