/* SPDX-License-Identifier: MIT */
/* Signals in the simulated world, where the program raises them: subscriptions, who gets what, Ctrl-C and SIGTERM. The
 * real ones are in tests/real/signals.c. */

#include "test.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <resha/test.h>

static resha_signals *open_for(int sig)
{
        resha_signals *s = NULL;

        ASSERT_OK(resha_signal_open(&sig, 1, &s));
        return s;
}

TASK(subscription_keeps_what_comes_until_it_is_taken)
{
        SIM_ONLY();
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
        resha_signal_info info;

        ASSERT_EQ(resha_test_signal(SIGHUP), -ESRCH); /* before it is open */
        ASSERT_OK(resha_signal_open((const int[]){ SIGHUP, SIGUSR1 }, 2, &s));
        ASSERT_OK(resha_test_signal(SIGUSR1));
        ASSERT_OK(resha_test_signal(SIGHUP));
        ASSERT_EQ(resha_test_signal(SIGUSR2), -ESRCH);
        ASSERT_OK(resha_sleep(RESHA_S(1)));
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.signal, SIGUSR1);
        ASSERT_EQ(info.code, SI_USER);
        ASSERT_EQ(info.pid, getpid());
        ASSERT_EQ(info.uid, getuid());
        ASSERT_EQ(info.count, 1);
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.signal, SIGHUP);
        return 0;
}

TASK(standard_signals_coalesce_and_are_counted)
{
        SIM_ONLY();
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGHUP);
        resha_signal_info info;

        for (int i = 0; i < 5; i++)
                ASSERT_OK(resha_test_signal(SIGHUP));
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.count, 5);
        ASSERT_OK(resha_test_signal(SIGHUP));
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.count, 1);
        return 0;
}

TASK(realtime_signals_come_one_by_one_up_to_the_cap)
{
        SIM_ONLY();
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
        int signals[] = { SIGRTMIN + 1, SIGHUP };
        resha_signal_info info;

        ASSERT_OK(resha_signal_open(signals, 2, &s));
        for (int i = 0; i < RESHA_SIGNAL_QUEUE + 3; i++)
                ASSERT_OK(resha_test_signal(SIGRTMIN + 1));
        ASSERT_OK(resha_test_signal(SIGHUP)); /* has its place all the same */
        for (int i = 0; i < RESHA_SIGNAL_QUEUE; i++) {
                ASSERT_EQ(resha_signal_next(s, &info), 1);
                ASSERT_EQ(info.signal, SIGRTMIN + 1);
                ASSERT_EQ(info.count, 1);
                ASSERT_EQ(info.lost, i == 0 ? 3 : 0);
        }
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.signal, SIGHUP);
        ASSERT_OK(resha_test_signal(SIGRTMIN + 1)); /* there is room again */
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.lost, 0);
        return 0;
}

/* ---- several ---- */

struct taker {
        resha_signals *s;
        const char *name;
        int rc;
};

static int take_one(void *arg)
{
        struct taker *t = arg;
        resha_signal_info info;

        t->rc = resha_signal_next(t->s, &info);
        note("%s%d", t->name, t->rc);
        return t->rc < 0 ? t->rc : 0;
}

static int each_subscription_and_one_waiter(__attribute__((unused)) void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *one = open_for(SIGHUP);
        RESHA_CLEANUP(resha_signal_closep) resha_signals *two = open_for(SIGHUP);
        struct taker a = { one, "a", 9 }, b = { one, "b", 9 }, c = { two, "c", 9 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, take_one, &a);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_spawn(&g, take_one, &b);
        resha_spawn(&g, take_one, &c);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_test_signal(SIGHUP));
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(a.rc, 1); /* the first of its waiters */
        ASSERT_EQ(b.rc, 9);
        ASSERT_EQ(c.rc, 1); /* the other subscription's */
        ASSERT_OK(resha_test_signal(SIGHUP));
        return resha_group_end(&g, 0);
}

TEST(each_subscription_gets_a_signal_and_one_of_its_waiters)
{
        SIM_ONLY();
        RUN_SEEDS(each_subscription_and_one_waiter, NULL, 20);
}

