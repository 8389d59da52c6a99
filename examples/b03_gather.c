/* SPDX-License-Identifier: MIT */
/* B3: three different calls at once. Each has its result in its own place, whoever was first. See it with
 * RESHA_TIMELINE=1. */
#include <stdio.h>

#include <resha/resha.h>

static int ask_api(void *arg)
{
        int rc = resha_sleep(RESHA_S(2));

        if (rc < 0)
                return rc;
        puts("api has answered");
        *(const char **)arg = "200 OK";
        return 0;
}

static int ask_database(void *arg)
{
        int rc = resha_sleep(RESHA_S(3));

        if (rc < 0)
                return rc;
        puts("database has answered");
        *(int *)arg = 7;
        return 0;
}

static int ask_cache(void *arg)
{
        int rc = resha_sleep(RESHA_S(1));

        if (rc < 0)
                return rc;
        puts("cache has answered");
        *(bool *)arg = true;
        return 0;
}

static int program(void *arg)
{
        const char *status = NULL;
        int rows = 0;
        bool hit = false;
        const resha_call calls[] = { RESHA_CALL(ask_api, &status), RESHA_CALL(ask_database, &rows),
                                     RESHA_CALL(ask_cache, &hit) };
        resha_instant start = resha_now();

        (void)arg;
        int rc = resha_gather_calls(calls, 3, NULL);
        if (rc < 0)
                return rc;
        printf("[%s, %d rows, %s] after %.1f s\n", status, rows, hit ? "hit" : "miss",
               (double)resha_between(start, resha_now()).ns / 1e9);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
