/* SPDX-License-Identifier: MIT */
#ifndef RESHA_STATS_H
#define RESHA_STATS_H

/* Counters of a loop, and all figures of the program as text for monitoring. They are always on: nothing is counted
 * at a switch, a few instructions at each look of the loop at the world. docs/monitoring.md has a server of
 * /metrics. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

enum { RESHA_LAG_BUCKETS = 24 };

/* The loop's, since it began, and as it is now. */
typedef struct resha_stats {
        resha_duration age;   /* of the loop */
        resha_duration slept; /* of that: nothing was to be done */
        uint64_t polls;       /* looks at the backend */
        uint64_t sleeps;      /* those that waited for something to come */
        uint64_t switches;    /* times that a task gave the thread away */
        uint64_t spawned;     /* tasks ever made, the main task too */
        uint64_t ended;       /* those that have ended */
        uint64_t wakes;       /* wake-ups by the world: operations that had to wait, and are done */
        uint64_t timers;      /* timers that fired */
        uint64_t calls;       /* system calls of the backend */
        uint64_t reports;     /* told to the sink, or counted in its place */
        uint64_t ignored;     /* waits that said -ECANCELED */
        /* now */
        uint64_t tasks;       /* alive */
        uint64_t ready;       /* of them: wait for their turn; counted to 10,000 */
        uint64_t jobs;        /* thread jobs and look-ups under way, and references to the loop */
        uint64_t stacks;      /* of tasks that have ended, kept for the next */
        uint64_t shown;       /* streams, listeners, files, pools and so on that are open */
        uint64_t descriptors; /* those of them that have a file descriptor */
        /* How long what became ready waited for the loop, one at each look: the time that tasks ran since the look
         * before, or by how much the first timer came late after a sleep. lag[i]: those of at most 2^(10+i) ns, which
         * is some 2^i us, that were longer than half of that; the last: all above. In an embedded run only timers. */
        uint64_t lag[RESHA_LAG_BUCKETS];
        resha_duration lag_sum, lag_most;
        uint64_t _reserved[16];
} resha_stats;

/* Those of the running loop. 0, or -EPERM outside of a loop. Looks at up to 10,000 tasks that are ready. [loop] */
RESHA_API int resha_stats_get(resha_stats *ret_stats);

/* All figures of the loops of this process, their pools, sessions and whatever is shown (shown.h), in the text format
 * 0.0.4 of Prometheus ("text/plain; version=0.0.4"): each loop's with label loop="1" and so on. Of other threads'
 * loops, what an object brings up to date only when it is asked (lengths of queues, threads that are busy) is as it was
 * at the call before. *ret_text ends with a NUL and is freed with resha_free(); ret_size, without it, may be NULL. 0,
 * -ENOMEM, -EPERM outside of a loop. [loop] */
RESHA_API int resha_stats_text(char **ret_text, size_t *ret_size);

/* The same, written to the descriptor: a file or a pipe, which it may wait for with the whole thread. 0, or negative of
 * the write, when a part may have been written (-EAGAIN of a descriptor that does not block), -ENOMEM, -EPERM.
 * [loop] */
RESHA_API int resha_stats_write(int fd);

RESHA_END_DECLS
#endif
