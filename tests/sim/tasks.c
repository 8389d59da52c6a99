/* SPDX-License-Identifier: MIT */
/* Waiting for tasks, completions, task-locals, gather and race over calls: their promises under every seed, cancel and
 * failure. */

#include <string.h>

#include "scenario.h"

enum { ITEMS = 5 };

/* An own value that each task must find unchanged, whatever others set meanwhile. */
RESHA_LOCAL(number, long, 0);

static long own(void)
{
        return *(const long *)resha_local_get(&number);
}

/* ---- completions ---- */

struct completions {
        int started, ended, taken, seen[ITEMS];
        bool all;
};

static struct completions *completions;

static int item(void *arg)
{
        long n = *(long *)arg;

        completions->started++;
        int rc = resha_local_set(&number, &n);
        if (rc == 0)
                rc = resha_sleep(RESHA_US(n * 37 % 100));
        ASSERT_TRUE(rc < 0 || own() == n);
        completions->ended++;
        return rc < 0 ? rc : n == 3 ? resha_fail(-EIO, "item 3") : (int)n;
}

static int take(void *arg)
{
        resha_completions *c = arg;
        struct completions *s = completions;
        size_t i;
        int status, rc = resha_completions_next(c, &i, &status);

        if (rc == 1) {
                s->taken++;
                s->seen[i]++;
                ASSERT_TRUE(status == (i == 3 ? -EIO : (int)i) || status == -ECANCELED || status == -ENOMEM ||
                            status == -EAGAIN || status == -EIO);
        }
        return rc;
}

static int completions_main(void *arg)
{
        static long items[ITEMS] = { 0, 1, 2, 3, 4 };
        struct completions *s = completions = arg;
        int rc;

        RESHA_COMPLETIONS(c);
        resha_completions_begin(&c, item, items, ITEMS, sizeof items[0], &(resha_completions_opts){ .limit = 2 });
        do {
                rc = resha_timeout(RESHA_US(30), take, &c);
                if (rc == -ETIME)
                        rc = 1; /* given up, and taken up again */
        } while (rc == 1);
        s->all = rc == 0;
        return resha_completions_end(&c, rc);
}

static void completions_check(void *state, int rc, const resha_test_trial *t)
{
        struct completions *s = state;

        ASSERT_EQ(s->started, s->ended);
        for (int i = 0; i < ITEMS; i++)
                ASSERT_TRUE(s->seen[i] <= 1);
        if (s->all)
                ASSERT_EQ(s->taken, ITEMS);
        if (!t->disturbed) {
                ASSERT_EQ(rc, 0);
                ASSERT_TRUE(s->all);
                ASSERT_EQ(s->ended, ITEMS);
        }
}

SCENARIO(sim_completions, completions_main, .seeds = 20, .state = sizeof(struct completions),
         .check = completions_check)

/* ---- waiting for several ---- */

struct waits {
        resha_task task[3];
        int ended, decided;
};

static int worker(void *arg)
{
        struct waits *s = arg;
        int rc = resha_sleep(RESHA_US(40 * (s->ended + 1)));

        s->ended++;
        return rc;
}

static int waits_for_any(void *arg)
{
        struct waits *s = arg;
        size_t i = 99;
        int rc = resha_task_wait_any(s->task, 3, RESHA_US(60), &i);

        if (rc == 0)
                ASSERT_TRUE(resha_task_done(&s->task[i], NULL));
        s->decided++;
        return rc == -ETIME ? 0 : rc;
}

static int waits_for_failed(void *arg)
{
        struct waits *s = arg;
        size_t i = 99;
        int status, rc = resha_task_wait_failed(s->task, 3, RESHA_FOREVER, &i);

        if (rc == 1)
                ASSERT_TRUE(resha_task_done(&s->task[i], &status) && status < 0 && status != -ECANCELED);
        for (int k = 0; rc == 0 && k < 3; k++)
                ASSERT_TRUE(resha_task_done(&s->task[k], NULL));
        s->decided++;
        return rc < 0 ? rc : 0;
}

