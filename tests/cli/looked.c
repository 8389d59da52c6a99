/* SPDX-License-Identifier: MIT */

/* A program to look into: looked MODE. It prints a line when it is as the mode says, and ends when its stdin does.
 *
 *     deadlock   two tasks hold a lock each and wait for the other's
 *     many       5,000 tasks wait for an event, within a deadline; one has a name that would move a cursor
 *     blocked    a task does not come back from a function that waits with the whole thread
 *     busy       a task has all the time, and gives it away each time that it is asked to
 *     loops      two loops, each with a sleeper */

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <resha/resha.h>

enum { MANY = 5000 };

struct world {
        resha_mutex first, second;
        resha_event event;
        unsigned parked;
        bool over;
};

static void ready(void)
{
        printf("ready\n");
        fflush(stdout);
}

/* Until stdin ends, on this thread: no task runs. */
static __attribute__((noinline)) int block_the_thread(void)
{
        struct pollfd p = { .fd = 0, .events = POLLIN };

        while (poll(&p, 1, -1) < 0) {}
        return 0;
}

static int transfer(void *arg)
{
        struct world *w = arg;
        bool one = w->parked++ % 2 == 0;
        int rc = resha_mutex_lock(one ? &w->first : &w->second);

        if (rc < 0)
                return rc;
        rc = resha_sleep(RESHA_MS(20));
        if (rc == 0)
                rc = resha_mutex_lock(one ? &w->second : &w->first);
        return rc;
}

static int wait_for_event(void *arg)
{
        struct world *w = arg;

        if (w->parked++ == MANY && resha_task_set_name("evil\033[2J") < 0)
                return -ENOMEM;
        return resha_event_wait(&w->event);
}

static int grind(void *arg)
{
        (void)arg;
        int rc = resha_yield(); /* not while the others have not begun */
        ready();
        return rc < 0 ? rc : block_the_thread();
}

static int spin(void *arg)
{
        struct world *w = arg;
        int rc = 0;

        while (!w->over && rc == 0)
                rc = resha_yield();
        return rc;
}

static int until_stdin_ends(struct world *w)
{
        int rc = resha_fd_wait(0, POLLIN);

        w->over = true;
        return rc < 0 ? rc : 0;
}

static int many(struct world *w)
{
        RESHA_SCOPE(s);
        RESHA_GROUP(g);
        int rc = 0;

        resha_timeout_begin(&s, RESHA_S(600));
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (int i = 0; i <= MANY; i++)
                resha_spawn(&g, wait_for_event, w);
        while (rc == 0 && w->parked <= MANY)
                rc = resha_yield();
        ready();
        rc = resha_group_end(&g, rc < 0 ? rc : until_stdin_ends(w));
        return resha_scope_end(&s, rc);
}

static int deadlock(struct world *w)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, transfer, w);
        resha_spawn(&g, transfer, w);
        int rc = resha_sleep(RESHA_MS(100));
        ready();
        return resha_group_end(&g, rc < 0 ? rc : until_stdin_ends(w));
}

static int blocked(struct world *w)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, grind, w);
        return resha_group_end(&g, until_stdin_ends(w));
}

static int busy(struct world *w)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, spin, w);
        ready();
        return resha_group_end(&g, until_stdin_ends(w));
}

static int program(void *arg)
{
        const char *mode = arg;
        static struct world w;

        static const struct {
                const char *name;
                int (*run)(struct world *w);
        } modes[] = { { "deadlock", deadlock }, { "many", many }, { "blocked", blocked }, { "busy", busy } };

        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
                if (strcmp(modes[i].name, mode) == 0)
                        return modes[i].run(&w);
        return resha_fail(-EINVAL, "no such mode: %s", mode);
}

/* Each of the loops. */
static int wait_for_stdin(void *arg)
{
        ready();
        return until_stdin_ends(arg);
}

int main(int argc, char **argv)
{
        const resha_run_opts opts = { .inspect = true };
        static struct world w;

        if (argc != 2)
                return 2;
        int rc = strcmp(argv[1], "loops") == 0 ? resha_run_loops(wait_for_stdin, &w, 2, 0, &opts)
                                               : resha_run(program, argv[1], &opts);
        return rc < 0 && rc != -ECANCELED;
}
