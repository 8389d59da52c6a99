/* SPDX-License-Identifier: MIT */
#ifndef RESHA_SEMAPHORE_H
#define RESHA_SEMAPHORE_H

/* Permits shared by tasks of one loop. First come, first served: a release hands its permit to the first waiter, who
 * has it even if it is cancelled before it runs.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     struct pool { resha_semaphore places; int inside, most; };
 *
 *     static int swim(void *arg)
 *     {
 *             struct pool *p = arg;
 *             int rc = resha_semaphore_acquire(&p->places);
 *
 *             if (rc < 0)
 *                     return rc;
 *             if (++p->inside > p->most)
 *                     p->most = p->inside;
 *             rc = resha_sleep(RESHA_MS(10));
 *             p->inside--;
 *             resha_semaphore_release(&p->places);
 *             return rc;
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             struct pool p = { .most = 0 };
 *             RESHA_GROUP(g);
 *
 *             (void)arg;
 *             resha_semaphore_init(&p.places, 3);
 *             resha_group_begin(&g, NULL);
 *             for (int i = 0; i < 10; i++)
 *                     resha_spawn(&g, swim, &p);
 *             int rc = resha_group_end(&g, 0);
 *             printf("never more than %d\n", p.most);
 *             return rc;
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
 */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_semaphore {
        uint64_t _[4]; /* private; nothing to release */
} resha_semaphore;

/* `permits` free ones, and never more than that: a release too many is an error. With 0, as in zeroed memory, nobody
 * ever gets in. [any-thread] */
RESHA_API void resha_semaphore_init(resha_semaphore *s, size_t permits);

/* Takes one. 0 or -ECANCELED (none taken). [task] cancellation point */
RESHA_API RESHA_MUST int resha_semaphore_acquire(resha_semaphore *s);

/* Takes one if it is free and nobody waits. 0 or -EAGAIN. [loop] */
RESHA_API RESHA_MUST int resha_semaphore_try_acquire(resha_semaphore *s);

/* Gives one back. 0, or -EOVERFLOW if none was taken. [loop] */
RESHA_API int resha_semaphore_release(resha_semaphore *s);

/* Free ones. [loop] */
RESHA_API size_t resha_semaphore_available(const resha_semaphore *s);

RESHA_END_DECLS
#endif
