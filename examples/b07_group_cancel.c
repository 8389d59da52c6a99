/* SPDX-License-Identifier: MIT */
/* B7: the first answer is enough: whoever has it cancels the group. That is no error, and the group ends with
 * success. */
#include <stdio.h>

#include <resha/resha.h>

struct mirror {
        const char *name;
        int ms;
        resha_group *group;
        const char **first;
};

static int ask(void *arg)
{
        struct mirror *m = arg;
        int rc = resha_sleep(RESHA_MS(m->ms));

        if (rc < 0) {
                printf("%s is no longer needed\n", m->name);
                return rc;
        }
        *m->first = m->name;
        resha_group_cancel(m->group);
        return 0;
}

static int program(void *arg)
{
        const char *first = NULL;
        struct mirror m[] = { { .name = "mirror 1", .ms = 500 },
                              { .name = "mirror 2", .ms = 2000 },
                              { .name = "mirror 3", .ms = 800 } };
        resha_instant start = resha_now();

        (void)arg;
        RESHA_GROUP(g); /* after what its tasks use */
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++) {
                m[i].group = &g;
                m[i].first = &first;
                resha_spawn(&g, ask, &m[i]);
        }
        int rc = resha_group_end(&g, 0);
        if (rc < 0)
                return rc;
        printf("%s at %.1f s; the group ended with success\n", first,
               (double)resha_between(start, resha_now()).ns / 1e9);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
