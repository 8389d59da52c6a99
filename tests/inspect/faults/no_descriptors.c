/* SPDX-License-Identifier: MIT */
/* The fault: settings that are read again and again, from a file that is closed only when it has changed. When there is
 * no file descriptor left, the program says so once, and goes on trying. To look at it takes descriptors, too. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <resha/resha.h>

enum { LIMIT = 128 };

struct settings {
        char text[64];
};

static int read_settings(struct settings *s)
{
        struct settings now = { "" };
        resha_file *f;
        int rc = resha_file_open("/proc/self/limits", O_RDONLY, 0, &f);
        if (rc < 0)
                return rc;
        ssize_t n = resha_file_read(f, now.text, sizeof now.text - 1, 0);
        if (n < 0)
                return (int)n;
        if (strcmp(now.text, s->text) == 0)
                return 0; /* f is still open */
        *s = now;
        return resha_file_close(f);
}

static int watch_settings(void *arg)
{
        struct settings s = { "" };
        bool said = false;
        (void)arg;
        for (int rc = 0; rc >= 0;) {
                int failed = read_settings(&s);
                if (failed < 0 && !said)
                        fprintf(stderr, "the settings cannot be read: %s\n", resha_strerror(failed));
                said |= failed < 0;
                rc = said ? resha_sleep(RESHA_MS(100)) : 0;
        }
        return 0;
}

static int program(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, watch_settings, arg);
        return resha_group_end(&g, 0);
}

/* The limit of a shell is 1,024, or more. */
int main(void)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 1;
        limit.rlim_cur = LIMIT;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 1;
        return resha_main(program, NULL);
}
