/* SPDX-License-Identifier: MIT */
/* The fault: two lines come at once. stdio reads both into its buffer and gives out the first; then the task waits
 * until the descriptor is readable, which it is not: nothing is left in it. (resha_fd_wait() is for the descriptor, and
 * does not know of what somebody has read from it. Where there is a buffer, it must be empty before one waits.) */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <resha/resha.h>

struct line {
        int ends[2];
        int read;
};

static int read_lines(void *arg)
{
        struct line *l = arg;
        char text[80];
        FILE *in = fdopen(l->ends[0], "r");
        int rc;
        if (!in)
                return -errno;
        while ((rc = resha_fd_wait(l->ends[0], POLLIN)) > 0 && fgets(text, sizeof text, in))
                l->read++;
        fclose(in);
        return rc < 0 ? rc : 0;
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
        static const char two[] = "first\nsecond\n";
        struct line l = { 0 };
        (void)arg;
        if (pipe(l.ends) < 0 || write(l.ends[1], two, sizeof two - 1) < 0)
                return -errno;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, tick, NULL);
        resha_spawn(&g, read_lines, &l);
        int rc = resha_group_end(&g, 0);
        close(l.ends[1]);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
