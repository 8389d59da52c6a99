/* SPDX-License-Identifier: MIT */
/* Looking at a thread from another one.
 *
 * No call of the other thread may end in another way because somebody looks. So it depends on where it is, which
 * /proc/self/task/TID/syscall tells:
 *
 *   - in a system call that no signal ends but with EINTR (sleep, poll, ...): no signal is sent. The stack is copied;
 *     if the thread is still there then, the copy is unwound. The file gives stack pointer and place only: unwind.c
 *     knows how to go on from that.
 *   - elsewhere: a real-time signal, whose handler hands its registers over and keeps the thread still until its stack
 *     was copied, HOLD_MS at most; a copy that took longer is thrown away. System calls begin again after
 *     it (SA_RESTART). Nothing but that is done in the handler, which may run at any point of the program.
 *
 * That it goes from computing to one of the calls of the first kind between the look at /proc and the signal is
 * possible: some microseconds in as many reports as there are. */

#include "sys/observe.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "sys/spare.h"
#include "sys/sys.h"
#include "sys/thread.h"
#include "sys/unwind.h"

bool rs_observe_read(void *to, const void *from, size_t size)
{
        struct iovec theirs = { (void *)(uintptr_t)from, size }, ours = { to, size };

        return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

bool rs_observe_text(const char *from, char *buf, size_t size)
{
        struct iovec there = { (void *)(uintptr_t)from, size - 1 }, here = { buf, size - 1 };

        memset(buf, 0, size);
        return process_vm_readv(getpid(), &here, 1, &there, 1, 0) > 0;
}

pid_t rs_observe_self(void)
{
        return (pid_t)syscall(SYS_gettid);
}

/* One line of a small file of /proc. */
static bool read_proc(pid_t tid, const char *file, char *buf, size_t size)
{
        char path[64];

        snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, file);
        int fd = rs_spare_open(path);
        if (fd < 0)
                return false;
        ssize_t n = read(fd, buf, size - 1);
        rs_spare_close(fd);
        buf[n > 0 ? n : 0] = '\0';
        return n > 0;
}

void rs_observe_times(pid_t tid, struct rs_observe_times *t)
{
        char text[128], *end;

        *t = (struct rs_observe_times){ 0 };
        if (!read_proc(tid, "schedstat", text, sizeof text))
                return;
        t->ran = strtoll(text, &end, 10);
        t->waited = strtoll(end, NULL, 10);
}

/* From `stat`, which everybody may read: `syscall` says the same, but not of a process that may not be dumped. */
bool rs_observe_runs(pid_t tid)
{
        char text[256];
        const char *name_end = read_proc(tid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;

        return name_end && strncmp(name_end, ") R", 3) == 0;
}

size_t rs_observe_untouched(const char *bottom, size_t size)
{
        unsigned char touched[256];
        size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page;

        for (size_t done = 0; done < pages; done += sizeof touched) {
                size_t n = pages - done < sizeof touched ? pages - done : sizeof touched;
                if (mincore((void *)(uintptr_t)(bottom + done * page), n * page, touched) < 0)
                        return 0;
                const unsigned char *first = memchr(touched, 1, n);
                if (first)
                        return (done + (size_t)(first - touched)) * page;
        }
        return size;
}

char *rs_observe_drop(char *bottom, char *end)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        size_t whole = end > bottom ? (size_t)(end - bottom) & ~(page - 1) : 0;

        if (whole && madvise(bottom, whole, MADV_DONTNEED) < 0)
                return bottom;
        return bottom + whole;
}

#ifdef RS_HAVE_UNWIND

/* ---- where it is ---- */

struct place {
        long call; /* -1: in none, but stopped; LONG_MAX: it runs */
        uintptr_t sp, pc;
};

static bool find_place(pid_t tid, struct place *p)
{
        char text[256], *at = text;
        uintptr_t words[8] = { 0 };
        unsigned n = 0;

        if (!read_proc(tid, "syscall", text, sizeof text))
                return false;
        if (strncmp(text, "running", 7) == 0) {
                *p = (struct place){ .call = LONG_MAX };
                return true;
        }
        p->call = strtol(at, &at, 10);
        while (n < 8 && *at == ' ')
                words[n++] = strtoull(at, &at, 16);
        if (n < 2)
                return false;
        p->sp = words[n - 2];
        p->pc = words[n - 1];
        return true;
}

