/* SPDX-License-Identifier: MIT */
/* B4: four good stories and a bad one, all or nothing. The first failure cancels the others, and gather returns only
 * when they have ended. */
#include <stdio.h>

#include <resha/resha.h>

struct story {
        int id;
        char title[32];
};

static int fetch(void *arg)
{
        struct story *s = arg;
        char name[16];

        snprintf(name, sizeof name, "story %d", s->id);
        resha_task_set_name(name); /* for the picture */
        int rc = resha_sleep(RESHA_MS(s->id < 0 ? 500 : 1000 * s->id));
        if (rc < 0) {
                printf("%s: cancelled\n", name);
                return rc;
        }
        if (s->id < 0)
                return resha_fail(-ENOENT, "%s: no such story", name);
        snprintf(s->title, sizeof s->title, "Story %d", s->id);
        printf("%s: fetched\n", name);
        return 0;
}

static int program(void *arg)
{
        struct story s[] = { { .id = 1 }, { .id = 2 }, { .id = -1 }, { .id = 3 }, { .id = 4 } };
        resha_instant start = resha_now();

        (void)arg;
        int rc = resha_gather(fetch, s, 5, sizeof s[0], NULL);
        if (rc != -ENOENT)
                return rc;
        printf("after %.1f s: %s\n", (double)resha_between(start, resha_now()).ns / 1e9, resha_error_of(rc)->text);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
