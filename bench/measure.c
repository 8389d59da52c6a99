/* SPDX-License-Identifier: MIT */
/* measure COMMAND...: runs a command and prints, as one line of JSON on stderr's place in descriptor 3, what the kernel
 * says that it used. A small program of its own, because the peak memory of a process starts with that of the one that
 * started it, and a driver in Python has more than what is measured. The exit code is that of the command. */

#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static double ms_of(const struct timeval *t)
{
        return (double)t->tv_sec * 1e3 + (double)t->tv_usec / 1e3;
}

static double now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
        struct rusage u;
        int status;
        pid_t pid;

        if (argc < 2)
                return 2;
        double start = now_ms();
        if (posix_spawnp(&pid, argv[1], NULL, NULL, argv + 1, environ) != 0) {
                perror(argv[1]);
                return 127;
        }
        if (wait4(pid, &status, 0, &u) < 0) {
                perror("wait4");
                return 126;
        }
        dprintf(3,
                "{\"user_ms\": %.3f, \"system_ms\": %.3f, \"wall_ms\": %.3f, \"peak_kib\": %ld, \"switches\": %ld}\n",
                ms_of(&u.ru_utime), ms_of(&u.ru_stime), now_ms() - start, u.ru_maxrss, u.ru_nvcsw + u.ru_nivcsw);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