static int waits_for_all(void *arg)
{
        struct waits *s = arg;
        size_t ended = 99;
        int rc = resha_task_wait_all(s->task, 3, RESHA_US(100), &ended);

        ASSERT_TRUE(rc != 0 || ended == 3);
        s->decided++;
        return rc == -ETIME ? 0 : rc;
}

static int waits_main(void *arg)
{
        struct waits *s = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++) {
                int rc = resha_spawn_task(&g, worker, s, &s->task[i]);
                if (rc < 0)
                        return resha_group_end(&g, rc);
        }
        resha_call calls[] = { RESHA_CALL(waits_for_any, s), RESHA_CALL(waits_for_failed, s),
                               RESHA_CALL(waits_for_all, s), RESHA_CALL(waits_for_any, s) };
        int rc = resha_gather_calls(calls, 4, NULL);
        return resha_group_end(&g, rc);
}

static void waits_check(void *state, int rc, const resha_test_trial *t)
{
        struct waits *s = state;

        if (!t->disturbed) {
                ASSERT_EQ(rc, 0);
                ASSERT_EQ(s->decided, 4);
                ASSERT_EQ(s->ended, 3);
        }
}

SCENARIO(sim_waits, waits_main, .seeds = 20, .state = sizeof(struct waits), .check = waits_check)

/* ---- task-locals ---- */

struct tree {
        int leaves;
};

struct branch {
        struct tree *tree;
        long depth;
};

/* Each level sets a value, and finds it again whatever those below and beside it have set. */
static int branch(void *arg)
{
        const struct branch *b = arg;
        struct branch below = { b->tree, b->depth + 1 };
        long mine = b->depth * 10;

        ASSERT_TRUE(b->depth == 0 || own() == (b->depth - 1) * 10);
        int rc = resha_local_set(&number, &mine);
        if (rc < 0)
                return rc;
        if (b->depth == 3) {
                rc = resha_sleep(RESHA_US(10));
                b->tree->leaves += rc == 0;
        } else {
                RESHA_LOCALS(before);
                resha_call calls[] = { RESHA_CALL(branch, &below), RESHA_CALL(branch, &below) };
                rc = resha_gather_calls(calls, 2, NULL);
                long other = -1;
                int set = resha_local_set(&number, &other);
                rc = rc < 0 ? rc : set;
        }
        ASSERT_EQ(own(), mine);
        return rc;
}

static int tree_main(void *arg)
{
        return branch(&(struct branch){ arg, 0 });
}

static void tree_check(void *state, int rc, const resha_test_trial *t)
{
        struct tree *s = state;

        if (!t->disturbed) {
                ASSERT_EQ(rc, 0);
                ASSERT_EQ(s->leaves, 8);
        }
}

SCENARIO(sim_locals, tree_main, .seeds = 10, .state = sizeof(struct tree), .check = tree_check)

/* ---- a race of calls, and the reason of its losers ---- */

struct race {
        int holds, dropped, reasons;
};

static struct race *race;

static int wins(void *arg)
{
        int rc = resha_sleep(RESHA_US(20));

        if (rc < 0) {
                race->reasons += strncmp(resha_error_of(rc)->text, "cancelled", 9) == 0;
                return rc;
        }
        *(bool *)arg = true;
        race->holds++;
        return 0;
}

static void drop(void *arg)
{
        ASSERT_TRUE(*(bool *)arg);
        race->holds--;
        race->dropped++;
}

static int race_main(void *arg)
{
        bool held[3] = { false };
        size_t winner = 9;

        race = arg;
        resha_call calls[] = { RESHA_CALL(wins, &held[0]), RESHA_CALL(wins, &held[1]), RESHA_CALL(wins, &held[2]) };
        int rc = resha_race_calls(calls, 3, &(resha_race_opts){ .drop = drop }, &winner);
        if (rc == 0) {
                ASSERT_TRUE(held[winner]);
                race->holds--;
        }
        return rc;
}

static void race_check(void *state, int rc, const resha_test_trial *t)
{
        const struct race *s = state;

        ASSERT_EQ(s->holds, 0); /* what was won is with the caller, or was dropped */
        if (!t->disturbed)
                ASSERT_EQ(rc, 0);
}

SCENARIO(sim_race_calls, race_main, .seeds = 20, .state = sizeof(struct race), .check = race_check)
