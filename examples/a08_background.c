/* SPDX-License-Identifier: MIT */
/* A8: start something, do something else, then wait for the result. */
#include <stdio.h>

#include <resha/resha.h>

struct report {
        const char *result;
};

static int make_report(void *arg)
{
        struct report *r = arg;

        puts("report: started");
        int rc = resha_sleep(RESHA_S(2));
        r->result = "Success";
        return rc;
}

static int program(void *arg)
{
        struct report report = { NULL };
        resha_task task = { 0 };
        resha_instant start = resha_now();

        (void)arg;
        RESHA_GROUP(g); /* after what its tasks use */
        resha_group_begin(&g, NULL);
        int rc = resha_spawn_task(&g, make_report, &report, &task);
        puts("main: goes on at once");
        if (rc >= 0)
                rc = resha_sleep(RESHA_S(1));
        printf("main: other work done, report is %s\n", resha_task_done(&task, NULL) ? "done" : "still being made");
        if (rc >= 0)
                rc = resha_task_wait(&task, NULL);
        if (rc >= 0)
                printf("main: %s after %.1f s\n", report.result, (double)resha_between(start, resha_now()).ns / 1e9);
        return resha_group_end(&g, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
