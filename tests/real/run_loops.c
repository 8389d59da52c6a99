/* SPDX-License-Identifier: MIT */
/* Several loops at once: each has its item and its thread, they end together, and none is left behind. */

#include "common.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <resha/loops.h>

enum { LOOPS = 4 };

struct item {
        int number, result;
        pthread_t thread;
};

static resha_error error;

static int run_loops(resha_fn *fn, void *items, size_t n, size_t size)
{
        return resha_run_loops(fn, items, n, size, &(resha_run_opts){ .backend = test_backend(), .ret_error = &error });
}

static void number(struct item items[LOOPS])
{
        for (int i = 0; i < LOOPS; i++)
                items[i] = (struct item){ .number = i };
}

/* ---- what each gets ---- */

static int works(void *arg)
{
        struct item *i = arg;

        i->thread = pthread_self();
        int rc = resha_sleep(RESHA_MS(1));
        i->result = i->number * 10;
        return rc;
}

TEST(each_loop_has_its_item_and_its_thread)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_OK(run_loops(works, items, LOOPS, sizeof items[0]));
        ASSERT_EQ(error.code, 0);
        ASSERT_TRUE(pthread_equal(items[0].thread, pthread_self()));
        for (int i = 0; i < LOOPS; i++) {
                ASSERT_EQ(items[i].result, i * 10);
                for (int k = 0; k < i && !test_is_sim(); k++)
                        ASSERT_FALSE(pthread_equal(items[i].thread, items[k].thread));
        }
}

static int counts(void *arg)
{
        atomic_fetch_add((atomic_int *)arg, 1);
        return 0;
}

TEST(a_loop_for_each_processor)
{
        atomic_int n = 0;

        ASSERT_OK(run_loops(counts, &n, 0, 0));
        ASSERT_EQ(n, resha_processors());
        ASSERT_TRUE(n >= 1);
        ASSERT_OK(resha_run_loops(counts, &n, 3, 0, NULL));
        ASSERT_EQ(n, resha_processors() + 3);
}

/* ---- the end of all ---- */

static int fails_or_waits(void *arg)
{
        struct item *i = arg;

        if (i->number != 2)
                return i->result = resha_sleep(RESHA_FOREVER);
        int rc = resha_sleep(RESHA_MS(2));
        return rc < 0 ? rc : resha_fail(-EIO, "loop %d is out of luck", i->number);
}

TEST(the_first_failure_ends_all)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_EQ(run_loops(fails_or_waits, items, LOOPS, sizeof items[0]), -EIO);
        ASSERT_STR(error.text, "loop 2 is out of luck");
        ASSERT_EQ(error.item, 3);
        ASSERT_EQ(error.items, LOOPS);
        ASSERT_HAS(error.spawned_at, "run_loops.c:");
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(items[i].result, i == 2 ? 0 : -ECANCELED);
}

static int fails_at_once(void *arg)
{
        struct item *i = arg;

        return i->number ? i->result = resha_sleep(RESHA_FOREVER) : -ENOENT;
}

/* One that has failed before another could be reached. */
TEST(who_comes_late_is_cancelled_too)
{
        struct item items[LOOPS];

        for (int round = 0; round < 50; round++) {
                number(items);
                ASSERT_EQ(run_loops(fails_at_once, items, LOOPS, sizeof items[0]), -ENOENT);
        }
}

static int fails_when_cancelled(void *arg)
{
        struct item *i = arg;

        if (i->number == 0)
                return -ECANCELED; /* of its own accord */
        int rc = resha_sleep(RESHA_FOREVER);
        return rc == -ECANCELED && i->number == 1 ? resha_fail(-EIO, "while it ended") : rc;
}

TEST(a_failure_counts_more_than_a_cancel)
{
        struct item items[LOOPS];

        if (test_is_sim())
                test_skip("there a group decides");
        number(items);
        ASSERT_EQ(run_loops(fails_when_cancelled, items, LOOPS, sizeof items[0]), -EIO);
        ASSERT_STR(error.text, "while it ended");
}

