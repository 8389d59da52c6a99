/* SPDX-License-Identifier: MIT */
/* Programs at random: a tree of tasks, each of which does a few random things, nested at random, over shared locks,
 * permits, queues and jobs. Whatever they do, the promises hold:
 *
 *  - tasks end, and whoever left a lock, permit or place by any way gave it back;
 *  - -ECANCELED from a wait means that its scope is cancelled, and stays so;
 *  - -ETIME comes out of a scope that says it has expired, and out of no other;
 *  - the main task never ends as cancelled if nobody cancelled it. */

#include <string.h>

#include "scenario.h"

enum { DEPTH = 5, PERMITS = 2, CHILDREN = 3, STEPS = 4 };

struct chaos {
        uint64_t rng;
        resha_mutex mutex;
        resha_condition bell;
        resha_semaphore sem;
        resha_event event;
        resha_limiter limiter;
        resha_queue *q;
        int alive, inside, queued, taken, jobs_started, jobs_told;
        bool begun;
};

static struct chaos *c;

static unsigned roll(unsigned below)
{
        c->rng ^= c->rng << 13;
        c->rng ^= c->rng >> 7;
        c->rng ^= c->rng << 17;
        return (unsigned)(c->rng >> 33) % below;
}

static resha_duration some_time(void)
{
        static const int us[] = { 0, 1, 5, 50, 50, 200, 1000 };

        return RESHA_US(us[roll(sizeof us / sizeof us[0])]);
}

/* The result of a wait that was not inside a scope of its own. */
static int waited(int rc)
{
        if (rc == -ECANCELED)
                ASSERT_TRUE(resha_cancelled());
        ASSERT_TRUE(rc != -ETIME);
        return rc;
}

static int steps(int depth);

/* ---- single waits ---- */

static int limited(resha_fn *fn, void *arg);

static int wait_bell(__attribute__((unused)) void *arg)
{
        c->inside--;
        int rc = waited(resha_condition_wait(&c->bell));
        ASSERT_EQ(++c->inside, 1); /* with the lock, whatever the result */
        return rc;
}

static int locked(void)
{
        int rc = waited(resha_mutex_lock(&c->mutex));

        if (rc < 0)
                return rc;
        ASSERT_EQ(++c->inside, 1);
        rc = steps(0); /* no tasks: they might lock, too */
        ASSERT_OK(resha_condition_notify(&c->bell, roll(3)));
        if (rc >= 0 && roll(2))
                rc = limited(wait_bell, NULL);
        c->inside--;
        int unlocked = resha_mutex_unlock(&c->mutex);
        ASSERT_EQ(unlocked, 0);
        return rc;
}

static int permitted(void)
{
        int rc = waited(resha_semaphore_acquire(&c->sem));

        if (rc < 0)
                return rc;
        rc = waited(resha_sleep(some_time()));
        int released = resha_semaphore_release(&c->sem);
        ASSERT_EQ(released, 0);
        return rc;
}

static int put_one(void *arg)
{
        int rc = waited(resha_queue_put(c->q, arg));

        c->queued += rc > 0;
        return rc < 0 ? rc : 0;
}

static int get_one(void *arg)
{
        int rc = waited(resha_queue_get(c->q, arg));

        c->taken += rc > 0;
        return rc < 0 ? rc : 0;
}

static int wait_event(void *arg)
{
        return waited(resha_event_wait(arg));
}

/* Nobody may ever answer: so in a time limit, which is no failure. */
static int limited(resha_fn *fn, void *arg)
{
        int rc = resha_timeout(some_time(), fn, arg);

        return rc == -ETIME ? 0 : waited(rc);
}

static int start(void)
{
        if (roll(2))
                return waited(resha_limiter_acquire(&c->limiter));
        int rc = resha_limiter_acquire_by(&c->limiter, resha_after(some_time()));
        return rc == -ETIME ? 0 : waited(rc);
}

static int job(void *arg)
{
        (*(int *)arg)++;
        return 0;
}

static int pooled(void)
{
        int started = 0, rc = waited(resha_pool_run(NULL, job, &started, NULL));

        c->jobs_started += started;
        c->jobs_told += rc == 0;
        ASSERT_EQ(started, rc == 0 ? 1 : 0);
        return rc;
}

/* ---- blocks ---- */

static int child(void *arg)
{
        int depth = *(int *)arg;

        c->alive++;
        int rc = steps(depth);
        c->alive--;
        return rc;
}

