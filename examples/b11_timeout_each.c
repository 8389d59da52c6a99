/* SPDX-License-Identifier: MIT */
/* B11: a timeout for each of many requests. One that is too slow gives an error record and costs the others nothing;
 * results and errors are shown as they come. See it with RESHA_TIMELINE=1. */
#include <stdio.h>

#include <resha/resha.h>

enum { REQUESTS = 5 };

struct request {
        int id;
        char answer[32];
};

static int ask(void *arg)
{
        struct request *r = arg;
        int rc = resha_sleep(RESHA_MS(r->id == 3 ? 5000 : 300 * r->id)); /* this server hangs */

        if (rc >= 0)
                snprintf(r->answer, sizeof r->answer, "answer %d", r->id);
        return rc;
}

static int ask_in_time(void *arg)
{
        struct request *r = arg;
        char name[16];

        snprintf(name, sizeof name, "request %d", r->id);
        resha_task_set_name(name); /* for the picture */
        int rc = resha_timeout(RESHA_S(2), ask, r);
        return rc == -ETIME ? resha_fail(rc, "no answer within 2 s") : rc;
}

static int program(void *arg)
{
        struct request r[REQUESTS];
        resha_instant start = resha_now();
        size_t i;
        int status, rc;

        (void)arg;
        for (i = 0; i < REQUESTS; i++)
                r[i] = (struct request){ .id = (int)i + 1 };
        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, ask_in_time, r, REQUESTS, sizeof r[0], NULL);
        while ((rc = resha_completions_next(&c, &i, &status)) > 0)
                printf("%.1f s: request %d: %s%s\n", (double)resha_between(start, resha_now()).ns / 1e9, r[i].id,
                       status < 0 ? "failed, " : "", status < 0 ? resha_error_of(status)->text : r[i].answer);
        return resha_completions_end(&c, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