static int interrupts(void *arg)
{
        struct item *i = arg;

        if (i->number == LOOPS - 1) {
                int rc = resha_sleep(RESHA_MS(2));
                if (rc == 0)
                        rc = test_is_sim() ? -ECANCELED : kill(getpid(), SIGINT);
                if (rc < 0)
                        return rc;
        }
        return i->result = resha_sleep(RESHA_S(60));
}

TEST(ctrl_c_ends_all)
{
        struct item items[LOOPS];
        bool interrupted = false;
        int sig = 0;

        if (test_is_sim() || TEST_TSAN)
                test_skip("signals of the process are not those of a simulated world, and TSan puts them off");
        number(items);
        ASSERT_EQ(resha_run_loops(interrupts, items, LOOPS, sizeof items[0],
                                  &(resha_run_opts){ .backend = test_backend(),
                                                     .ret_interrupted = &interrupted,
                                                     .ret_signal = &sig }),
                  -ECANCELED);
        ASSERT_TRUE(interrupted);
        ASSERT_EQ(sig, SIGINT);
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(items[i].result, -ECANCELED);
}

static int waits_for_nobody(void *arg)
{
        struct item *i = arg;
        resha_event never = { { 0 } };

        return i->result = i->number == 1 ? resha_event_wait(&never) : resha_sleep(RESHA_MS(i->number));
}

/* While others run they may fail, and end the one that waits for nobody: it has no deadlock until it is the last. */
TEST(the_last_loop_may_be_in_a_deadlock)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_EQ(run_loops(waits_for_nobody, items, LOOPS, sizeof items[0]), -EDEADLK);
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(items[i].result, i == 1 ? -ECANCELED : 0);
}

static int waits_for_ever(void *arg)
{
        struct item *i = arg;
        resha_event never = { { 0 } };
        int rc = resha_sleep(RESHA_MS(i->number));

        return i->result = rc < 0 ? rc : resha_event_wait(&never);
}

/* None of them can do anything about the others. */
TEST(loops_that_all_stand_still_are_in_a_deadlock)
{
        struct item items[LOOPS];

        for (int round = 0; round < 20; round++) {
                number(items);
                ASSERT_EQ(run_loops(waits_for_ever, items, LOOPS, sizeof items[0]), -EDEADLK);
                ASSERT_HAS(error.text, "all tasks wait and nothing can wake them");
                for (int i = 0; i < LOOPS; i++)
                        ASSERT_EQ(items[i].result, -ECANCELED);
        }
}

static resha_loop *held[2];
static atomic_int entered;

static void sets(void *arg)
{
        resha_event_set(arg);
}

/* Each in turn waits for the other, whom it will wake: while one has a reference to a loop, that is in no deadlock. */
static int wakes_the_other(void *arg)
{
        static resha_event turn[2];
        int me = ((struct item *)arg)->number, rc = 0;

        turn[me] = (resha_event){ { 0 } };
        held[me] = resha_loop_ref();
        atomic_fetch_add(&entered, 1);
        while (rc == 0 && atomic_load(&entered) < 2)
                rc = resha_sleep(RESHA_US(100));
        for (int i = 0; i < 200 && rc == 0; i++) {
                if (me == 0 || i > 0)
                        ASSERT_OK(resha_loop_post(held[!me], sets, &turn[!me]));
                rc = resha_event_wait(&turn[me]);
                resha_event_clear(&turn[me]);
        }
        if (rc == 0 && me == 1)
                ASSERT_OK(resha_loop_post(held[0], sets, &turn[0]));
        return rc;
}

TEST(loops_that_wake_each_other_are_in_none)
{
        struct item items[LOOPS];

        if (test_is_sim())
                test_skip("there is one loop");
        number(items);
        entered = 0;
        ASSERT_OK(run_loops(wakes_the_other, items, 2, sizeof items[0]));
        for (int i = 0; i < 2; i++)
                resha_loop_unref(held[i]);
}

static int fails_or_says_why(void *arg)
{
        struct item *i = arg;

        if (i->number == 1)
                return resha_fail(-EIO, "out of luck");
        int rc = resha_sleep(RESHA_FOREVER);
        const resha_error *e = resha_error_of(rc);
        if (test_is_sim())
                ASSERT_HAS(e->text, "cancelled because a sibling failed");
        else
                ASSERT_STR(e->text, "cancelled because loop 2 failed");
        return rc;
}

