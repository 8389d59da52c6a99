/* SPDX-License-Identifier: MIT */
/* D1: a call that blocks, in a task. Nobody else runs meanwhile; the watchdog says on stderr who blocks, and where. */
#include <stdio.h>
#include <unistd.h>

#include <resha/resha.h>

static int load(void *arg)
{
        sleep(1); /* resha_sleep() would let the others run */
        *(int *)arg = 42;
        return 0;
}

static int hum(void *arg)
{
        int rc;

        (void)arg;
        while ((rc = resha_sleep(RESHA_MS(400))) >= 0)
                puts("    la la la");
        return rc;
}

static int program(void *arg)
{
        int answer = 0;

        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, hum, NULL);
        puts("loading");
        int rc = load(&answer);
        if (rc == 0)
                printf("loaded %d\n", answer);
        return resha_group_end(&g, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
