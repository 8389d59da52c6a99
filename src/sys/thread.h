/* SPDX-License-Identifier: MIT */
#ifndef RS_THREAD_H
#define RS_THREAD_H

/* Threads, and what they meet at. A thread of ours blocks all signals: those are for the program's own threads. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_lock {
        pthread_mutex_t mutex;
};
#define RS_LOCK_INIT \
        { \
                PTHREAD_MUTEX_INITIALIZER \
        }

struct rs_cond {
        pthread_cond_t cond;
};
#define RS_COND_INIT \
        { \
                PTHREAD_COND_INITIALIZER \
        }

/* Opened once, by one thread, and waited for by one other; all zero is closed. Unlike a condition it needs no lock: who
 * is woken does not meet the waker there, and the gate may be gone as soon as it is open. */
struct rs_gate {
        uint32_t state;
};

struct rs_thread {
        pthread_t id;
};

void rs_lock(struct rs_lock *l);
void rs_unlock(struct rs_lock *l);

/* Waits, with the lock given up meanwhile; may return for no reason. False: `deadline` (CLOCK_MONOTONIC; INT64_MAX:
 * none) has passed. */
bool rs_cond_wait(struct rs_cond *c, struct rs_lock *l, int64_t deadline);
void rs_cond_signal(struct rs_cond *c);
void rs_cond_broadcast(struct rs_cond *c);

void rs_gate_open(struct rs_gate *g);
/* False: `deadline` has passed (as above; one in the past: a look). What was written before it was opened is seen. */
bool rs_gate_wait(struct rs_gate *g, int64_t deadline);

/* 0, -EAGAIN, -ENOMEM. `name`: at most 15 bytes. */
int rs_thread_start(struct rs_thread *ret_thread, const char *name, void *(*fn)(void *arg), void *arg);
void rs_thread_join(struct rs_thread t);
struct rs_thread rs_thread_self(void);
void rs_thread_signal(struct rs_thread t, int sig); /* it lives */
void rs_thread_detach_self(void);                   /* nobody will join it */

/* From now on before() and after() run around each fork of the process, on the thread that forks, and child() in each
 * child, on its only thread. 0, -ENOMEM. */
int rs_thread_at_fork(void (*before)(void), void (*after)(void), void (*child)(void));

/* In a forked child: a thread of ours has the signal mask of the program's. */
void rs_thread_forked(void);

/* Where the running thread's own stack lies; size 0 if that is not known. */
void rs_thread_stack(const void **ret_bottom, size_t *ret_size);

#endif
