/* SPDX-License-Identifier: MIT */
/* System calls of processes that go on with the program of their parent: forked early, with one thread, so that all of
 * the library's and the program's code may run in them. */

#include "sys/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/call.h"
#include "sys/sanitize.h"
#include "sys/spawn.h"

/* ---- what there is ---- */

static ssize_t read_proc(const char *path, char *buf, size_t size)
{
        int fd = rs_sys_open(path, O_RDONLY);

        if (fd < 0)
                return fd;
        ssize_t n = rs_sys_pread(fd, buf, size - 1, 0);
        rs_sys_close(fd);
        buf[n > 0 ? n : 0] = 0;
        return n;
}

int rs_sys_threads(void)
{
        char buf[4096], *at;
        int n = 1;

#ifndef RS_TSAN
        if (read_proc("/proc/self/status", buf, sizeof buf) > 0 && (at = strstr(buf, "\nThreads:")))
                (void)sscanf(at + 9, "%d", &n);
#else
        (void)buf, (void)at;
#endif
        return n;
}

void *rs_sys_share(size_t size)
{
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        return p == MAP_FAILED ? NULL : p;
}

void rs_sys_unshare(void *base, size_t size)
{
        (void)munmap(base, size);
}

void rs_sys_share_read(void *base, size_t size)
{
        (void)mprotect(base, size, PROT_READ);
}

void rs_sys_share_drop(void *base, size_t size)
{
        (void)madvise(base, size, MADV_REMOVE);
}

/* ---- the fork ---- */

int rs_sys_fork(void)
{
        (void)fflush(NULL);
        return (int)CALL(RS_SYS_SPAWN, fork());
}

void rs_sys_exit(int status)
{
        _exit(status);
}

void rs_sys_flush(void)
{
        (void)fflush(NULL);
}

/* ---- in a child ---- */

static void close_from_to(unsigned from, unsigned to)
{
        if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
                return;
        struct rlimit files; /* Linux before 5.9 */
        unsigned most =
                getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 65536 ? (unsigned)files.rlim_cur : 65536;
        for (unsigned fd = from; fd <= to && fd < most; fd++)
                (void)close((int)fd);
}

void rs_sys_keep_only(const int *fds, size_t n)
{
        unsigned from = 3;

        for (size_t i = 0; i < n; i++) {
                if (fds[i] > 0)
                        close_from_to(from, (unsigned)fds[i] - 1);
                from = (unsigned)fds[i] + 1;
        }
        close_from_to(from, ~0U);
}

void rs_sys_signals_reset(void)
{
        struct sigaction now;
        sigset_t none;

        for (int sig = 1; sig < NSIG; sig++)
                if (sigaction(sig, NULL, &now) == 0 && now.sa_handler != SIG_DFL)
                        rs_sys_signal_default(sig);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

bool rs_sys_die_with(pid_t parent, int sig)
{
        (void)prctl(PR_SET_PDEATHSIG, sig);
        return getppid() == parent;
}

void rs_sys_own_group(void)
{
        (void)setpgid(0, 0);
}

void rs_sys_process_name(const char *name)
{
        (void)prctl(PR_SET_NAME, name);
}

/* RLIMIT_DATA counts private memory that may be written, as statm's sixth number does. */
int rs_sys_limit_data(size_t more)
{
        char buf[256];
        unsigned long long pages = 0;
        struct rlimit limit;

        if (read_proc("/proc/self/statm", buf, sizeof buf) <= 0 ||
            sscanf(buf, "%*u %*u %*u %*u %*u %llu", &pages) != 1 || getrlimit(RLIMIT_DATA, &limit) < 0)
                return -ENOSYS;
        rlim_t has = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
        if (has < limit.rlim_cur && more < limit.rlim_cur - has)
                limit.rlim_cur = has + more;
        return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
}

/* ---- the template ---- */

int rs_sys_child_signals(void)
{
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGTERM);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        return (int)CALL(RS_SYS_EVENTFD, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

bool rs_sys_child_signals_read(int fd)
{
        struct signalfd_siginfo info;
        bool term = false;

        while (read(fd, &info, sizeof info) == (ssize_t)sizeof info)
                term |= info.ssi_signo == SIGTERM;
        return term;
}

pid_t rs_sys_wait_any(struct rs_sys_ended *ret_ended)
{
        siginfo_t info = { .si_pid = 0 };
        int rc = (int)CALL(RS_SYS_WAIT, waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT));

        *ret_ended = (struct rs_sys_ended){ info.si_code, info.si_status };
        return rc < 0 ? rc : info.si_pid;
}

uint64_t rs_sys_file_id(int fd)
{
        struct stat s;

        return fstat(fd, &s) == 0 ? (uint64_t)s.st_ino : 0;
}

bool rs_sys_wake_wait(int fd)
{
        char buf[64];

        for (;;) {
                ssize_t n = rs_sys_recv(fd, buf, sizeof buf);
                if (n > 0 || (n < 0 && n != -EAGAIN))
                        return n > 0;
                if (n == 0)
                        return false;
                struct pollfd p = { .fd = fd, .events = POLLIN };
                (void)poll(&p, 1, -1);
        }
}
