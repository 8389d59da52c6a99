/* SPDX-License-Identifier: MIT */
#ifndef RS_SIGNALS_H
#define RS_SIGNALS_H

/* The signal dispatcher of the process: for signal_wait.c, src/run and src/test. On the loop's thread but for what is
 * said. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"
#include "os/signal_queue.h"

/* Who asks for signals, in one of three ways: `queue`: all of them, one after the other; `interrupt`: a function of the
 * run, outside of tasks; neither: as flags, each of which wakes everybody. Zero but for these, before it subscribes. */
struct rs_subscriber {
        _Atomic(struct rs_subscriber *) next;
        struct rs_loop *loop; /* NULL: not subscribed */
        struct rs_inbox *inbox;
        struct rs_signal_queue *queue;
        void (*interrupt)(struct rs_loop *l, int sig);
        atomic_uint_fast64_t wanted;  /* bit sig - 1 */
        atomic_uint_fast64_t pending; /* came, and is not taken yet; not with a queue */
        uint64_t unblocked;           /* what the loop's thread blocked before */
        struct rs_list waiters;       /* of struct rs_signal_waiter, in order of their coming */
};

struct rs_signal_waiter {
        struct rs_wait wait; /* result: 1, `info` is valid (queue); the signal (flags) */
        struct rs_subscriber *subscriber;
        uint64_t mask; /* flags: of those that are waited for */
        resha_signal_info info;
};

static inline uint64_t rs_signal_bit(int sig)
{
        return UINT64_C(1) << (sig - 1);
}

static inline int rs_signal_lowest(uint64_t bits)
{
        return __builtin_ctzll(bits) + 1;
}

/* s gets the signals of the mask, besides those that it gets already. 0; -EBUSY: SIGINT is the run's; or why one of
 * them cannot be caught. Then it has some of them; leave() ends that. */
int rs_signals_join(struct rs_loop *l, struct rs_subscriber *s, uint64_t mask);
void rs_signals_leave(struct rs_subscriber *s); /* none; it may be freed */

/* The loop's own subscriber for flags; NULL: it has none. */
struct rs_subscriber *rs_signals_flags(struct rs_loop *l);

/* Ctrl-C, and SIGTERM if `term`: fn(l, sig) runs on the loop, outside of tasks; the second SIGINT ends the process at
 * once. Nothing is done where such a signal is ignored or has a handler of the program's own. 0 or negative; `s` is the
 * run's and lives until rs_signals_end(). */
int rs_signals_interrupts(struct rs_loop *l, struct rs_subscriber *s, void (*fn)(struct rs_loop *l, int sig),
                          bool term);

/* A signal of the simulated world. False: nobody on this loop asks for it. */
bool rs_signals_simulate(struct rs_loop *l, const resha_signal_info *info);

/* The end of the run: the loop gets no more signals, and what no other loop wants goes back to its former handling. */
void rs_signals_end(struct rs_loop *l);

/* In a forked child: no loop of the parent gets a signal, and all signals are handled as before its runs. */
void rs_signals_forked(void);

#endif
