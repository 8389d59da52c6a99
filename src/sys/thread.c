/* SPDX-License-Identifier: MIT */
/* Threads of the library, their locks and conditions: pthreads, with the clock that never jumps and without signals. A
 * lock that cannot be taken or given is a broken program: it ends. */

#include "sys/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "sys/sys.h"

static void must(int error)
{
        if (error)
                abort();
}

void rs_lock(struct rs_lock *l)
{
        must(pthread_mutex_lock(&l->mutex));
}

void rs_unlock(struct rs_lock *l)
{
        must(pthread_mutex_unlock(&l->mutex));
}

static struct timespec timespec_of(int64_t ns)
{
        return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
}

bool rs_cond_wait(struct rs_cond *c, struct rs_lock *l, int64_t deadline)
{
        struct timespec t = timespec_of(deadline);

        if (deadline == INT64_MAX) {
                must(pthread_cond_wait(&c->cond, &l->mutex));
                return true;
        }
        int error = pthread_cond_clockwait(&c->cond, &l->mutex, CLOCK_MONOTONIC, &t);
        must(error == ETIMEDOUT ? 0 : error);
        return error == 0;
}

void rs_cond_signal(struct rs_cond *c)
{
        must(pthread_cond_signal(&c->cond));
}

void rs_cond_broadcast(struct rs_cond *c)
{
        must(pthread_cond_broadcast(&c->cond));
}

enum { GATE_CLOSED, GATE_OPEN, GATE_AWAITED };

/* The wake-up is for an address: should the gate be gone by then, it is for nobody, or for one who looks again. */
void rs_gate_open(struct rs_gate *g)
{
        if (__atomic_exchange_n(&g->state, GATE_OPEN, __ATOMIC_ACQ_REL) == GATE_AWAITED)
                syscall(SYS_futex, &g->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool rs_gate_wait(struct rs_gate *g, int64_t deadline)
{
        struct timespec t = timespec_of(deadline);
        uint32_t state = GATE_CLOSED;
        long rc = 0;
        int saved = errno;

        if (deadline > 0)
                __atomic_compare_exchange_n(&g->state, &state, GATE_AWAITED, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
        while (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) != GATE_OPEN && deadline > 0 &&
               !(rc < 0 && errno == ETIMEDOUT))
                rc = syscall(SYS_futex, &g->state, FUTEX_WAIT_BITSET_PRIVATE, GATE_AWAITED,
                             deadline == INT64_MAX ? NULL : &t, NULL, FUTEX_BITSET_MATCH_ANY);
        errno = saved;
        return __atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == GATE_OPEN;
}

/* What this thread would block if it were not ours: what the program's thread does that started it, or the one that
 * started that. */
static _Thread_local struct {
        bool ours;
        sigset_t mask;
} outside;

struct start {
        void *(*fn)(void *arg);
        void *arg;
        sigset_t mask;
};

static void *started(void *arg)
{
        struct start s = *(struct start *)arg;

        resha_free(arg);
        outside.ours = true;
        outside.mask = s.mask;
        return s.fn(s.arg);
}

int rs_thread_start(struct rs_thread *ret_thread, const char *name, void *(*fn)(void *arg), void *arg)
{
        struct rs_thread t;
        sigset_t all, before;
        int rc = rs_fault_syscall(RS_SYS_THREAD);

        if (rc < 0)
                return rc;
        struct start *s = resha_malloc(sizeof *s);
        if (!s)
                return -ENOMEM;
        /* The new thread inherits the mask: there is no moment in which it could take a signal. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        *s = (struct start){ fn, arg, outside.ours ? outside.mask : before };
        int error = pthread_create(&t.id, NULL, started, s);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (error) {
                resha_free(s);
                return -error;
        }
        (void)pthread_setname_np(t.id, name); /* for ps and gdb only */
        *ret_thread = t;
        return 0;
}

void rs_thread_join(struct rs_thread t)
{
        must(pthread_join(t.id, NULL));
}

struct rs_thread rs_thread_self(void)
{
        return (struct rs_thread){ pthread_self() };
}

/* What the child goes on to exec would never see a signal. */
void rs_thread_forked(void)
{
        if (outside.ours)
                pthread_sigmask(SIG_SETMASK, &outside.mask, NULL);
}

void rs_thread_signal(struct rs_thread t, int sig)
{
        (void)pthread_kill(t.id, sig); /* -EAGAIN: as many are queued already as may be */
}

int rs_thread_at_fork(void (*before)(void), void (*after)(void), void (*child)(void))
{
        return -pthread_atfork(before, after, child);
}

void rs_thread_stack(const void **ret_bottom, size_t *ret_size)
{
        pthread_attr_t attr;
        void *bottom = NULL;

        *ret_size = 0;
        if (pthread_getattr_np(pthread_self(), &attr) == 0) {
                pthread_attr_getstack(&attr, &bottom, ret_size);
                pthread_attr_destroy(&attr);
        }
        *ret_bottom = bottom;
}

void rs_thread_detach_self(void)
{
        must(pthread_detach(pthread_self()));
}
