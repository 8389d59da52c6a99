/* SPDX-License-Identifier: MIT */
/* A2: run a function on a loop and take its result. */
#include <stdio.h>

#include <resha/resha.h>

static int answer(void *arg)
{
        (void)arg;
        puts("thinking");
        int rc = resha_sleep(RESHA_S(1));
        return rc < 0 ? rc : 42;
}

static int nested(void *arg)
{
        int rc = resha_run(answer, arg, NULL); /* there is one loop already: call answer() instead */

        printf("inside a run: %s\n", resha_error_of(rc)->text);
        return 0;
}

int main(void)
{
        printf("result: %d\n", resha_run(answer, NULL, NULL)); /* starts a loop, runs, cleans up, closes */
        return resha_main(nested, NULL);                       /* the same for main(): prints a failure, gives 0 or 1 */
}
