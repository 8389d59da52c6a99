/* SPDX-License-Identifier: MIT */
/* The runtime's promises, kept under every seed, cancel and failure: tasks end and clean up, permits, items and locks
 * are neither lost nor doubled. */

#include <string.h>

#include "scenario.h"

/* Tasks that run now; counted down by a clean-up, so on every way out. */
static int alive;

static void ended(int *unused)
{
        (void)unused;
        alive--;
}

#define ALIVE() \
        alive++; \
        int alive_ __attribute__((cleanup(ended), unused)) = 0

static void nobody_is_left(void)
{
        ASSERT_EQ(alive, 0);
}

/* ---- groups ---- */

struct groups {
        int leaves, servant_ended;
};

static int leaf(void *arg)
{
        struct groups *s = arg;
        ALIVE();

        int rc = resha_sleep(RESHA_US(100 * (s->leaves % 3)));
        if (rc >= 0)
                s->leaves++;
        return rc;
}

static int branch(void *arg)
{
        ALIVE();
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .limit = 2 });
        for (int i = 0; i < 3; i++) {
                int rc = resha_spawn(&g, leaf, arg);
                if (rc < 0)
                        return rc; /* the group is left, not ended */
        }
        return resha_group_end(&g, 0);
}

static int servant(void *arg)
{
        struct groups *s = arg;
        ALIVE();
        int rc;

        do
                rc = resha_sleep(RESHA_US(70));
        while (rc >= 0);
        s->servant_ended++;
        return rc;
}

static int groups_main(void *arg)
{
        struct groups *s = arg;
        ALIVE();
        RESHA_GROUP(servants);
        RESHA_GROUP(g);

        resha_group_begin(&servants, &(resha_group_opts){ .background = true });
        resha_spawn(&servants, servant, s);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 2; i++)
                resha_spawn(&g, branch, s);
        int rc = resha_group_drain(&g, RESHA_MS(50));
        rc = resha_group_end(&g, rc);
        return resha_group_end(&servants, rc);
}

static void groups_check(void *state, int rc, const resha_test_trial *t)
{
        struct groups *s = state;

        nobody_is_left();
        ASSERT_TRUE(s->leaves <= 6);
        if (!t->disturbed) {
                ASSERT_EQ(s->leaves, 6);
                ASSERT_EQ(s->servant_ended, 1);
        }
        /* One cancelled leaf is no failure of its group. */
        if (rc == 0 && t->cancelled && t->victim == RESHA_TEST_MAIN && !t->again)
                ASSERT_EQ(s->leaves, 6);
}

SCENARIO(sim_groups, groups_main, .seeds = 30, .state = sizeof(struct groups), .check = groups_check)

/* ---- gather ---- */

enum { ITEMS = 5 };

struct gather {
        int status[ITEMS];
        bool done[ITEMS];
        resha_error errors[ITEMS];
        size_t failed;
        int rc;
        struct item {
                struct gather *s;
                int i;
        } items[ITEMS];
};

static int item(void *arg)
{
        struct item *it = arg;
        ALIVE();

        int rc = resha_sleep(RESHA_US(50 * (5 - it->i)));
        if (rc < 0)
                return rc;
        it->s->done[it->i] = true;
        return it->i == 3 ? resha_fail(-ENOENT, "no item %d", it->i) : 0;
}

static int gather_main(void *arg)
{
        struct gather *s = arg;
        ALIVE();

        for (int i = 0; i < ITEMS; i++) {
                s->items[i] = (struct item){ s, i };
                s->status[i] = 77;
        }
        s->failed = 77;
        s->rc = resha_gather(item, s->items, ITEMS, sizeof s->items[0],
                             &(resha_gather_opts){ .limit = 2,
                                                   .keep_going = true,
                                                   .ret_status = s->status,
                                                   .ret_errors = s->errors,
                                                   .ret_failed = &s->failed });
        return s->rc;
}

