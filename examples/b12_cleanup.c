/* SPDX-License-Identifier: MIT */
/* B12: the try/finally of C. What is declared with RESHA_CLEANUP is released on every way out of the block; a
 * clean-up that has to wait gets a shield with a time of its own. */
#include <stdio.h>

#include <resha/resha.h>

struct connection {
        const char *user;
};

static int say_goodbye(void *arg)
{
        struct connection *c = arg;
        int rc = resha_sleep(RESHA_MS(100)); /* a round trip */

        if (rc >= 0)
                printf("%s: said goodbye\n", c->user);
        return rc;
}

static void hang_up(struct connection **c)
{
        if (*c)
                printf("%s: closed\n", (*c)->user);
}

static int talk(struct connection *peer, resha_duration d, int result)
{
        struct connection *c RESHA_CLEANUP(hang_up) = peer; /* finally, and nothing has to be remembered */
        int rc = resha_sleep(d);

        if (rc >= 0)
                rc = result;
        int rc2 = resha_shielded(RESHA_S(1), say_goodbye, c); /* waits, even while this task is cancelled */
        return rc < 0 ? rc : rc2;
}

static int succeed(void *arg)
{
        (void)arg;
        return talk(&(struct connection){ "success" }, RESHA_S(1), 0);
}

static int fail(void *arg)
{
        (void)arg;
        return talk(&(struct connection){ "failure" }, RESHA_S(1), -EIO);
}

static int run_out_of_time(void *arg)
{
        (void)arg;
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(1));
        return resha_scope_end(&s, talk(&(struct connection){ "timeout" }, RESHA_S(10), 0));
}

static int work_for_long(void *arg)
{
        (void)arg;
        return talk(&(struct connection){ "cancel" }, RESHA_S(10), 0);
}

static int be_cancelled(void *arg)
{
        resha_task task = { 0 };
        int status = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        int rc = resha_spawn_task(&g, work_for_long, arg, &task);
        if (rc >= 0)
                rc = resha_sleep(RESHA_S(1));
        resha_task_cancel(&task);
        if (rc >= 0)
                rc = resha_task_wait(&task, &status);
        rc = resha_group_end(&g, rc);
        return rc < 0 ? rc : status;
}

static int program(void *arg)
{
        resha_fn *ways[] = { succeed, fail, run_out_of_time, be_cancelled };

        for (int i = 0; i < 4; i++) {
                int rc = ways[i](arg);
                printf("  ended with %s\n", rc < 0 ? resha_errname(rc) : "success");
        }
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
