/* SPDX-License-Identifier: MIT */
/* The same as process/spawn.c by posix_spawn(3) and waitid(2): of the processes that run at once the oldest is waited
 * for when one more is due. */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/bench.h"

enum { AT_ONCE_MAX = 64 };

struct one {
        pid_t pid; /* 0: none */
        int in, out;
};

struct spawn {
        char *argv[2];
        uint64_t n, at_once;
        bool pipes;
        struct one running[AT_ONCE_MAX];
};

extern char **environ;

static int start_with_pipes(struct spawn *s, struct one *o)
{
        posix_spawn_file_actions_t a;
        int in[2], out[2];

        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
                return -errno;
        posix_spawn_file_actions_init(&a);
        posix_spawn_file_actions_adddup2(&a, in[0], 0);
        posix_spawn_file_actions_adddup2(&a, out[1], 1);
        int rc = posix_spawn(&o->pid, s->argv[0], &a, NULL, s->argv, environ);
        posix_spawn_file_actions_destroy(&a);
        close(in[0]);
        close(out[1]);
        o->in = in[1];
        o->out = out[0];
        return -rc;
}

static int end_pipes(struct one *o)
{
        char buf[4096];
        ssize_t n;

        close(o->in);
        do
                n = read(o->out, buf, sizeof buf);
        while (n > 0);
        close(o->out);
        return n < 0 ? -errno : 0;
}

static int end(struct spawn *s, struct one *o)
{
        siginfo_t info = { 0 };
        int rc = s->pipes ? end_pipes(o) : 0;

        if (rc == 0 && waitid(P_PID, (id_t)o->pid, &info, WEXITED) < 0)
                rc = -errno;
        o->pid = 0;
        return rc < 0 ? rc : info.si_status ? -EIO : 0;
}

static int many(void *arg, uint64_t n)
{
        struct spawn *s = arg;
        int rc = 0;

        for (uint64_t i = 0; i < n + s->at_once && rc == 0; i++) {
                struct one *o = &s->running[i % s->at_once];
                if (o->pid)
                        rc = end(s, o);
                if (rc == 0 && i < n)
                        rc = s->pipes ? start_with_pipes(s, o)
                                      : -posix_spawn(&o->pid, s->argv[0], NULL, NULL, s->argv, environ);
        }
        return rc;
}

int main(int argc, char **argv)
{
        struct spawn s = {
                .argv = { argc > 1 ? argv[1] : "true", NULL },
                .n = bench_argument(argc, argv, 2, 2000),
                .pipes = bench_argument(argc, argv, 3, 1) == 2,
                .at_once = bench_argument(argc, argv, 4, 1),
        };

        int rc = s.at_once > AT_ONCE_MAX ? -EINVAL : bench_measure(many, &s, s.n);
        if (rc < 0)
                fprintf(stderr, "%s: %s\n", argv[0], strerror(-rc));
        return rc < 0;
}