/* Calls that end with EINTR whenever a signal handler has run, SA_RESTART or not: signal(7). And io_uring_enter(),
 * which is ours and goes on, but there a loop is asleep. */
static bool never_restarts(long call)
{
        switch (call) {
#ifdef __x86_64__ /* newer architectures have the general forms only */
        case SYS_poll:
        case SYS_select:
        case SYS_epoll_wait:
        case SYS_pause:
#endif
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
        case SYS_ppoll:
        case SYS_pselect6:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
        case SYS_rt_sigsuspend:
        case SYS_rt_sigtimedwait:
        case SYS_restart_syscall: /* one of these, again */
        case SYS_msgrcv:
        case SYS_msgsnd:
        case SYS_semop:
        case SYS_semtimedop:
        case SYS_io_getevents:
        case SYS_io_pgetevents:
        case SYS_io_uring_enter:
        /* Sockets may have a time of their own (SO_RCVTIMEO), and then do the same. */
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_recvmmsg:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendmmsg:
        case SYS_accept:
        case SYS_accept4:
        case SYS_connect: return true;
        default: return false;
        }
}

/* ---- copies of its stacks ---- */

enum { OTHER_MAX = 1024 * 1024 }; /* of a stack that it is not on itself */

static bool copy(struct rs_memory *m, uintptr_t low, uintptr_t high)
{
        void *p = mmap(NULL, high - low, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                return false;
        if (!rs_observe_read(p, (const void *)low, high - low)) {
                munmap(p, high - low);
                return false;
        }
        m->parts[m->n++] = (struct rs_memory_part){ low, high, p };
        return true;
}

static void copies_free(struct rs_memory *m)
{
        for (size_t i = 0; i < m->n; i++)
                munmap((void *)(uintptr_t)m->parts[i].words, m->parts[i].high - m->parts[i].low);
        m->n = 0;
}

static bool lies_on(const struct rs_observe_stack *s, uintptr_t sp)
{
        return sp >= (uintptr_t)s->bottom && sp < (uintptr_t)s->top;
}

/* The stack in which sp lies, from there on. Frames of the thread's own stack may go on in the task's: what lies there
 * is the upper part of it. */
static bool copy_stacks(struct rs_memory *m, const struct rs_observe_stacks *s, uintptr_t sp)
{
        const struct rs_observe_stack *on = lies_on(&s->own, sp) ? &s->own : lies_on(&s->task, sp) ? &s->task : NULL;
        size_t size = (size_t)(s->task.top - s->task.bottom);

        *m = (struct rs_memory){ .n = 0 };
        if (!on || !copy(m, sp & ~(uintptr_t)7, (uintptr_t)on->top))
                return false;
        if (on == &s->own && size > 0) /* without it a part is told */
                (void)copy(m, (uintptr_t)s->task.top - (size < OTHER_MAX ? size : OTHER_MAX), (uintptr_t)s->task.top);
        return true;
}

static size_t look_asleep(pid_t tid, const struct place *p, const struct rs_observe_stacks *s, const void **ret,
                          size_t max)
{
        struct rs_registers c = { .pc = p->pc, .known = UINT32_C(1) << RS_DWARF_SP };
        struct rs_memory m;
        struct place again;

        c.registers[RS_DWARF_SP] = p->sp;
        if (!copy_stacks(&m, s, p->sp))
                return 0;
        bool still = find_place(tid, &again) && again.call == p->call && again.sp == p->sp && again.pc == p->pc;
        size_t depth = still ? rs_unwind(&c, &m, s->end, ret, max) : 0;
        copies_free(&m);
        return depth;
}

/* ---- keeping it still ---- */

enum { IDLE, ASKED, HELD };
enum { HOLD_MS = 300, ANSWER_MS = 300 };

static uint32_t state; /* one look at a time */
static pid_t asked;
static struct rs_registers held;
static int signal_number;

static int64_t ms_from_now(int ms)
{
        return rs_sys_now() + (int64_t)ms * 1000000;
}

/* Until the state is another one, or the time is over. */
static void await(uint32_t old, int64_t deadline)
{
        struct timespec t = { .tv_sec = (time_t)(deadline / 1000000000), .tv_nsec = (long)(deadline % 1000000000) };
        long rc = 0;

        while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == old && !(rc < 0 && errno == ETIMEDOUT))
                rc = syscall(SYS_futex, &state, FUTEX_WAIT_BITSET_PRIVATE, old, &t, NULL, FUTEX_BITSET_MATCH_ANY);
}

