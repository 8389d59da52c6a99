/* SPDX-License-Identifier: MIT */
/* B9: cancel a task right after it was spawned. It still runs to its first wait, so what it opened it also closes. */
#include <stdio.h>

#include <resha/resha.h>

static int work(void *arg)
{
        (void)arg;
        puts("task: opens");
        int rc = resha_sleep(RESHA_S(1));
        puts(rc < 0 ? "task: cancelled, closes" : "task: done, closes");
        return rc;
}

static int program(void *arg)
{
        resha_task task = { 0 };
        int status = 0;

        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        int rc = resha_spawn_task(&g, work, NULL, &task);
        puts("main: spawned, and cancels at once");
        resha_task_cancel(&task);
        if (rc >= 0)
                rc = resha_task_wait(&task, &status);
        if (rc >= 0)
                printf("main: the task was %s\n", status == -ECANCELED ? "cancelled" : "not cancelled");
        return resha_group_end(&g, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
