/* SPDX-License-Identifier: MIT */
/* B8: cancel a task in the middle of its work. The release always runs, and main sees that the task was cancelled. */
#include <stdio.h>

#include <resha/resha.h>

static int work(void *arg)
{
        int rc = 0;

        (void)arg;
        for (int step = 1; step <= 10 && rc >= 0; step++) {
                printf("step %d\n", step);
                rc = resha_sleep(RESHA_S(1));
        }
        printf("releasing: %s\n", rc < 0 ? resha_error_of(rc)->text : "done");
        return rc;
}

static int program(void *arg)
{
        resha_task task = { 0 };
        resha_instant start = resha_now();
        int status = 0;

        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        int rc = resha_spawn_task(&g, work, NULL, &task);
        if (rc >= 0)
                rc = resha_sleep(RESHA_MS(2500));
        puts("main: cancel");
        resha_task_cancel(&task); /* asks, and does not wait */
        if (rc >= 0)
                rc = resha_task_wait(&task, &status);
        if (rc >= 0)
                printf("main: the task was %s after %.1f s\n", status == -ECANCELED ? "cancelled" : "not cancelled",
                       (double)resha_between(start, resha_now()).ns / 1e9);
        return resha_group_end(&g, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
