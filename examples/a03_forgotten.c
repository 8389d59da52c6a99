/* SPDX-License-Identifier: MIT */
/* A3: the forgotten await. Where calling a coroutine only makes an object, forgetting to await it runs nothing. Here a
 * call is a call, and a task has an owner: a group that is forgotten ends with its block, its tasks with it. */
#include <stdio.h>

#include <resha/resha.h>

static int fetch(void *arg)
{
        (void)arg;
        puts("fetching");
        int rc = resha_sleep(RESHA_S(2));
        puts(rc < 0 ? "cancelled, cleaning up" : "fetched");
        return rc;
}

static int forgetful(void)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, fetch, NULL);
        return resha_sleep(RESHA_S(1)); /* no resha_group_end() */
}

static int program(void *arg)
{
        puts("a call that looks like a call is one:");
        int rc = fetch(arg);
        if (rc < 0)
                return rc;
        puts("a task that nobody waits for:");
        rc = forgetful();
        puts("nothing is left running");
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
