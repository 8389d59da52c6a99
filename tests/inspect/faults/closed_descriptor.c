/* SPDX-License-Identifier: MIT */
/* The fault: one task closes a descriptor for which another one waits. The kernel tells nobody of it, so the wait does
 * not end. (Streams know of their own end: there the waiter would see that it was closed.) */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <resha/resha.h>

static int wait_for_more(void *arg)
{
        int *ends = arg;
        int rc = resha_fd_wait(ends[0], POLLIN);
        return rc < 0 ? rc : 0;
}

static int tidy_up(void *arg)
{
        int *ends = arg;
        int rc = resha_sleep(RESHA_MS(10));
        close(ends[0]);
        return rc;
}

static int tick(void *arg)
{
        int rc;
        (void)arg;
        while ((rc = resha_sleep(RESHA_S(1))) == 0)
                ;
        return rc;
}

static int program(void *arg)
{
        int ends[2];
        (void)arg;
        if (pipe(ends) < 0)
                return -errno;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, tick, NULL);
        resha_spawn(&g, wait_for_more, ends);
        resha_spawn(&g, tidy_up, ends);
        return resha_group_end(&g, 0);
}

int main(void)
{
        return resha_main(program, NULL);
}
