/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <signal.h>
#include <stdio.h>
#include <resha/resha.h>

struct job { int id; };

static int worker(void *arg)
{
        struct job j;
        int rc;
        while ((rc = resha_queue_get(arg, &j)) > 0) {
                if ((rc = resha_sleep(RESHA_MS(50))) < 0)
                        return rc;
                printf("job %d done\n", j.id);
        }
        return rc;                                      /* 0: shut down and empty */
}

static int producer(void *arg)
{
        int rc = 1;
        for (int i = 0; rc > 0; i++)
                rc = resha_queue_put(arg, &(struct job){ i });  /* 1 put, 0 shut down */
        return rc;
}

static int program(void *arg)
{
        (void)arg;
        resha_queue *jobs RESHA_CLEANUP(resha_queue_freep) = NULL;
        int rc = resha_queue_new(sizeof(struct job), 100, NULL, &jobs), sig;
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, producer, jobs);
        for (int i = 0; i < 8; i++)
                resha_spawn(&g, worker, jobs);
        rc = resha_signal_wait((int[]){ SIGTERM, SIGINT }, 2, &sig);    /* a failed worker ends this wait */
        if (rc >= 0) {
                resha_queue_shutdown(jobs);
                rc = resha_group_drain(&g, RESHA_S(10));
                if (rc == -ETIME)
                        rc = 0, puts("drain deadline passed, cancelled the rest");
        }
        return resha_group_end(&g, rc);
}

int main(void) { return resha_run(program, NULL, &(resha_run_opts){ .keep_sigint = true }) < 0; }