static void gather_check(void *state, int rc, const resha_test_trial *t)
{
        struct gather *s = state;
        size_t failed = 0;

        nobody_is_left();
        if (s->items[0].s == NULL)
                return; /* the run did not get so far */
        for (int i = 0; i < ITEMS; i++) {
                ASSERT_TRUE(s->status[i] <= 0);
                ASSERT_EQ(s->errors[i].code, s->status[i]);
                ASSERT_EQ(s->done[i] && i != 3, s->status[i] == 0);
                if (s->done[3])
                        ASSERT_EQ(s->status[3], -ENOENT);
                failed += s->status[i] < 0;
        }
        ASSERT_EQ(s->failed, failed);
        if (!t->disturbed) {
                ASSERT_EQ(rc, 0);
                ASSERT_EQ(failed, 1);
                ASSERT_STR(s->errors[3].text, "no item 3");
        }
}

SCENARIO(sim_gather_keep_going, gather_main, .seeds = 30, .state = sizeof(struct gather), .check = gather_check)

/* ---- race ---- */

struct race {
        int held; /* things acquired and not yet dropped */
        bool won;
        size_t winner;
        struct runner {
                struct race *s;
                int i;
        } runners[4];
};

static int runner(void *arg)
{
        struct runner *r = arg;
        ALIVE();

        int rc = resha_sleep(RESHA_US(100));
        if (rc < 0)
                return rc;
        if (r->i == 0)
                return resha_fail(-ECONNREFUSED, "refused");
        r->s->held++;
        return 0;
}

static void race_drop(void *arg)
{
        struct runner *r = arg;
        r->s->held--;
}

static int race_main(void *arg)
{
        struct race *s = arg;
        ALIVE();

        for (int i = 0; i < 4; i++)
                s->runners[i] = (struct runner){ s, i };
        s->winner = 77;
        int rc = resha_race(runner, s->runners, 4, sizeof s->runners[0],
                            &(resha_race_opts){ .stagger = RESHA_US(60), .drop = race_drop }, &s->winner);
        s->won = rc >= 0;
        return rc;
}

static void race_check(void *state, int rc, const resha_test_trial *t)
{
        struct race *s = state;

        nobody_is_left();
        ASSERT_EQ(s->won, rc >= 0);
        ASSERT_EQ(s->held, s->won ? 1 : 0); /* the winner's, nobody else's */
        if (s->won)
                ASSERT_TRUE(s->winner >= 1 && s->winner < 4);
        if (!t->disturbed)
                ASSERT_TRUE(s->won);
}

SCENARIO(sim_race, race_main, .seeds = 30, .state = sizeof(struct race), .check = race_check)

/* ---- retry and timeouts ---- */

struct retry {
        int calls, shielded;
        unsigned attempts;
};

static int flaky(void *arg)
{
        struct retry *s = arg;
        ALIVE();

        s->calls++;
        int rc = resha_sleep(s->calls == 1 ? RESHA_S(100) : RESHA_MS(1));
        if (rc < 0)
                return rc;
        return s->calls == 2 ? resha_fail(-ECONNRESET, "reset") : 0;
}

static int clean_up(void *arg)
{
        struct retry *s = arg;

        int rc = resha_sleep(RESHA_MS(2));
        s->shielded += rc >= 0;
        return rc;
}

static int retry_main(void *arg)
{
        struct retry *s = arg;
        ALIVE();

        int rc = resha_retry(
                flaky, s,
                &(resha_retry_opts){
                        .attempts = 4, .attempt = RESHA_S(1), .total = RESHA_S(60), .ret_attempts = &s->attempts });
        int rc2 = resha_shielded(RESHA_S(1), clean_up, s);
        return rc < 0 ? rc : rc2;
}

static void retry_check(void *state, int rc, const resha_test_trial *t)
{
        struct retry *s = state;

        nobody_is_left();
        if (s->calls == 0)
                return;
        ASSERT_EQ(s->attempts, s->calls);
        ASSERT_EQ(s->shielded, 1); /* whatever was cancelled outside */
        if (!t->disturbed) {
                ASSERT_EQ(rc, 0);
                ASSERT_EQ(s->calls, 3);
        }
}