TASK(close_ends_the_wait_of_others)
{
        SIM_ONLY();
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGHUP);
        struct taker a = { s, "a", 9 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, take_one, &a);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_test_signal(SIGHUP));
        resha_signal_closep(&s); /* it had not been handed over */
        ASSERT_EQ(resha_test_signal(SIGHUP), -ESRCH);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(a.rc, 0);
        resha_signal_close(NULL);
        return 0;
}

/* What has been handed over is not lost to a cancel that comes before the task runs; one that comes earlier leaves it
 * to the next. */
static int cancel_and_signal(__attribute__((unused)) void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGHUP);
        struct taker a = { s, "a", 9 };
        resha_signal_info info;
        resha_task h = { 0 };
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, take_one, &a, &h);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_test_signal(SIGHUP));
        resha_task_cancel(&h);
        ASSERT_OK(resha_group_end(&g, 0));
        if (a.rc == 1)
                ASSERT_OK(resha_test_signal(SIGHUP));
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.count, 1);
        return 0;
}

TEST(a_signal_is_not_lost_to_a_cancel)
{
        SIM_ONLY();
        RUN_SEEDS(cancel_and_signal, NULL, 50);
}

static int wait_for_hup(__attribute__((unused)) void *arg)
{
        int sig = 0, rc = resha_signal_wait((const int[]){ SIGHUP }, 1, &sig);

        note("%d", rc < 0 ? rc : sig);
        return rc;
}

TASK(short_form_wakes_everybody_beside_subscriptions)
{
        SIM_ONLY();
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGHUP);
        resha_signal_info info;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, wait_for_hup, NULL);
        resha_spawn(&g, wait_for_hup, NULL);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_test_signal(SIGHUP));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(notes(), "1 1");
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(info.count, 1);
        return 0;
}

/* ---- misuse, and the end ---- */

TASK(subscriptions_say_what_cannot_be)
{
        resha_signals *s = NULL;
        int refused[] = { SIGKILL, SIGSTOP, SIGSEGV, 0, -1, 32, 1000 };

        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
                ASSERT_EQ(resha_signal_open(&refused[i], 1, &s), -EINVAL);
        ASSERT_EQ(resha_signal_open(NULL, 0, &s), -EINVAL);
        ASSERT_EQ(resha_signal_open((const int[]){ SIGHUP, SIGINT }, 2, &s), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "keep_sigint");
        ASSERT_TRUE(s == NULL);
        if (test_is_sim())
                ASSERT_EQ(resha_test_signal(0), -EINVAL);
        return 0;
}

TEST(subscriptions_are_of_a_loop)
{
        resha_signals *s = NULL;

        ASSERT_EQ(resha_signal_open((const int[]){ SIGHUP }, 1, &s), -EPERM);
        ASSERT_EQ(resha_test_signal(SIGHUP), -EPERM);
}

static resha_signals *forgotten;

static int forget(__attribute__((unused)) void *arg)
{
        forgotten = open_for(SIGHUP);
        return 0;
}

static int use_the_forgotten(__attribute__((unused)) void *arg)
{
        resha_signal_info info;

        ASSERT_EQ(resha_signal_next(forgotten, &info), -EPERM);
        return 0;
}

static void note_report(const resha_report *r, __attribute__((unused)) void *arg)
{
        note("%d %s", r->kind, r->text);
}

TEST(a_subscription_that_is_left_open_is_reported_and_may_be_closed_later)
{
        ASSERT_OK(test_run_opts(forget, NULL, &(resha_run_opts){ .report = note_report }));
        ASSERT_STR(notes(), "11 1 subscription to signals was not closed before the run ended");
        RUN(use_the_forgotten, NULL);
        resha_signal_close(forgotten);
}

static int wait_in_vain(__attribute__((unused)) void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGHUP);
        resha_signal_info info;

        return resha_signal_next(s, &info);
}

TEST(a_wait_for_a_signal_that_nobody_raises_is_a_deadlock_of_the_simulated_world)
{
        SIM_ONLY();
        ASSERT_EQ(test_run_opts(wait_in_vain, NULL, NULL), -EDEADLK);
}

/* ---- what the run does ---- */

