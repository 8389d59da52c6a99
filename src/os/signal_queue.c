/* SPDX-License-Identifier: MIT */
/* A ring that any thread's signal handler writes and one loop reads.
 *
 * A writer takes the next cell by moving `tail`, fills it, and then gives it the turn that the reader waits for; so a
 * handler waits for nobody, also not for one on another thread that is in the middle of a cell. The reader meets such a
 * cell as the end of the queue, and is woken again by that handler.
 *
 * There is always a cell: of each standard signal there is at most one entry, by its bit in `queued`, and further ones
 * are counted; real-time ones have RESHA_SIGNAL_QUEUE places, and what finds none is counted as lost.
 *
 * Invariants
 *  1. A cell is free again before the bit, or the place, that allows another entry is given back.
 *  2. A standard signal is counted before its bit is set; the reader clears the bit before it takes the count. So one
 *     that comes meanwhile is in this entry's count, or has an entry of its own, or both: then that one's count is 0,
 *     and the reader passes over it. */

#include "os/signal_queue.h"

#include <signal.h>
#include <stdatomic.h>

#include <resha/alloc.h>

enum { STANDARD = 31 };

struct cell {
        atomic_uint_fast64_t turn; /* its position: to be written; position + 1: to be read */
        resha_signal_info info;
};

struct rs_signal_queue {
        size_t size;
        uint64_t head; /* the reader's */
        atomic_uint_fast64_t tail;
        atomic_uint_fast64_t queued; /* bit sig - 1 of standard ones: there is an entry */
        atomic_uint places;          /* taken by real-time ones */
        atomic_uint_fast64_t lost;
        atomic_uint_fast64_t count[STANDARD + 1];
        struct cell cells[];
};

struct rs_signal_queue *rs_signal_queue_new(bool realtime)
{
        size_t size = STANDARD + 1 + (realtime ? RESHA_SIGNAL_QUEUE : 0);
        struct rs_signal_queue *q = resha_calloc(1, sizeof *q + size * sizeof q->cells[0]);

        if (!q)
                return NULL;
        q->size = size;
        for (size_t i = 0; i < size; i++)
                atomic_init(&q->cells[i].turn, i);
        return q;
}

bool rs_signal_realtime(int sig)
{
        return sig > STANDARD;
}

static void append(struct rs_signal_queue *q, const resha_signal_info *info)
{
        uint_fast64_t at = atomic_fetch_add(&q->tail, 1);
        struct cell *c = &q->cells[at % q->size];
        c->info = *info;
        atomic_store(&c->turn, at + 1);
}

bool rs_signal_queue_put(struct rs_signal_queue *q, const resha_signal_info *info)
{
        bool entry;

        if (rs_signal_realtime(info->signal)) {
                entry = atomic_fetch_add(&q->places, 1) < RESHA_SIGNAL_QUEUE;
                if (!entry) {
                        atomic_fetch_sub(&q->places, 1);
                        atomic_fetch_add(&q->lost, 1);
                }
        } else {
                uint64_t bit = UINT64_C(1) << (info->signal - 1);
                atomic_fetch_add(&q->count[info->signal], 1);
                entry = !(atomic_fetch_or(&q->queued, bit) & bit);
        }
        if (entry)
                append(q, info);
        return entry;
}

/* The next entry, with its cell given back. */
static bool pop(struct rs_signal_queue *q, resha_signal_info *ret_info)
{
        struct cell *c = &q->cells[q->head % q->size];

        if (atomic_load(&c->turn) != q->head + 1)
                return false;
        *ret_info = c->info;
        atomic_store(&c->turn, q->head + q->size);
        q->head++;
        return true;
}

bool rs_signal_queue_take(struct rs_signal_queue *q, resha_signal_info *ret_info)
{
        do {
                if (!pop(q, ret_info))
                        return false;
                if (rs_signal_realtime(ret_info->signal)) {
                        atomic_fetch_sub(&q->places, 1);
                        ret_info->count = 1;
                } else {
                        atomic_fetch_and(&q->queued, ~(UINT64_C(1) << (ret_info->signal - 1)));
                        ret_info->count = atomic_exchange(&q->count[ret_info->signal], 0);
                }
        } while (ret_info->count == 0);
        ret_info->lost = atomic_exchange(&q->lost, 0);
        return true;
}
