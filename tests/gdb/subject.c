/* SPDX-License-Identifier: MIT */
/* What the tests of gdb's commands look at: subject MODE [N]. It prints "ready" when all tasks are where they are to be
 * seen, and goes on waiting; `many` ends by abort() instead. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

#define FRAME __attribute__((noinline))

static volatile int after_call;

static int ready(void)
{
        int rc = resha_sleep(RESHA_MS(50)); /* the others have the thread meanwhile */

        if (rc < 0)
                return rc;
        puts("ready");
        fflush(stdout);
        return 0;
}

/* ---- a circle of two locks, and other waits ---- */

static resha_mutex left, right;

static FRAME int take_both(resha_mutex *one, resha_mutex *other)
{
        int rc = resha_mutex_lock(one);

        if (rc == 0)
                rc = resha_sleep(RESHA_MS(10));
        if (rc == 0)
                rc = resha_mutex_lock(other);
        after_call++;
        return rc;
}

static int left_then_right(void *arg)
{
        (void)arg;
        int rc = take_both(&left, &right);
        after_call++;
        return rc;
}

static int right_then_left(void *arg)
{
        (void)arg;
        int rc = take_both(&right, &left);
        after_call++;
        return rc;
}

static int sleeper(void *arg)
{
        int forty_two = 42 + (arg != NULL);
        int rc = resha_sleep(RESHA_S(1000));

        after_call = forty_two;
        return rc;
}

static int with_deadline(void *arg)
{
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(500));
        int rc = sleeper(arg);
        after_call++;
        return resha_scope_end(&s, rc);
}

static int parent(void *arg)
{
        resha_task t = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        int rc = resha_spawn_task(&g, with_deadline, arg, &t);
        if (rc == 0)
                rc = resha_task_wait(&t, NULL);
        after_call++;
        return resha_group_end(&g, rc);
}

static int deadlock(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, left_then_right, arg);
        resha_spawn(&g, right_then_left, arg);
        resha_spawn(&g, parent, arg);
        for (int i = 0; i < 30; i++)
                resha_spawn(&g, sleeper, arg);
        int rc = ready();
        return resha_group_end(&g, rc);
}

/* ---- loops, of which one computes ---- */

static FRAME int computes(void *arg)
{
        for (;;)
                after_call += arg != NULL;
        return 0;
}

static FRAME int overdue(void *arg)
{
        (void)arg;
        int rc = resha_sleep(RESHA_MS(20));
        after_call++;
        return rc;
}

static int busy_or_not(void *arg)
{
        const int *which = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sleeper, arg);
        int rc = ready();
        if (*which) {
                resha_spawn(&g, overdue, arg);
                resha_spawn(&g, computes, arg);
        }
        return resha_group_end(&g, rc);
}

static int loops(void)
{
        int items[2] = { 0, 1 };

        return resha_main_loops(busy_or_not, items, 2, sizeof items[0]);
}

/* ---- many of a kind ---- */

static FRAME int inner(resha_event *e)
{
        int rc = resha_event_wait(e);

        after_call++;
        return rc;
}

static int waiter(void *arg)
{
        int rc = inner(arg);

        after_call++;
        return rc;
}

static int many(void *arg)
{
        const long *n = arg;
        resha_event e = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (long i = 0; i < *n; i++)
                resha_spawn(&g, waiter, &e);
        int rc = ready();
        if (rc == 0)
                abort();
        return resha_group_end(&g, rc);
}

int main(int argc, char **argv)
{
        const char *mode = argc > 1 ? argv[1] : "";
        long n = argc > 2 ? strtol(argv[2], NULL, 10) : 100;

        if (strcmp(mode, "deadlock") == 0)
                return resha_main(deadlock, NULL);
        if (strcmp(mode, "loops") == 0)
                return loops();
        if (strcmp(mode, "many") == 0)
                return resha_main(many, &n);
        fprintf(stderr, "subject deadlock|loops|many [N]\n");
        return 2;
}