static bool become(uint32_t from, uint32_t to)
{
        bool ok = __atomic_compare_exchange_n(&state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);

        if (ok)
                syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return ok;
}

static void hold(int sig, siginfo_t *info, void *context)
{
        int saved = errno;

        (void)sig, (void)info;
        if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == ASKED && asked == rs_observe_self()) {
                rs_registers_take(&held, context);
                if (become(ASKED, HELD)) {
                        await(HELD, ms_from_now(HOLD_MS));
                        (void)become(HELD, IDLE);
                }
        }
        errno = saved;
}

/* Once for the process, and for good: one that is still on its way must not find the default, which ends the
 * process. */
static bool install(void)
{
        int sig = SIGRTMAX - 1;
        struct sigaction before, ours = { .sa_sigaction = hold, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };

        sigfillset(&ours.sa_mask);
        if (signal_number)
                return signal_number > 0;
        bool ok = rs_sys_signal_get(sig, &before) == 0 && before.sa_handler == SIG_DFL &&
                  sigaction(sig, &ours, NULL) == 0;
        signal_number = ok ? sig : -1;
        return ok;
}

/* Whether the signal would reach it, and be ours there: the program may block it, or take it, at any time. One that it
 * blocks would stay, and end a call once it does not. */
static bool takes_signal(pid_t tid)
{
        char text[2048];
        struct sigaction now;

        if (signal_number <= 0 || rs_sys_signal_get(signal_number, &now) < 0 || now.sa_sigaction != hold ||
            !read_proc(tid, "status", text, sizeof text))
                return false;
        const char *blocked = strstr(text, "\nSigBlk:");
        return blocked && !(strtoull(blocked + 8, NULL, 16) >> (signal_number - 1) & 1);
}

static size_t look_held(pid_t tid, const struct rs_observe_stacks *s, const void **ret, size_t max)
{
        struct rs_registers c;
        struct rs_memory m;

        if (!takes_signal(tid))
                return 0;
        asked = tid;
        __atomic_store_n(&state, ASKED, __ATOMIC_RELEASE);
        if (syscall(SYS_tgkill, getpid(), tid, signal_number) == 0)
                await(ASKED, ms_from_now(ANSWER_MS));
        if (become(ASKED, IDLE))
                return 0;
        c = held;
        bool copied = copy_stacks(&m, s, c.registers[RS_DWARF_SP]);
        bool still = become(HELD, IDLE); /* from here on it goes on; if not, it has gone on before */
        size_t depth = copied && still ? rs_unwind(&c, &m, s->end, ret, max) : 0;
        copies_free(&m);
        return depth;
}

/* ---- all ---- */

static struct rs_lock looks = RS_LOCK_INIT;

void rs_observe_allow(void)
{
        sigset_t set;

        rs_lock(&looks);
        bool installed = install();
        rs_unlock(&looks);
        if (!installed)
                return;
        sigemptyset(&set);
        sigaddset(&set, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void rs_observe_forked(void)
{
        looks = (struct rs_lock)RS_LOCK_INIT;
        state = IDLE;
}

size_t rs_observe_stack(pid_t tid, const struct rs_observe_stacks *s, const void **ret_addresses, size_t max)
{
        struct place p;
        size_t depth;

        if (!find_place(tid, &p))
                return 0;
        rs_lock(&looks);
        if (p.call == LONG_MAX || (p.call >= 0 && !never_restarts(p.call)))
                depth = look_held(tid, s, ret_addresses, max);
        else
                depth = look_asleep(tid, &p, s, ret_addresses, max);
        rs_unlock(&looks);
        return depth;
}

#else

void rs_observe_allow(void)
{
}

void rs_observe_forked(void)
{
}

size_t rs_observe_stack(pid_t tid, const struct rs_observe_stacks *s, const void **ret_addresses, size_t max)
{
        (void)tid, (void)s, (void)ret_addresses, (void)max;
        return 0;
}

#endif
