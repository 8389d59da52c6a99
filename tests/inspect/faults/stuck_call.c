/* SPDX-License-Identifier: MIT */
/* The fault: settings are read from a pipe by read(), and not by resha_read(). While nobody writes, no other task runs.
 */
#include <errno.h>
#include <unistd.h>

#include <resha/resha.h>

static int read_settings(int fd)
{
        char text[100];
        ssize_t n = read(fd, text, sizeof text);
        return n < 0 ? -errno : 0;
}

static int load(void *arg)
{
        int *ends = arg;
        int rc = read_settings(ends[0]);
        return rc;
}

static int tick(void *arg)
{
        int rc;
        (void)arg;
        while ((rc = resha_sleep(RESHA_MS(10))) == 0)
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
        resha_spawn(&g, load, ends);
        return resha_group_end(&g, 0);
}

int main(void)
{
        return resha_main(program, NULL);
}
