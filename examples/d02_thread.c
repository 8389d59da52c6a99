/* SPDX-License-Identifier: MIT */
/* D2: the same call on a thread. The task that made it waits, the others go on. */
#include <stdio.h>
#include <unistd.h>

#include <resha/resha.h>

static int load(void *arg) /* on a thread: it may block as long as it likes */
{
        sleep(1);
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
        resha_group_begin(&g, &(resha_group_opts){ .background = true }); /* the humming ends with the loading */
        resha_spawn(&g, hum, NULL);
        puts("loading");
        int rc = resha_pool_run(NULL, load, &answer, NULL);
        if (rc == 0)
                printf("loaded %d\n", answer);
        return resha_group_end(&g, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
