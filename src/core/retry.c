/* SPDX-License-Identifier: MIT */
/* Retry with back-off: full jitter, a random time between nothing and the doubled base, spreads a herd of clients best
 * (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015). */

#include "core/core.h"

struct attempt {
        resha_fn *fn;
        void *arg;
        resha_duration limit;
        const resha_retry_opts *opts;
        unsigned made;
        resha_instant deadline; /* of all attempts */
};

static bool transient(int rc)
{
        switch (rc) {
        case -EAGAIN:
        case -ETIME:
        case -ETIMEDOUT:
        case -ECONNREFUSED:
        case -ECONNRESET:
        case -ECONNABORTED:
        case -EPIPE:
        case -ENETUNREACH:
        case -EHOSTUNREACH:
        case RESHA_HTTP_ETOTAL:
        case RESHA_HTTP_ECONNECT_TIMEOUT:
        case RESHA_HTTP_EREAD_TIMEOUT:
        case RESHA_HTTP_ETRUNCATED: return true;
        default: return false;
        }
}

static int64_t backoff(struct rs_loop *l, const struct attempt *a, int rc)
{
        const resha_retry_opts *o = a->opts;
        int64_t base = o->base.ns > 0 ? o->base.ns : RESHA_S(1).ns, max = o->max.ns > 0 ? o->max.ns : RESHA_S(30).ns;
        int64_t d = base;

        if (o->delay)
                return o->delay(a->made, rc, a->arg).ns;
        for (unsigned i = 1; i < a->made && d < max; i++)
                d = rs_time_add(d, d);
        if (d > max)
                d = max;
        return o->no_jitter ? d : (int64_t)(l->backend->ops->random(l->backend) % ((uint64_t)d + 1));
}

static int attempts(struct rs_loop *l, struct attempt *a)
{
        const resha_retry_opts *o = a->opts;
        unsigned most = o->attempts ? o->attempts : 3;

        for (;;) {
                int rc = o->attempt.ns > 0 ? resha_timeout(o->attempt, a->fn, a->arg) : a->fn(a->arg);
                a->made++;
                if (rc >= 0 || resha_cancelled() || a->made >= most)
                        return rc;
                if (rc == -ECANCELED || !(o->again ? o->again(rc, a->arg) : transient(rc)))
                        return rc;
                int64_t pause = backoff(l, a, rc);
                if (rs_time_add(rs_now(l), pause) >= a->deadline.ns)
                        return rc;
                int slept = resha_sleep(RESHA_NS(pause));
                if (slept < 0)
                        return slept;
        }
}

int resha_retry(resha_fn *fn, void *arg, const resha_retry_opts *opts)
{
        static const resha_retry_opts defaults;
        struct attempt a = { .fn = fn, .arg = arg, .opts = opts ? opts : &defaults, .deadline = RESHA_NEVER };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0 && !rs_reserved_zero(a.opts->_reserved))
                rc = resha_fail_at(-EINVAL, NULL, "a reserved word of retry options is not zero");
        if (rc == 0 && a.opts->total.ns > 0) {
                RESHA_SCOPE(s);
                a.deadline = resha_after(a.opts->total);
                resha_deadline_begin(&s, a.deadline);
                rc = resha_scope_end(&s, attempts(l, &a));
        } else if (rc == 0) {
                rc = attempts(l, &a);
        }
        if (a.opts->ret_attempts)
                *a.opts->ret_attempts = a.made;
        return rc;
}
