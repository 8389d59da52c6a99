/* SPDX-License-Identifier: MIT */
/* B11: a timeout for each of many requests. One that is too slow gives an error record and costs the others nothing. */
#include <stdio.h>

#include <resha/resha.h>

enum { REQUESTS = 6 };

struct request {
        int id;
        char answer[32];
};

static int ask(void *arg)
{
        struct request *r = arg;
        int rc = resha_sleep(RESHA_MS(r->id % 3 == 0 ? 5000 : 300 * r->id)); /* every third server hangs */

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
        resha_error errors[REQUESTS];
        resha_instant start = resha_now();

        (void)arg;
        for (int i = 0; i < REQUESTS; i++)
                r[i] = (struct request){ .id = i + 1 };
        int rc = resha_gather(ask_in_time, r, REQUESTS, sizeof r[0],
                              &(resha_gather_opts){ .keep_going = true, .ret_errors = errors });
        for (int i = 0; i < REQUESTS; i++)
                printf("request %d: %s%s\n", r[i].id, errors[i].code ? "failed, " : "",
                       errors[i].code ? errors[i].text : r[i].answer);
        printf("%.1f s in all\n", (double)resha_between(start, resha_now()).ns / 1e9);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
