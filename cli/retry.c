/* SPDX-License-Identifier: MIT */

/* When to ask again. Full jitter: the whole wait is random, so that a crowd that failed together does not come back
 * together. What the server asks for with Retry-After is kept to, with a little added for the same reason. */

#include "retry.h"

#include <resha/error.h>

#include "clock.h"
#include "number.h"

uint64_t rng_below(struct rng *r, uint64_t below)
{
        uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        return below ? z % below : 0;
}

static bool transient_status(int status)
{
        switch (status) {
        case 408: /* request timeout */
        case 425: /* too early */
        case 429: /* too many requests */
        case 500:
        case 502:
        case 503:
        case 504:
        case 522: /* a proxy's connect timeout */
        case 524: /* a proxy's read timeout */ return true;
        default: return false;
        }
}

bool retry_transient(int rc, int status)
{
        switch (rc) {
        case RESHA_HTTP_ETOTAL:
        case RESHA_HTTP_ECONNECT_TIMEOUT:
        case RESHA_HTTP_EREAD_TIMEOUT:
        case RESHA_HTTP_ETRUNCATED:
        case -ETIMEDOUT:
        case -ETIME:
        case -ECONNRESET:
        case -EPIPE:
        case -EAGAIN: /* the name server does not answer for now */
        case -EMFILE: /* our own limit: others give theirs back */
        case -ENFILE:
        case -ENETUNREACH:
        case -EHOSTUNREACH: return true;
        default: return rc >= 0 && transient_status(status);
        }
}

bool retry_parse_after(const char *value, int64_t now_ms, resha_duration *ret_delay)
{
        int64_t at;
        if (number_seconds(value, ret_delay) == 0)
                return true;
        if (clock_parse_http_date(value, &at) < 0)
                return false;
        int64_t ms = at > now_ms ? at - now_ms : 0;
        *ret_delay = ms < INT64_MAX / 1000000 ? RESHA_MS(ms) : RESHA_FOREVER;
        return true;
}

static resha_duration backoff(const struct retry_policy *p, unsigned retry, struct rng *rng)
{
        int64_t most = p->base.ns;
        for (unsigned k = 1; k < retry && most < p->max.ns; k++)
                most = most > INT64_MAX / 2 ? INT64_MAX : most * 2;
        if (most > p->max.ns)
                most = p->max.ns;
        return RESHA_NS(rng_below(rng, (uint64_t)(most > 0 ? most : 0)));
}

enum retry_verdict retry_decide(const struct retry_policy *p, const struct retry_facts *f, struct rng *rng,
                                resha_duration *ret_delay)
{
        if (!retry_transient(f->rc, f->status))
                return RETRY_NO;
        int64_t left = p->total.ns - f->spent.ns;
        if (f->attempts > p->retries || left <= 0)
                return RETRY_USED_UP;
        resha_duration delay;
        if (f->rc >= 0 && f->retry_after && retry_parse_after(f->retry_after, f->now_ms, &delay)) {
                *ret_delay = delay;
                if (delay.ns >= left)
                        return RETRY_TOO_LONG;
                int64_t spread = delay.ns / 10 < INT64_C(1000000000) ? delay.ns / 10 : INT64_C(1000000000);
                delay.ns += (int64_t)rng_below(rng, (uint64_t)spread);
        } else {
                delay = backoff(p, f->attempts, rng);
        }
        *ret_delay = delay;
        return delay.ns < left ? RETRY_AGAIN : RETRY_USED_UP;
}
