/* SPDX-License-Identifier: MIT */
#ifndef JOB_H
#define JOB_H

/* Small task functions that leave a trace in notes(): "a+" began, "a-" came to its end, "a!" was cancelled. */

#include <errno.h>

#include "test.h"

/* Milliseconds of a test, stretched where the clock is real; that so many have passed since t; and how many have. */
#define MS(x) RESHA_MS((x)*test_stretch())
#define ASSERT_PASSED(t, ms) ASSERT_ELAPSED((t), (ms)*test_stretch())

static inline int64_t ms_since(resha_instant t)
{
        return test_ms_since(t) / test_stretch();
}

struct job {
        const char *name;
        int64_t ms;    /* sleeps for this */
        int result;    /* of the function, if not cancelled; negative with the record "NAME failed" */
        int64_t clean; /* when cancelled: clean-up behind a shield that takes so many ms */
        resha_task task;
};

/* JOB("a", 10, .result = -EIO) */
#define JOB(n, milliseconds, ...) \
        { \
                .name = (n), .ms = (milliseconds), __VA_ARGS__ \
        }

static inline int job_clean(void *arg)
{
        const struct job *j = arg;

        return resha_sleep(MS(j->clean));
}

static inline int job(void *arg)
{
        struct job *j = arg;

        note("%s+", j->name);
        int rc = resha_sleep(MS(j->ms));
        if (rc < 0) {
                if (j->clean)
                        ASSERT_OK(resha_shielded(RESHA_S(3600), job_clean, j));
                note("%s!", j->name);
                return rc;
        }
        note("%s-", j->name);
        return j->result < 0 ? resha_fail(j->result, "%s failed", j->name) : j->result;
}

/* Runs fn(arg) as a task, cancels it after ms (0: when it has run to its first wait); its status. */
static inline int status_when_cancelled(int64_t ms, resha_fn *fn, void *arg)
{
        resha_task t = { 0 };
        int status = 1;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, fn, arg, &t));
        ASSERT_OK(resha_sleep(MS(ms)));
        ASSERT_FALSE(resha_task_done(&t, NULL));
        resha_task_cancel(&t);
        ASSERT_OK(resha_task_wait(&t, &status));
        int rc = resha_group_end(&g, 0);
        ASSERT_EQ(rc, status < 0 && status != -ECANCELED ? status : 0);
        return status;
}

#endif
