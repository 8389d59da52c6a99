/* SPDX-License-Identifier: MIT */
/* The system calls. Nothing but the call: what a result means is decided above. Two things are settled here for all: a
 * call that a signal interrupts is made again (a wait returns instead, a close is over), and errno becomes a result. */

#include "sys/sys.h"

#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "sys/call.h"
#include "sys/sanitize.h"

enum { YIELDS = 16 };

int (*rs_fault_hook)(enum rs_syscall call);

/* epoll_pwait2 came with Linux 5.11. Old filters of containers say EPERM to what they do not know; Valgrind
 * grumbles. */
static atomic_bool no_pwait2;

int rs_sys_epoll_create(void)
{
        if (RUNNING_ON_VALGRIND)
                atomic_store_explicit(&no_pwait2, true, memory_order_relaxed);
        return rs_sys_move_up((int)CALL(RS_SYS_EPOLL_CREATE, epoll_create1(EPOLL_CLOEXEC)));
}

int rs_sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
        return (int)CALL(RS_SYS_EPOLL_CTL, epoll_ctl(epfd, op, fd, event));
}

/* The same in whole milliseconds, rounded up. */
static int epoll_wait_ms(int epfd, struct epoll_event *events, int max, int64_t timeout_ns)
{
        int64_t ms = timeout_ns < 0 ? -1 : timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);

        return epoll_wait(epfd, events, max, ms > INT_MAX ? INT_MAX : (int)ms);
}

static int epoll_wait_ns(int epfd, struct epoll_event *events, int max, int64_t timeout_ns)
{
#ifdef SYS_epoll_pwait2
        struct timespec t = { .tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000) };

        if (!atomic_load_explicit(&no_pwait2, memory_order_relaxed)) {
                long n = syscall(SYS_epoll_pwait2, epfd, events, max, timeout_ns < 0 ? NULL : &t, NULL, (size_t)0);
                if (n >= 0 || (errno != ENOSYS && errno != EPERM))
                        return (int)n;
                atomic_store_explicit(&no_pwait2, true, memory_order_relaxed);
        }
#endif
        return epoll_wait_ms(epfd, events, max, timeout_ns);
}

int rs_sys_epoll_wait(int epfd, struct epoll_event *events, int max, int64_t timeout_ns)
{
        int n = rs_fault_syscall(RS_SYS_EPOLL_WAIT);

        if (n == 0) {
                /* Finer than a millisecond only matters when there is something to wait for. */
                n = timeout_ns > 0 ? epoll_wait_ns(epfd, events, max, timeout_ns)
                                   : epoll_wait_ms(epfd, events, max, timeout_ns);
                if (n < 0)
                        n = -errno;
        }
        return n == -EINTR ? 0 : n;
}

int rs_sys_eventfd(void)
{
        return rs_sys_move_up((int)CALL(RS_SYS_EVENTFD, eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)));
}

/* The program has closed what is not its own: nobody would ever be woken. Also in a signal handler. */
static __attribute__((noreturn, cold)) void descriptor_gone(void)
{
        static const char text[] = "resha: a descriptor of the library is closed: a program may close its own only "
                                   "(close_range(), closefrom() take all)\n";

        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        abort();
}

void rs_sys_eventfd_set(int fd)
{
        int saved = errno;
        uint64_t one = 1;

        while (write(fd, &one, sizeof one) < 0 && errno != EAGAIN) /* EAGAIN: it is set as much as can be */
                if (errno != EINTR)
                        descriptor_gone();
        errno = saved;
}

void rs_sys_eventfd_clear(int fd)
{
        uint64_t count;

        while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
                ;
}

int rs_sys_timerfd(void)
{
        return rs_sys_move_up((int)CALL(RS_SYS_TIMERFD, timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)));
}

void rs_sys_timerfd_set(int fd, int64_t at)
{
        struct itimerspec t = { 0 };

        if (at <= 0)
                t.it_value.tv_nsec = 1; /* 0 would be never */
        else if (at < INT64_MAX)
                t.it_value = (struct timespec){ .tv_sec = (time_t)(at / 1000000000), .tv_nsec = at % 1000000000 };
        if (timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL) < 0)
                abort();
}

int rs_sys_random(uint64_t *ret_value)
{
        ssize_t n = CALL(RS_SYS_GETRANDOM, getrandom(ret_value, sizeof *ret_value, 0));

        return n == (ssize_t)sizeof *ret_value ? 0 : n < 0 ? (int)n : -EIO;
}

