/* SPDX-License-Identifier: MIT */
#ifndef RESHA_QUEUE_H
#define RESHA_QUEUE_H

/* A queue between tasks of one loop. Items are copied in and out; an item goes directly to the first waiting getter, a
 * place to the first waiting putter, so nobody overtakes, and no item is lost or doubled by a cancel. How many items it
 * holds must be stated; without a bound only by name, RESHA_UNBOUNDED.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     struct job { int urgency; const char *what; };
 *
 *     static int by_urgency(const void *a, const void *b)
 *     {
 *             return ((const struct job *)b)->urgency - ((const struct job *)a)->urgency;
 *     }
 *
 *     static int worker(void *arg)
 *     {
 *             resha_queue *jobs = arg;
 *             struct job j;
 *             int rc;
 *
 *             while ((rc = resha_queue_get(jobs, &j)) == 1) { // 0: shut down, and nothing is left
 *                     puts(j.what);
 *                     resha_queue_task_done(jobs);
 *             }
 *             return rc;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             resha_queue *jobs RESHA_CLEANUP(resha_queue_freep) = NULL;
 *             resha_queue_opts opts = { .order = RESHA_PRIORITY, .compare = by_urgency };
 *             int rc = resha_queue_new_opt(sizeof(struct job), 100, &opts, &jobs);
 *
 *             (void)arg;
 *             if (rc < 0)
 *                     return rc;
 *             rc = resha_queue_put(jobs, &(struct job){ 1, "sweep the floor" });
 *             if (rc == 1)
 *                     rc = resha_queue_put(jobs, &(struct job){ 9, "put out the fire" });
 *             RESHA_GROUP(workers);
 *             resha_group_begin(&workers, NULL);
 *             resha_spawn(&workers, worker, jobs);
 *             if (rc == 1)
 *                     rc = resha_queue_join(jobs); // all that was put is done
 *             resha_queue_shutdown(jobs);
 *             return resha_group_end(&workers, rc);
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
 */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_queue resha_queue;

/* As a capacity: grows as needed, so that nothing holds back those who put; its memory goes back when it is freed. */
#define RESHA_UNBOUNDED SIZE_MAX

enum resha_queue_order {
        RESHA_FIFO = 0,
        RESHA_LIFO,     /* the latest first */
        RESHA_PRIORITY, /* the smallest first, by `compare`; equal ones in the order in which they were put */
};

typedef struct resha_queue_opts {
        enum resha_queue_order order; /* [RESHA_FIFO] */
        /* RESHA_PRIORITY: < 0 if item a comes before item b, > 0 if after, 0 if equal; must not suspend. Only then */
        int (*compare)(const void *a, const void *b);
        /* releases items that nobody took; the queue is shut down by then, and must not be freed from here [NULL: such
         * items are reported as dropped] */
        resha_drop_fn *drop;
        uint64_t _reserved[4];
} resha_queue_opts;

/* A queue in order of put. item_size: bytes, from 1 to 64 KiB. capacity: items; 0: a rendezvous, where a put is done
 * when a getter has taken its item; RESHA_UNBOUNDED. drop: releases items that are left when the queue is freed or shut
 * down at once; without it (NULL) such a loss is reported (RESHA_REPORT_DROPPED). 0, -EINVAL, -ENOMEM. [loop] */
RESHA_API int resha_queue_new(size_t item_size, size_t capacity, resha_drop_fn *drop, resha_queue **ret_queue);

/* The same with options. A rendezvous has no order but RESHA_FIFO. 0, -EINVAL, -ENOMEM. [loop] */
RESHA_API int resha_queue_new_opt(size_t item_size, size_t capacity, const resha_queue_opts *opts,
                                  resha_queue **ret_queue);

/* Drops what is left and releases it; NULL is fine. Tasks that still wait for it abort the program: let their group end
 * first. [loop] */
RESHA_API void resha_queue_free(resha_queue *q);
RESHA_API void resha_queue_freep(resha_queue **q);

/* Puts a copy of *item; waits while the queue is full. 1, 0 if shut down, -ECANCELED (not put); without a bound -ENOMEM
 * (not put). [task] cancellation point */
RESHA_API RESHA_MUST int resha_queue_put(resha_queue *q, const void *item);

/* Takes the next item; waits while the queue is empty. 1, 0 if shut down and empty, -ECANCELED (none taken). [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_queue_get(resha_queue *q, void *ret_item);

/* The same without waiting: 1, 0, or -EAGAIN; put without a bound -ENOMEM. Of a rendezvous: 1 if a task waits for it
 * at the other side. [loop] */
RESHA_API int resha_queue_try_put(resha_queue *q, const void *item);
RESHA_API int resha_queue_try_get(resha_queue *q, void *ret_item);

/* One item that was taken is done with: for those who use resha_queue_join(). 0, or -EINVAL if no item that was taken
 * is unfinished. [loop] */
RESHA_API int resha_queue_task_done(resha_queue *q);

/* Waits until each item that was put has been told done (or was dropped): at once if that is so. 0 or -ECANCELED.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_queue_join(resha_queue *q);

/* No more puts: waiting putters get 0; getters take what is left, then get 0. Idempotent. [loop] */
RESHA_API void resha_queue_shutdown(resha_queue *q);

/* The same at once: what is inside is dropped, and is not unfinished any more. Items that were taken and are being
 * worked on still are: who joins waits for them. Idempotent. [loop] */
RESHA_API void resha_queue_shutdown_now(resha_queue *q);

/* Items inside. [loop] */
RESHA_API size_t resha_queue_count(const resha_queue *q);

/* Items that were put and neither told done nor dropped: those inside, and those taken. [loop] */
RESHA_API size_t resha_queue_unfinished(const resha_queue *q);

RESHA_END_DECLS
#endif