static int in_group(int depth)
{
        resha_task handle = { 0 }; /* before the group, as all that its children use */
        int rc = 0, below = depth - 1;
        bool ended = false; /* cancelled by itself: only its end makes a success of that */
        RESHA_GROUP(g);

        resha_group_begin(
                &g, &(resha_group_opts){ .limit = roll(3), .keep_going = roll(2) == 0, .background = roll(4) == 0 });
        for (unsigned i = 1 + roll(CHILDREN); i > 0 && rc >= 0; i--)
                rc = i == 1 ? resha_spawn_task(&g, child, &below, &handle) : resha_spawn(&g, child, &below);
        if (rc >= 0 && roll(3) == 0)
                rc = waited(resha_task_wait(&handle, NULL));
        else if (rc >= 0 && roll(3) == 0)
                resha_task_cancel(&handle);
        else if (rc >= 0 && (ended = roll(4) == 0))
                resha_group_cancel(&g);
        if (rc >= 0)
                rc = steps(below);
        if (rc >= 0 && roll(4) == 0) {
                rc = resha_group_drain(&g, some_time());
                rc = rc == -ETIME ? 0 : rc;
        }
        if (!ended && roll(4) == 0)
                return rc; /* the group is left */
        return resha_group_end(&g, rc);
}

static int in_scope(int depth)
{
        RESHA_SCOPE(s);

        if (roll(3) == 0)
                resha_shield_begin(&s, RESHA_MS(5));
        else
                resha_timeout_begin(&s, some_time());
        int rc = steps(depth - 1);
        if (roll(6) == 0)
                resha_scope_cancel(&s);
        rc = resha_scope_end(&s, rc);
        ASSERT_EQ(rc == -ETIME, resha_scope_expired(&s));
        return rc == -ETIME ? 0 : rc;
}

static int in_race(int depth)
{
        int below[2] = { depth - 1, depth - 2 };
        int rc = resha_race(child, below, 2, sizeof below[0],
                            &(resha_race_opts){ .stagger = roll(2) ? some_time() : RESHA_NS(0) }, NULL);

        return rc;
}

static int in_gather(int depth)
{
        int below[3] = { depth - 2, depth - 2, depth - 2 };

        return resha_gather(child, below, 3, sizeof below[0],
                            &(resha_gather_opts){ .limit = roll(3), .keep_going = roll(2) == 0 });
}

static bool never_again(int rc, void *arg)
{
        (void)arg;
        return rc == -EIO;
}

static int in_retry(int depth)
{
        int below = depth - 1;

        return resha_retry(child, &below,
                           &(resha_retry_opts){ .attempts = 2, .base = RESHA_US(20), .again = never_again });
}

static int one_step(int depth)
{
        int item = 7;

        switch (roll(depth > 0 ? 19 : 10)) {
        case 0: return waited(resha_yield());
        case 1: return waited(resha_checkpoint());
        case 2: return permitted();
        case 3: return limited(put_one, &item);
        case 4: return limited(get_one, &item);
        case 5: return pooled();
        case 6: resha_event_set(&c->event); return 0;
        case 7: resha_event_clear(&c->event); return limited(wait_event, &c->event);
        case 8: return start();
        case 9: return waited(resha_sleep(some_time()));
        case 10:
        case 11:
        case 12: return in_group(depth);
        case 13: return in_scope(depth);
        case 14: return in_race(depth);
        case 15: return in_gather(depth);
        case 16: return in_retry(depth);
        case 17: return locked();
        default: return roll(3) == 0 ? resha_fail(-EIO, "a failure at depth %d", depth) : 0;
        }
}

static int steps(int depth)
{
        int rc = 0;

        for (unsigned i = 1 + roll(STEPS); i > 0 && rc >= 0; i--)
                rc = one_step(depth);
        return rc;
}

static int chaos_main(void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;

        c = arg;
        c->rng = resha_test_random() | 1;
        resha_condition_init(&c->bell, &c->mutex);
        resha_semaphore_init(&c->sem, PERMITS);
        int rc = resha_limiter_init(&c->limiter, 100, RESHA_MS(1), 3);
        if (rc == 0)
                rc = resha_queue_new(sizeof(int), 2, NULL, &q);
        if (rc < 0)
                return rc;
        c->q = q;
        c->begun = true;
        rc = steps(DEPTH);
        c->queued -= (int)resha_queue_count(q);
        return rc;
}

static void chaos_check(void *state, int rc, const resha_test_trial *t)
{
        struct chaos *s = state;

        (void)rc, (void)t;
        if (!s->begun)
                return;
        ASSERT_EQ(s->alive, 0);
        ASSERT_EQ(s->inside, 0);
        ASSERT_FALSE(resha_mutex_locked(&s->mutex));
        ASSERT_EQ(resha_semaphore_available(&s->sem), PERMITS);
        ASSERT_EQ(s->queued, s->taken);
}

SCENARIO(sim_chaos, chaos_main, .seeds = 40, .state = sizeof(struct chaos), .check = chaos_check, .may_fail = { -EIO },
         .may_report = 1u << RESHA_REPORT_LOST_ERROR | 1u << RESHA_REPORT_DROPPED)
