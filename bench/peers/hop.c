/* SPDX-License-Identifier: MIT */
/* The peer of bench/hop.c: a bare loop on epoll that sends an empty job to its thread by a futex, and is woken by an
 * eventfd. One in flight.
 *
 *     peer-hop [JOBS] */

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/bench.h"

enum { NONE, JOB, END };

struct bare {
        _Atomic uint32_t job;
        int epoll, event;
};

static void sleep_while(_Atomic uint32_t *word, uint32_t value)
{
        while (atomic_load(word) == value)
                syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void send(_Atomic uint32_t *word, uint32_t value)
{
        atomic_store(word, value);
        syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *thread(void *arg)
{
        struct bare *b = arg;
        const uint64_t one = 1;

        for (;;) {
                sleep_while(&b->job, NONE);
                if (atomic_load(&b->job) == END)
                        return NULL;
                atomic_store(&b->job, NONE);
                if (write(b->event, &one, sizeof one) != sizeof one)
                        return NULL;
        }
}

static int hop(void *arg, uint64_t n)
{
        struct bare *b = arg;
        struct epoll_event e;
        uint64_t count;

        for (uint64_t i = 0; i < n; i++) {
                send(&b->job, JOB);
                if (epoll_wait(b->epoll, &e, 1, -1) != 1 || read(b->event, &count, sizeof count) != sizeof count)
                        return -1;
        }
        return 0;
}

int main(int argc, char **argv)
{
        struct bare b = { .epoll = epoll_create1(0), .event = eventfd(0, EFD_NONBLOCK) };
        struct epoll_event e = { .events = EPOLLIN };
        pthread_t t;

        if (epoll_ctl(b.epoll, EPOLL_CTL_ADD, b.event, &e) < 0 || pthread_create(&t, NULL, thread, &b) != 0)
                return 1;
        int rc = bench_measure(hop, &b, bench_argument(argc, argv, 1, 64000));
        send(&b.job, END);
        pthread_join(t, NULL);
        return rc < 0;
}
