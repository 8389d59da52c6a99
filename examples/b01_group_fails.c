/* SPDX-License-Identifier: MIT */
/* B1: a group of three workers. The first finishes, the second fails, the third is cancelled and cleans up; the group
 * reports the failure with its message. See it with RESHA_TIMELINE=1. */
#include <stdio.h>

#include <resha/resha.h>

static int work(void *arg)
{
        int n = *(int *)arg;
        char name[16];

        snprintf(name, sizeof name, "worker %d", n);
        resha_task_set_name(name); /* for the picture */
        printf("%s starts\n", name);
        int rc = resha_sleep(RESHA_S(n));
        if (rc < 0) {
                printf("%s is cancelled and cleans up\n", name);
                return rc;
        }
        if (n == 2)
                return resha_fail(-EIO, "%s has dropped everything", name);
        printf("%s is done\n", name);
        return 0;
}

static int program(void *arg)
{
        int n[] = { 1, 2, 3 };
        resha_instant start = resha_now();

        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, work, &n[i]);
        int rc = resha_group_end(&g, 0);
        printf("after %.1f s: %s\n", (double)resha_between(start, resha_now()).ns / 1e9, resha_error_of(rc)->text);
        return rc == -EIO ? 0 : rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
