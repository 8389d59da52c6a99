/* SPDX-License-Identifier: MIT */
/* A1: a blocking call stops the whole thread; a task that sleeps stops only itself. */
#include <stdio.h>
#include <unistd.h>

#include <resha/resha.h>

static int brew_blocking(void *arg)
{
        (void)arg;
        puts("the kettle is on");
        sleep(2); /* nothing else can run */
        puts("tea is ready");
        return 0;
}

static int brew(void *arg)
{
        (void)arg;
        puts("the kettle is on");
        int rc = resha_sleep(RESHA_S(2)); /* the others can */
        if (rc < 0)
                return rc;
        puts("tea is ready");
        return 0;
}

static int hum(void *arg)
{
        int rc;

        (void)arg;
        while ((rc = resha_sleep(RESHA_MS(600))) >= 0)
                puts("    la la la");
        return rc;
}

static int brew_and_hum(resha_fn *brew_fn)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true }); /* the humming ends with the brewing */
        resha_spawn(&g, hum, NULL);
        return resha_group_end(&g, brew_fn(NULL));
}

static int program(void *arg)
{
        (void)arg;
        puts("blocking:");
        int rc = brew_and_hum(brew_blocking);
        if (rc < 0)
                return rc;
        puts("as a task:");
        return brew_and_hum(brew);
}

int main(void)
{
        return resha_main(program, NULL);
}