TEST(who_is_cancelled_knows_which_loop_failed)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_EQ(run_loops(fails_or_says_why, items, LOOPS, sizeof items[0]), -EIO);
}

static int sleeps_long(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_FOREVER);
}

static int fails_or_goes_on(void *arg)
{
        struct item *i = arg;

        if (i->number == 1)
                return resha_fail(-EIO, "out of luck");
        return resha_shielded(RESHA_FOREVER, sleeps_long, NULL); /* no cancel reaches it */
}

static int gives_one_up(void *arg)
{
        struct item items[LOOPS];

        (void)arg;

        number(items);
        for (int i = 0; i < 2; i++)
                items[i].number = i;
        ASSERT_EQ(resha_run_loops(
                          fails_or_goes_on, items, 2, sizeof items[0],
                          &(resha_run_opts){ .backend = test_backend(), .grace = RESHA_MS(20), .ret_error = &error }),
                  -EIO);
        ASSERT_STR(error.text, "out of luck");
        ASSERT_EQ(error.item, 2);
        return 0;
}

TEST(a_loop_that_does_not_end_is_given_up_after_its_grace)
{
        struct test_child c;

        test_child(gives_one_up, NULL, &c); /* it leaks, so in a process of its own */
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 0);
}

/* ---- what cannot be ---- */

static int inside(void *arg)
{
        ASSERT_EQ(resha_run_loops(counts, arg, 2, 0, NULL), -EBUSY);
        ASSERT_HAS(resha_error_of(-EBUSY)->text, "inside");
        return 0;
}

TEST(not_inside_of_a_loop)
{
        atomic_int n = 0;

        RUN(inside, &n);
        ASSERT_EQ(n, 0);
}

TEST(what_the_options_get_wrong_is_said)
{
        struct item items[LOOPS];

        number(items);
        ASSERT_EQ(resha_run_loops(works, items, LOOPS, sizeof items[0],
                                  &(resha_run_opts){ .backend = "none", .ret_error = &error }),
                  -EINVAL);
        ASSERT_HAS(error.text, "no backend \"none\"");
        ASSERT_EQ(resha_run_loops(works, items, 1000000, 0, &(resha_run_opts){ .ret_error = &error }), -EINVAL);
        ASSERT_HAS(error.text, "at most");
}

static int no_second_thread(enum rs_syscall call)
{
        static int threads;

        return call == RS_SYS_THREAD && ++threads == 2 ? -EAGAIN : 0;
}

/* Those that run already are ended. */
TEST(no_thread_can_be_started)
{
        struct item items[LOOPS];

        if (test_is_sim())
                test_skip("there are no threads");
        number(items);
        rs_fault_hook = no_second_thread;
        int rc = run_loops(sleeps_long, items, LOOPS, sizeof items[0]);
        rs_fault_hook = NULL;
        ASSERT_EQ(rc, -EAGAIN);
        ASSERT_HAS(error.text,
                   "no thread can be started for loop 3 of 4: Resource temporarily unavailable; allow more");
}

static int waits_for_nobody_whatever_comes(void *arg)
{
        resha_event never = { { 0 } };
        RESHA_SCOPE(s);

        (void)arg;
        resha_shield_begin(&s, RESHA_FOREVER);
        return resha_scope_end(&s, resha_event_wait(&never));
}

/* Loops that are never begun help nobody either: who stands still is in a deadlock, whatever its grace. */
TEST(no_thread_can_be_started_and_one_that_was_stands_still)
{
        struct item items[LOOPS];

        int status;

        if (test_is_sim())
                test_skip("there are no threads");
        number(items);
        int pid = fork(); /* what is given up is lost */
        if (pid == 0) {
                rs_fault_hook = no_second_thread;
                int rc = resha_run_loops(waits_for_nobody_whatever_comes, items, LOOPS, sizeof items[0],
                                         &(resha_run_opts){ .backend = test_backend(), .grace = RESHA_FOREVER });
                _exit(rc == -EAGAIN ? 0 : 1);
        }
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
}
