/* SPDX-License-Identifier: MIT */
/* B3: three sources at once. The results stand in the order given, whoever was first. */
#include <stdio.h>

#include <resha/resha.h>

struct source {
        const char *name;
        int seconds;
        const char *result;
};

static int fetch(void *arg)
{
        struct source *s = arg;

        resha_task_set_name(s->name); /* for the picture */
        int rc = resha_sleep(RESHA_S(s->seconds));
        if (rc < 0)
                return rc;
        printf("%s has answered\n", s->name);
        s->result = s->seconds == 1 ? "3 hits" : s->seconds == 2 ? "200 OK" : "7 rows";
        return 0;
}

static int program(void *arg)
{
        struct source s[] = { { "api", 2, NULL }, { "database", 3, NULL }, { "cache", 1, NULL } };
        resha_instant start = resha_now();

        (void)arg;
        int rc = resha_gather(fetch, s, 3, sizeof s[0], NULL);
        if (rc < 0)
                return rc;
        printf("[%s, %s, %s] after %.1f s\n", s[0].result, s[1].result, s[2].result,
               (double)resha_between(start, resha_now()).ns / 1e9);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
