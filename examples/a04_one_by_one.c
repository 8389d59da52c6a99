/* SPDX-License-Identifier: MIT */
/* A4: three greetings, one after another. */
#include <stdio.h>

#include <resha/resha.h>

static int greet(const char *name)
{
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
        for (int i = 0; i < 3; i++) {
                int rc = greet(names[i]);
                if (rc < 0)
                        return rc;
        }
        printf("%.1f s\n", (double)resha_between(start, resha_now()).ns / 1e9);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
