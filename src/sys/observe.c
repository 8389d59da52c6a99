/* SPDX-License-Identifier: MIT */
/* Looking at a thread from another one.
 *
 * No call of the other thread may end in another way because somebody looks. So it depends on where it is, which
 * /proc/self/task/TID/syscall tells:
 *
 *   - in a system call that no signal ends but with EINTR (sleep, poll, ...): no signal is sent. The stack is copied,
 *     and unwound as a copy: words in it that point into the stack are moved along, so that frame pointers lead on in
 *     the copy. The file gives stack pointer and place only; other registers are looked for: see guess_frame().
 *   - elsewhere: a real-time signal, whose handler hands its registers over and keeps the thread still until its stack
 *     was copied, a tenth of a second at most; a copy that took longer is thrown away. System calls begin again after
 *     it (SA_RESTART). Nothing but that is done in the handler, which may run at any point of the program.
 *
 * That it goes from computing to one of the calls of the first kind between the look at /proc and the signal is
 * possible: some microseconds in as many reports as there are. */

#include "sys/observe.h"

#include <errno.h>
#include <fcntl.h>
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

#include "sys/switch.h"
#include "sys/sys.h"

pid_t rs_observe_self(void)
{
        return (pid_t)syscall(SYS_gettid);
}

/* One line of a small file of /proc. */
static bool read_proc(pid_t tid, const char *file, char *buf, size_t size)
{
        char path[64];

        snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, file);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        ssize_t n = read(fd, buf, size - 1);
        close(fd);
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

bool rs_observe_runs(pid_t tid)
{
        char text[256];

        return read_proc(tid, "syscall", text, sizeof text) && strncmp(text, "running", 7) == 0;
}

#ifdef RS_HAVE_OBSERVE

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
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6:
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
        case SYS_pause:
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

/* ---- a copy of its stack ---- */

enum { SLACK = 64 * 1024 }; /* zeros above the copy: what leads out of it ends there */

struct copy {
        uintptr_t *words;
        size_t n;            /* of the stack */
        uintptr_t low, high; /* where it lies in truth */
        size_t size;         /* of the mapping */
};

static uintptr_t in_copy(const struct copy *c, uintptr_t address)
{
        return (uintptr_t)c->words + (address - c->low);
}

static bool copy_stack(struct copy *c, uintptr_t sp, const char *top)
{
        struct iovec from = { (void *)sp, (size_t)((uintptr_t)top - sp) }, to;

        *c = (struct copy){ .n = from.iov_len / sizeof(uintptr_t), .low = sp, .high = (uintptr_t)top };
        c->size = from.iov_len + SLACK;
        void *p = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return false;
        c->words = p;
        to = (struct iovec){ p, from.iov_len };
        /* A copy by the kernel: neither a fault nor a sanitizer can come in between. */
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)from.iov_len)
                return true;
        munmap(p, c->size);
        return false;
}

static void move_pointers(struct copy *c)
{
        for (size_t i = 0; i < c->n; i++)
                if (c->words[i] >= c->low && c->words[i] < c->high)
                        c->words[i] = in_copy(c, c->words[i]);
}

/* Whether the unwinder knows of code there. */
struct rs_eh_bases {
        void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *pc, struct rs_eh_bases *bases);

static bool is_code(uintptr_t return_address)
{
        struct rs_eh_bases bases;

        return return_address > 4096 && _Unwind_Find_FDE((char *)return_address - 1, &bases);
}

/* The frame pointer is not told. What has been called from a function that has one, and itself has none, leaves it in
 * the register: then it is the first word that leads up the stack and has a return address behind it. A wrong guess
 * costs frames of the report, as all that it can lead to lies in the copy. */
static uintptr_t guess_frame(const struct copy *c)
{
        uintptr_t end = (uintptr_t)(c->words + c->n);

        for (size_t i = 0; i + 1 < c->n; i++) {
                uintptr_t here = (uintptr_t)(c->words + i), next = c->words[i];
                if (next > here && next < end && is_code(c->words[i + 1]))
                        return here;
        }
        return end;
}

/* The stack in which sp lies; NULL: none of them. */
static const char *top_of(const struct rs_observe_stack *stacks, size_t n, uintptr_t sp)
{
        for (size_t i = 0; i < n; i++)
                if (sp >= (uintptr_t)stacks[i].bottom && sp < (uintptr_t)stacks[i].top)
                        return stacks[i].top;
        return NULL;
}

