/* SPDX-License-Identifier: MIT */
#ifndef RESHA_BARRIER_H
#define RESHA_BARRIER_H

/* A barrier: tasks of one loop wait there for one another, and go on together once all have come. It can be used again
 * at once, round after round.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     struct walk { resha_barrier barrier; };
 *
 *     static int walker(void *arg)
 *     {
 *             struct walk *w = arg;
 *
 *             for (int day = 1; day <= 2; day++) {
 *                     int rc = resha_sleep(RESHA_S(3600)); // where it may be cancelled, or fail
 *                     if (rc >= 0)
 *                             rc = resha_barrier_wait(&w->barrier);
 *                     if (rc < 0) {
 *                             resha_barrier_abort(&w->barrier); // or the others would wait for ever
 *                             return rc;
 *                     }
 *                     if (rc == 0) // one of them, whichever
 *                             printf("day %d: all are here\n", day);
 *             }
 *             return 0;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             struct walk w;
 *             int rc = resha_barrier_init(&w.barrier, 3);
 *             RESHA_GROUP(g);
 *
 *             (void)arg;
 *             resha_group_begin(&g, NULL);
 *             for (int i = 0; i < 3; i++)
 *                     resha_spawn(&g, walker, &w);
 *             return resha_group_end(&g, rc);
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
 */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_barrier {
        uint64_t _[6]; /* private; nothing to release */
} resha_barrier;

/* For `parties` tasks, at least 1. 0 or -EINVAL. [any-thread] */
RESHA_API int resha_barrier_init(resha_barrier *b, unsigned parties);

/* Waits until all parties have come. The index of this task in their order of arrival, 0 to parties - 1, each once: one
 * of them may do what is to be done once. RESHA_EBROKEN if it was aborted, or is aborted or reset meanwhile.
 * -ECANCELED: this task is not counted, the others wait on. Once the last has come the wait is done, also for those who
 * are cancelled before they run. -EINVAL without resha_barrier_init(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_barrier_wait(resha_barrier *b);

/* Those who wait, and all who come until it is reset, get RESHA_EBROKEN. Idempotent. [loop] */
RESHA_API void resha_barrier_abort(resha_barrier *b);

/* As new: those who wait get RESHA_EBROKEN, the next one to come is the first. [loop] */
RESHA_API void resha_barrier_reset(resha_barrier *b);

/* How many wait: 0 to parties - 1. [loop] */
RESHA_API size_t resha_barrier_waiting(const resha_barrier *b);

/* Whether it was aborted, and not reset since. [loop] */
RESHA_API bool resha_barrier_broken(const resha_barrier *b);

RESHA_END_DECLS
#endif