SCENARIO(sim_retry_and_shield, retry_main, .seeds = 30, .state = sizeof(struct retry), .check = retry_check)

/* ---- mutex and event ---- */

struct locked {
        resha_mutex m;
        resha_event go;
        int inside, counter, completed;
};

static int increment(void *arg)
{
        struct locked *s = arg;
        ALIVE();

        int rc = resha_event_wait(&s->go);
        if (rc < 0 || (rc = resha_mutex_lock(&s->m)) < 0)
                return rc;
        ASSERT_EQ(++s->inside, 1);
        int read = s->counter;
        rc = resha_sleep(RESHA_US(10));
        if (rc >= 0) {
                s->counter = read + 1;
                s->completed++;
        }
        s->inside--;
        int unlocked = resha_mutex_unlock(&s->m);
        ASSERT_EQ(unlocked, 0);
        return rc;
}

static int mutex_main(void *arg)
{
        struct locked *s = arg;
        ALIVE();
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 4; i++)
                resha_spawn(&g, increment, s);
        int rc = resha_yield();
        resha_event_set(&s->go);
        return resha_group_end(&g, rc);
}

static void mutex_check(void *state, int rc, const resha_test_trial *t)
{
        struct locked *s = state;

        (void)rc;
        nobody_is_left();
        ASSERT_FALSE(resha_mutex_locked(&s->m));
        ASSERT_EQ(s->counter, s->completed);
        if (!t->disturbed)
                ASSERT_EQ(s->counter, 4);
}

SCENARIO(sim_mutex, mutex_main, .seeds = 30, .state = sizeof(struct locked), .check = mutex_check)

/* ---- semaphore ---- */

struct permits {
        resha_semaphore sem;
        int inside, served;
        bool begun;
};

static int guest(void *arg)
{
        struct permits *s = arg;
        ALIVE();

        int rc = resha_semaphore_acquire(&s->sem);
        if (rc < 0)
                return rc;
        s->inside++;
        ASSERT_TRUE(s->inside <= 2);
        rc = resha_sleep(RESHA_US(20));
        s->served += rc >= 0;
        s->inside--;
        int released = resha_semaphore_release(&s->sem);
        ASSERT_EQ(released, 0);
        return rc;
}

static int semaphore_main(void *arg)
{
        struct permits *s = arg;
        ALIVE();
        RESHA_GROUP(g);

        resha_semaphore_init(&s->sem, 2);
        s->begun = true;
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < 5; i++)
                resha_spawn(&g, guest, s);
        return resha_group_end(&g, 0);
}

static void semaphore_check(void *state, int rc, const resha_test_trial *t)
{
        struct permits *s = state;

        (void)rc;
        nobody_is_left();
        if (s->begun)
                ASSERT_EQ(resha_semaphore_available(&s->sem), 2);
        if (!t->disturbed)
                ASSERT_EQ(s->served, 5);
}

SCENARIO(sim_semaphore, semaphore_main, .seeds = 30, .state = sizeof(struct permits), .check = semaphore_check)

/* ---- queue ---- */

enum { PRODUCERS = 2, EACH = 4, TOTAL = PRODUCERS * EACH };

/* Where each item is: nobody may lose or double one. */
enum place { NOT_MADE, IN_QUEUE, TAKEN, DROPPED };

struct belt {
        resha_queue *q;
        char place[TOTAL];
        int next_producer;
};

static struct belt *belt; /* drop functions get the item only */

static void belt_drop(void *arg)
{
        int item = *(int *)arg;

        ASSERT_EQ(belt->place[item], IN_QUEUE);
        belt->place[item] = DROPPED;
}

