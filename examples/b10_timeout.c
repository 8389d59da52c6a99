/* SPDX-License-Identifier: MIT */
/* B10: ten seconds of work under a timeout of two, as a call and as a block. Running out of time is not the same as
 * being cancelled from outside. */
#include <stdio.h>

#include <resha/resha.h>

static int long_work(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_S(10));
}

static int as_block(void)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(2));
        int rc = resha_sleep(RESHA_S(1)); /* any number of calls */
        if (rc >= 0)
                rc = long_work(NULL);
        return resha_scope_end(&s, rc);
}

/* The same block in a task that somebody cancels after one second. */
static int in_time(void *arg)
{
        (void)arg;
        return as_block();
}

static int cancelled_from_outside(void)
{
        resha_task task = { 0 };
        int status = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        int rc = resha_spawn_task(&g, in_time, NULL, &task);
        if (rc >= 0)
                rc = resha_sleep(RESHA_S(1));
        resha_task_cancel(&task);
        if (rc >= 0)
                rc = resha_task_wait(&task, &status);
        rc = resha_group_end(&g, rc);
        return rc < 0 ? rc : status;
}

static void print(const char *what, resha_instant start, int rc)
{
        printf("%s: %s after %.1f s\n", what,
               rc == -ETIME       ? "timed out"
               : rc == -ECANCELED ? "cancelled"
                                  : "done",
               (double)resha_between(start, resha_now()).ns / 1e9);
}

static int program(void *arg)
{
        resha_instant start = resha_now();

        (void)arg;
        print("as a call", start, resha_timeout(RESHA_S(2), long_work, NULL));
        start = resha_now();
        print("as a block", start, as_block());
        start = resha_now();
        print("from outside", start, cancelled_from_outside());
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
