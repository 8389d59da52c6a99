/* SPDX-License-Identifier: MIT */
/* B6: the first of three mirrors is enough; the others are cancelled and waited for. See it with RESHA_TIMELINE=1.
 * resha_race() does all this in one call, where the first success is what is wanted. */
#include <stdio.h>

#include <resha/resha.h>

enum { MIRRORS = 3 };

struct mirror {
        int number, ms;
        char page[32];
};

static int ask(void *arg)
{
        struct mirror *m = arg;
        char name[16];

        snprintf(name, sizeof name, "mirror %d", m->number);
        resha_task_set_name(name); /* for the picture */
        int rc = resha_sleep(RESHA_MS(m->ms));
        if (rc < 0)
                printf("%s: cancelled\n", name);
        else
                snprintf(m->page, sizeof m->page, "page from %s", name);
        return rc;
}

static double seconds_since(resha_instant start)
{
        return (double)resha_between(start, resha_now()).ns / 1e9;
}

static int program(void *arg)
{
        struct mirror m[MIRRORS] = { { .number = 1, .ms = 500 },
                                     { .number = 2, .ms = 2000 },
                                     { .number = 3, .ms = 800 } };
        resha_task tasks[MIRRORS] = { 0 };
        resha_instant start = resha_now();
        size_t first = 0;
        int rc = 0, pending = 0;

        (void)arg;
        RESHA_GROUP(g); /* after what its tasks use */
        resha_group_begin(&g, NULL);
        for (int i = 0; i < MIRRORS && rc >= 0; i++)
                rc = resha_spawn_task(&g, ask, &m[i], &tasks[i]);
        if (rc >= 0)
                rc = resha_task_wait_any(tasks, MIRRORS, RESHA_FOREVER, &first);
        if (rc < 0)
                return resha_group_end(&g, rc);
        printf("%s at %.1f s\n", m[first].page, seconds_since(start));
        for (int i = 0; i < MIRRORS; i++)
                pending += !resha_task_done(&tasks[i], NULL);
        printf("Cancelling %d pending\n", pending);
        resha_group_cancel(&g);
        rc = resha_group_end(&g, rc); /* waits for them */
        printf("all ended at %.1f s\n", seconds_since(start));
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
