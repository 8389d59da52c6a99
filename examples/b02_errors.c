/* SPDX-License-Identifier: MIT */
/* B2: all errors of a group. The second of four fails at once and cancels the others; one of these fails in its
 * clean-up. The result is the first failure; the list has them all. */
#include <stdio.h>

#include <resha/resha.h>

static int work(void *arg)
{
        int n = *(int *)arg;

        printf("n = %d\n", n);
        if (n == 2)
                return resha_fail(-EINVAL, "n = 2 is not allowed");
        int rc = resha_sleep(RESHA_S(n));
        if (rc < 0 && n == 4)
                return resha_fail(-EBUSY, "n = 4 cannot put its tools away");
        return rc;
}

static int program(void *arg)
{
        int n[] = { 1, 2, 3, 4 };
        resha_error errors[4];

        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .errors = errors, .max_errors = 4 });
        for (int i = 0; i < 4; i++)
                resha_spawn(&g, work, &n[i]);
        int rc = resha_group_end(&g, 0);
        if (rc != -EINVAL)
                return rc;
        printf("the group failed: %s\n", resha_error_of(rc)->text);
        for (size_t i = 0; i < resha_group_failures(&g); i++)
                printf("error %zu: %s\n", i + 1, errors[i].text);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