int64_t rs_sys_now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t rs_sys_thread_time(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

const char *rs_sys_kernel(char buf[static 32])
{
        struct utsname name;

        snprintf(buf, 32, "%.31s", uname(&name) == 0 ? name.release : "?");
        return buf;
}

int rs_sys_processors(void)
{
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof set, &set) == 0)
                return CPU_COUNT(&set);
        long n = sysconf(_SC_NPROCESSORS_ONLN); /* more than fit a cpu_set_t */
        return n > 0 && n < INT_MAX ? (int)n : 1;
}

bool rs_sys_has_one_processor(void)
{
        cpu_set_t set;

        return sched_getaffinity(getpid(), sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
}

int rs_sys_signal_get(int sig, struct sigaction *old)
{
        return (int)CALL(RS_SYS_SIGACTION, sigaction(sig, NULL, old));
}

int rs_sys_signal_catch(int sig, void (*handler)(int), struct sigaction *old)
{
        struct sigaction ours = { .sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK };

        sigfillset(&ours.sa_mask);
        return (int)CALL(RS_SYS_SIGACTION, sigaction(sig, &ours, old));
}

int rs_sys_signal_interrupt(int sig, void (*handler)(int))
{
        struct sigaction ours = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

        sigemptyset(&ours.sa_mask);
        return (int)CALL(RS_SYS_SIGACTION, sigaction(sig, &ours, NULL));
}

void rs_sys_signal_discard(int sig)
{
        static const struct timespec now;
        sigset_t set;
        int saved = errno;

        sigemptyset(&set);
        sigaddset(&set, sig);
        while (sigtimedwait(&set, NULL, &now) == sig)
                ;
        errno = saved;
}

int rs_sys_signal_catch_fault(int sig, void (*handler)(int, siginfo_t *, void *), struct sigaction *old)
{
        struct sigaction ours = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK };

        sigemptyset(&ours.sa_mask);
        return (int)CALL(RS_SYS_SIGACTION, sigaction(sig, &ours, old));
}

/* SA_NOCLDWAIT, or SIG_IGN, for SIGCHLD: who relies on it never waits for its children. */
int rs_sys_signal_watch(int sig, void (*handler)(int, siginfo_t *, void *), struct sigaction *old)
{
        struct sigaction ours = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK }, now;

        int rc = rs_sys_signal_get(sig, &now);
        if (rc < 0)
                return rc;
        if (sig == SIGCHLD && (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT)))
                ours.sa_flags |= SA_NOCLDWAIT;
        sigfillset(&ours.sa_mask);
        return (int)CALL(RS_SYS_SIGACTION, sigaction(sig, &ours, old));
}

bool rs_sys_signal_is(int sig, void (*handler)(int, siginfo_t *, void *))
{
        struct sigaction now;

        return sigaction(sig, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler;
}

bool rs_sys_signal_block(int sig, bool block)
{
        sigset_t set, before;

        sigemptyset(&set);
        sigaddset(&set, sig);
        pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
        return sigismember(&before, sig);
}

size_t rs_sys_signal_stack_size(void)
{
        long kernel = sysconf(_SC_SIGSTKSZ); /* grows with the processor's vector registers */

        return (kernel > 0 ? (size_t)kernel : (size_t)MINSIGSTKSZ) + 16384;
}

int rs_sys_signal_stack(void *base, size_t size, stack_t *old)
{
        stack_t ours = { .ss_sp = base, .ss_size = size };

        return (int)CALL(RS_SYS_SIGACTION, sigaltstack(&ours, old));
}

void rs_sys_signal_stack_put(const stack_t *old)
{
        (void)sigaltstack(old, NULL);
}

void rs_sys_signal_put(int sig, const struct sigaction *old)
{
        (void)sigaction(sig, old, NULL);
}

void rs_sys_signal_default(int sig)
{
        struct sigaction standard = { .sa_handler = SIG_DFL };

        (void)sigaction(sig, &standard, NULL);
}

void rs_sys_raise(int sig)
{
        (void)raise(sig);
}

unsigned rs_sys_uid(void)
{
        return getuid();
}

unsigned rs_sys_euid(void)
{
        return geteuid();
}

int rs_sys_pid(void)
{
        return getpid();
}

void rs_sys_yield(unsigned n)
{
        if (n < YIELDS)
                (void)sched_yield();
        else
                (void)nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}

int rs_sys_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret_list,
                       int *ret_errno)
{
        int rc = rs_fault_syscall(RS_SYS_GETADDRINFO);

        if (rc < 0) {
                *ret_errno = -rc;
                return EAI_SYSTEM;
        }
        rc = getaddrinfo(host, port, hints, ret_list);
        *ret_errno = errno;
        return rc;
}

unsigned rs_sys_interface_index(const char *name)
{
        return if_nametoindex(name);
}

const char *rs_sys_interface_name(unsigned index, char buf[static 16])
{
        _Static_assert(IF_NAMESIZE <= 16, "room for the name of an interface");
        return if_indextoname(index, buf);
}
