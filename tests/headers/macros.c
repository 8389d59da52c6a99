/* SPDX-License-Identifier: MIT */
/* Macros of the public headers compile in C and in C++. Never run. */

#include <resha/resha.h>

static int nothing(void *arg)
{
        (void)arg;
        return 0;
}

static int select_macros(resha_queue *q, resha_event *e, resha_task *t)
{
        int in = 0;
        const int out = 1;
        resha_case c[] = { RESHA_ON_GET(q, &in), RESHA_ON_PUT(q, &out), RESHA_ON_EVENT(e), RESHA_ON_TASK(t),
                           RESHA_ON_TIME(resha_after(RESHA_MS(5))) };
        int which = resha_select(c, sizeof c / sizeof c[0]);

        if (which == -ECANCELED)
                c[0] = RESHA_ON_GET(NULL, &in);
        return which < 0 ? which : c[which].result;
}

static int group_macros(void)
{
        static resha_task t;
        static resha_event e;
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;
        int rc = resha_queue_new(sizeof rc, RESHA_UNBOUNDED, NULL, &q);

        RESHA_GROUP(g);
        RESHA_SCOPE(s);
        resha_group_begin(&g, NULL);
        resha_timeout_begin(&s, RESHA_S(1));
        if (rc == 0)
                rc = resha_spawn(&g, nothing, &e);
        if (rc == 0)
                rc = resha_spawn_task(&g, nothing, &e, &t);
        if (rc == 0)
                rc = resha_spawn_copy(&g, nothing, &rc);
        rc = rc < 0 ? resha_fail(rc, "no task %d", 1) : select_macros(q, &e, &t);
        rc = resha_scope_end(&s, rc);
        return resha_group_end(&g, rc);
}

static int portal_macros(resha_portal *p)
{
        static resha_portal_handle h;
        int result, rc = resha_portal_start(p, &h, nothing, NULL);

        resha_portal_cancel(&h);
        if (rc == 0)
                rc = resha_portal_wait(&h, RESHA_FOREVER, &result);
        return rc < 0 ? rc : resha_portal_call(p, nothing, &rc);
}

int main(void)
{
        return group_macros() + portal_macros(NULL);
}
