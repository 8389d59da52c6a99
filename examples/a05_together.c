/* SPDX-License-Identifier: MIT */
/* A5: the same three greetings at once. See it with RESHA_TIMELINE=1. */
#include <stdio.h>

#include <resha/resha.h>

static int greet(void *arg)
{
        const char *name = *(const char **)arg;
        char title[48];

        snprintf(title, sizeof title, "greet \"%s\"", name);
        resha_task_set_name(title); /* for the picture */
        printf("Starting %s\n", name);
        int rc = resha_sleep(RESHA_S(2));
        if (rc < 0)
                return rc;
        printf("Hello, %s!\n", name);
        return 0;
}

static int program(void *arg)
{
        const char *names[] = { "Alice", "Bob", "Charlie" };
        resha_instant start = resha_now();

        (void)arg;
        int rc = resha_gather(greet, names, 3, sizeof names[0], NULL);
        printf("%.1f s\n", (double)resha_between(start, resha_now()).ns / 1e9);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