static int interrupted_by(void *arg)
{
        ASSERT_OK(resha_test_signal(*(int *)arg));
        int rc = resha_sleep(RESHA_S(1));
        ASSERT_EQ(rc, -ECANCELED);
        return rc;
}

TEST(ctrl_c_and_sigterm_of_the_simulated_world)
{
        SIM_ONLY();
        resha_error e;
        int sig = -1;
        resha_run_opts opts = { .ret_error = &e, .ret_signal = &sig, .terminate = true };

        ASSERT_EQ(test_run_opts(interrupted_by, &(int){ SIGINT }, &opts), -ECANCELED);
        ASSERT_EQ(sig, SIGINT);
        ASSERT_STR(e.text, "cancelled by Ctrl-C");
        ASSERT_EQ(test_run_opts(interrupted_by, &(int){ SIGTERM }, &opts), -ECANCELED);
        ASSERT_EQ(sig, SIGTERM);
        ASSERT_STR(e.text, "cancelled by SIGTERM");
}

static int nobody_asks(__attribute__((unused)) void *arg)
{
        ASSERT_EQ(resha_test_signal(SIGTERM), -ESRCH);
        return resha_sleep(RESHA_MS(1));
}

TEST(sigterm_is_left_alone_unless_asked)
{
        SIM_ONLY();
        int sig = -1;

        ASSERT_OK(test_run_opts(nobody_asks, NULL, &(resha_run_opts){ .ret_signal = &sig }));
        ASSERT_EQ(sig, 0);
}

/* While the program has asked for it SIGTERM is the program's. */
static int takes_over(__attribute__((unused)) void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = open_for(SIGTERM);
        resha_signal_info info;

        ASSERT_OK(resha_test_signal(SIGTERM));
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_signal_closep(&s);
        ASSERT_OK(resha_test_signal(SIGTERM));
        return resha_sleep(RESHA_S(1));
}

TEST(sigterm_is_the_programs_while_it_asks_for_it)
{
        SIM_ONLY();
        ASSERT_EQ(test_run_opts(takes_over, NULL, &(resha_run_opts){ .terminate = true }), -ECANCELED);
}

/* ---- trials ---- */

struct served {
        int reloads, requests;
        bool drained;
};

static int serve(void *arg)
{
        struct served *v = arg;

        for (;;) {
                int rc = resha_sleep(RESHA_MS(10));
                if (rc < 0)
                        return rc;
                v->requests++;
        }
}

/* A server that reloads on SIGHUP and stops on SIGTERM. */
static int server(void *arg)
{
        struct served *v = arg;
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
        resha_signal_info info;
        RESHA_GROUP(g);
        int rc = resha_signal_open((const int[]){ SIGHUP, SIGTERM }, 2, &s);

        if (rc < 0)
                return rc;
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serve, v);
        while ((rc = resha_signal_next(s, &info)) == 1 && info.signal == SIGHUP)
                v->reloads++;
        v->drained = rc == 1;
        return resha_group_end(&g, rc < 0 ? rc : 0);
}

static int operator(__attribute__((unused)) void *arg)
{
        static const int order[] = { SIGHUP, SIGHUP, SIGTERM };

        for (int i = 0; i < 3; i++) {
                int rc = resha_sleep(RESHA_MS(30));
                if (rc == 0)
                        rc = resha_test_signal(order[i]);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int both(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, arg);
        resha_spawn(&g, operator, arg);
        return resha_group_end(&g, 0);
}

/* An operator who is cancelled would leave the server running. */
static int server_and_operator(void *arg)
{
        return resha_timeout(RESHA_S(10), both, arg);
}

static void check_server(void *state, int rc, const resha_test_trial *t)
{
        struct served *v = state;

        if (rc == 0 && !t->disturbed)
                resha_test_expect(v->drained && v->reloads == 2 && v->requests > 0);
}

TEST(a_server_with_signals_is_tested_in_trials)
{
        SIM_ONLY();
        ASSERT_EQ(resha_test_run(server_and_operator, &(resha_test_opts){ .state = sizeof(struct served),
                                                                          .check = check_server,
                                                                          .seeds = 5,
                                                                          .may_fail = { -ESRCH } }),
                  0);
}
