/* SPDX-License-Identifier: MIT */
/* See child.h. */

#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static int no_pidfd(enum rs_syscall call)
{
        return call == RS_SYS_PIDFD ? -ENOSYS : 0;
}

__attribute__((constructor)) static void forbid_pidfds(void)
{
        if (getenv("RESHA_TEST_NO_PIDFD"))
                rs_fault_hook = no_pidfd;
}

void child_exec_is_known(void)
{
        if (TEST_VALGRIND)
                test_skip("Valgrind does not tell what exec says");
}

resha_process *shell(const char *text, resha_process_opts o)
{
        const char *const argv[] = { "sh", "-c", text, NULL };
        resha_process *p = NULL;

        o.argv = argv;
        ASSERT_OK(resha_process_spawn(&o, &p));
        ASSERT_TRUE(p != NULL);
        return p;
}

void assert_no_children(void)
{
        siginfo_t info;

        ASSERT_EQ(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
        ASSERT_EQ(errno, ECHILD);
}

void close_process(resha_process *p)
{
        resha_process_close(p);
        assert_no_children();
}

const char *read_all(resha_process *p)
{
        static char text[4096];
        size_t n = 0;
        ssize_t k;

        while ((k = resha_read(resha_process_stdout(p), text + n, sizeof text - 1 - n)) > 0)
                n += (size_t)k;
        ASSERT_OK(k);
        text[n] = 0;
        return text;
}

const char *output_of(const char *text, resha_process_opts o)
{
        o.out = RESHA_PIPE;
        resha_process *p = shell(text, o);
        const char *got = read_all(p);
        ASSERT_OK(resha_process_check(p));
        close_process(p);
        return got;
}

int number(const char *line)
{
        char *end;
        long n = strtol(line, &end, 10);

        ASSERT_TRUE(end > line && *end == '\n' && n > 1);
        return (int)n;
}

bool is_gone(int pid)
{
        return kill(pid, 0) < 0 && errno == ESRCH;
}

bool child_is_dead(int pid)
{
        char name[32], line[256];

        snprintf(name, sizeof name, "/proc/%d/stat", pid);
        FILE *f = fopen(name, "r");
        if (!f)
                return true;
        const char *end = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
        fclose(f);
        return !end || end[2] == 'Z';
}

void wait_until_dead(int pid)
{
        for (int i = 0; i < 2000 && !child_is_dead(pid); i++)
                ASSERT_OK(resha_sleep(RESHA_MS(5)));
        ASSERT_TRUE(child_is_dead(pid));
}

int wait_task(void *arg)
{
        resha_exit e = { .code = -1 };
        int rc = resha_process_wait(arg, &e);

        if (rc == 0)
                note("%s%d", e.signalled ? "signal" : "status", e.code);
        return rc;
}