static int produce(void *arg)
{
        struct belt *s = arg;
        int base = EACH * s->next_producer++;
        ALIVE();

        for (int i = 0; i < EACH; i++) {
                int item = base + i;
                s->place[item] = IN_QUEUE; /* a getter may see it before we run again */
                int rc = resha_queue_put(s->q, &item);
                if (rc <= 0) {
                        ASSERT_EQ(s->place[item], IN_QUEUE);
                        s->place[item] = NOT_MADE;
                        return rc;
                }
                if (i == 1 && (rc = resha_sleep(RESHA_US(10))) < 0)
                        return rc;
        }
        return 0;
}

static int consume(void *arg)
{
        struct belt *s = arg;
        int rc, item;
        ALIVE();

        while ((rc = resha_queue_get(s->q, &item)) > 0) {
                ASSERT_EQ(s->place[item], IN_QUEUE);
                s->place[item] = TAKEN;
                if ((rc = resha_sleep(RESHA_US(5))) < 0)
                        break;
        }
        if (rc < 0)
                resha_queue_shutdown(s->q); /* cancelled alone: producers must not wait for it */
        return rc;
}

static int producers(void *arg)
{
        struct belt *s = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < PRODUCERS; i++)
                resha_spawn(&g, produce, s);
        int rc = resha_group_end(&g, 0);
        resha_queue_shutdown(s->q);
        return rc;
}

static int queue_main(void *arg)
{
        struct belt *s = arg;
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;
        ALIVE();

        belt = s;
        int rc = resha_queue_new(sizeof(int), 2, belt_drop, &q);
        if (rc < 0)
                return rc;
        s->q = q;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, producers, s);
        for (int i = 0; i < 2; i++)
                resha_spawn(&g, consume, s);
        return resha_group_end(&g, 0);
}

static void queue_check(void *state, int rc, const resha_test_trial *t)
{
        struct belt *s = state;

        (void)rc;
        nobody_is_left();
        for (int i = 0; i < TOTAL; i++) {
                ASSERT_TRUE(s->place[i] != IN_QUEUE); /* freed with the queue, and told so */
                if (!t->disturbed)
                        ASSERT_EQ(s->place[i], TAKEN);
        }
}

SCENARIO(sim_queue, queue_main, .seeds = 30, .state = sizeof(struct belt), .check = queue_check)

/* ---- pool ---- */

struct jobs {
        int started[4], ended[4], told[4];
        char text[sizeof((resha_error *)0)->text];
        struct job {
                struct jobs *s;
                int i;
        } job[4];
};

static int job(void *arg)
{
        struct job *j = arg;

        j->s->started[j->i]++;
        j->s->ended[j->i]++;
        return j->i == 2 ? resha_fail(-EDOM, "job %d", j->i) : j->i;
}

static int with_job(void *arg)
{
        struct job *j = arg;
        ALIVE();

        int rc = resha_pool_run(NULL, job, j, NULL);
        if (rc == -EDOM) {
                snprintf(j->s->text, sizeof j->s->text, "%s", resha_error_of(rc)->text);
                rc = 2;
        }
        if (rc < 0)
                return rc;
        ASSERT_EQ(rc, j->i);
        j->s->told[j->i]++;
        return 0;
}

static int pool_main(void *arg)
{
        struct jobs *s = arg;
        ALIVE();

        for (int i = 0; i < 4; i++)
                s->job[i] = (struct job){ s, i };
        return resha_gather(with_job, s->job, 4, sizeof s->job[0], NULL);
}

static void pool_check(void *state, int rc, const resha_test_trial *t)
{
        struct jobs *s = state;

        (void)rc;
        nobody_is_left();
        if (!t->disturbed)
                ASSERT_STR(s->text, "job 2");
        for (int i = 0; i < 4; i++) {
                ASSERT_TRUE(s->started[i] <= 1);
                ASSERT_EQ(s->started[i], s->ended[i]);
                ASSERT_EQ(s->told[i], s->started[i]); /* a job that ran is never reported as cancelled */
                if (!t->disturbed)
                        ASSERT_EQ(s->told[i], 1);
        }
}

SCENARIO(sim_pool, pool_main, .seeds = 30, .state = sizeof(struct jobs), .check = pool_check)