/* Visits the copy, which is of use to nobody after that. */
static size_t visit_copy(struct copy *c, const struct rs_registers *r, size_t (*visit)(void *arg), void *arg)
{
        move_pointers(c);
        size_t result = rs_switch_observe(r, visit, arg);
        munmap(c->words, c->size);
        return result;
}

static size_t visit_asleep(const struct place *p, const char *top, pid_t tid, size_t (*visit)(void *arg), void *arg)
{
        struct copy c;
        struct place again;

        if (!top || !copy_stack(&c, p->sp, top))
                return 0;
        if (!find_place(tid, &again) || again.sp != p->sp || again.pc != p->pc) {
                munmap(c.words, c.size);
                return 0;
        }
        uintptr_t end = (uintptr_t)(c.words + c.n);
        return visit_copy(&c,
                          &(struct rs_registers){ .pc = p->pc,
                                                  .sp = (uintptr_t)c.words,
                                                  .fp = guess_frame(&c),
                                                  .others = { end, end, end, end, end } },
                          visit, arg);
}

/* ---- keeping it still ---- */

enum { IDLE, ASKED, HELD };
enum { HOLD_MS = 100, ANSWER_MS = 50 };

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
        const greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
        int saved = errno;

        (void)sig, (void)info;
        if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == ASKED && asked == rs_observe_self()) {
                held = (struct rs_registers){
                        .pc = (uintptr_t)g[REG_RIP],
                        .sp = (uintptr_t)g[REG_RSP],
                        .fp = (uintptr_t)g[REG_RBP],
                        .others = { (uintptr_t)g[REG_RBX], (uintptr_t)g[REG_R12], (uintptr_t)g[REG_R13],
                                    (uintptr_t)g[REG_R14], (uintptr_t)g[REG_R15] },
                };
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

static uintptr_t moved(const struct copy *c, uintptr_t word)
{
        return word >= c->low && word < c->high ? in_copy(c, word) : word;
}

static size_t visit_held(pid_t tid, const struct rs_observe_stack *stacks, size_t n, size_t (*visit)(void *arg),
                         void *arg)
{
        struct rs_registers r;
        struct copy c;

        if (signal_number <= 0)
                return 0;
        asked = tid;
        __atomic_store_n(&state, ASKED, __ATOMIC_RELEASE);
        if (syscall(SYS_tgkill, getpid(), tid, signal_number) == 0)
                await(ASKED, ms_from_now(ANSWER_MS));
        if (become(ASKED, IDLE))
                return 0;
        r = held;
        const char *top = top_of(stacks, n, r.sp);
        bool copied = top && copy_stack(&c, r.sp, top);
        bool still = become(HELD, IDLE); /* from here on it goes on; if not, it has gone on before */
        if (copied && !still)
                munmap(c.words, c.size);
        if (!copied || !still)
                return 0;
        r.sp = (uintptr_t)c.words;
        r.fp = moved(&c, r.fp);
        for (size_t i = 0; i < sizeof r.others / sizeof r.others[0]; i++)
                r.others[i] = moved(&c, r.others[i]);
        return visit_copy(&c, &r, visit, arg);
}

/* ---- all ---- */

void rs_observe_allow(void)
{
        sigset_t set;

        if (!install())
                return;
        sigemptyset(&set);
        sigaddset(&set, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

size_t rs_observe_visit(pid_t tid, const struct rs_observe_stack *stacks, size_t n, size_t (*visit)(void *arg),
                        void *arg)
{
        struct place p;

        if (!find_place(tid, &p))
                return 0;
        if (p.call == LONG_MAX || (p.call >= 0 && !never_restarts(p.call)))
                return visit_held(tid, stacks, n, visit, arg);
        return visit_asleep(&p, top_of(stacks, n, p.sp), tid, visit, arg);
}

#else

void rs_observe_allow(void)
{
}

size_t rs_observe_visit(pid_t tid, const struct rs_observe_stack *stacks, size_t n, size_t (*visit)(void *arg),
                        void *arg)
{
        (void)tid, (void)stacks, (void)n, (void)visit, (void)arg;
        return 0;
}

#endif
