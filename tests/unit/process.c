/* SPDX-License-Identifier: MIT */
/* Waiting for processes, and their end, with programs of the simulated world: on its clock, and so as trials. With real
 * ones: tests/real/process*.c. */

#include <resha/test.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "test.h"

#define PROCESS(p) resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL

/* Milliseconds, and what it is then. */
struct life {
        int ms, status;
};

static int lives(resha_test_process *p, void *arg)
{
        struct life *l = arg;
        int rc = resha_sleep(RESHA_MS(l->ms));

        (void)p;
        return rc < 0 ? rc : l->status;
}

static int start(resha_test_program_fn *fn, void *arg, resha_process_opts o, resha_process **ret)
{
        static const char *const argv[] = { "program", NULL };
        int rc = resha_test_program("program", fn, arg);

        o.argv = argv;
        return rc < 0 ? rc : resha_process_spawn(&o, ret);
}

static int waits(void *arg)
{
        resha_exit e = { .code = -1 };
        int rc = resha_process_wait(arg, &e);

        note("%d", rc < 0 ? rc : e.code);
        return rc;
}

TASK(all_who_wait_get_the_status_at_once)
{
        struct life life = { 100, 3 };
        resha_instant t = resha_now();
        PROCESS(p);
        RESHA_GROUP(g);

        SIM_ONLY();
        ASSERT_EQ(start(lives, &life, (resha_process_opts){ 0 }, &p), 0);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, waits, p);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_ELAPSED(t, 100);
        ASSERT_STR(notes(), "3 3 3");
        ASSERT_EQ(waits(p), 0); /* and later */
        ASSERT_STR(notes(), "3");
        return 0;
}

TASK(one_of_them_may_be_cancelled)
{
        struct life life = { 100, 3 };
        resha_task handles[3] = { 0 };
        PROCESS(p);
        RESHA_GROUP(g);

        SIM_ONLY();
        ASSERT_EQ(start(lives, &life, (resha_process_opts){ 0 }, &p), 0);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                resha_spawn_task(&g, waits, p, &handles[i]);
        ASSERT_EQ(resha_sleep(RESHA_MS(10)), 0);
        resha_task_cancel(&handles[0]);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_STR(notes(), "-125 3 3");
        return 0;
}

TASK(its_end_sends_away_who_waits)
{
        struct life life = { 3600 * 1000, 0 };
        resha_process *p = NULL;
        RESHA_GROUP(g);

        SIM_ONLY();
        ASSERT_EQ(start(lives, &life, (resha_process_opts){ 0 }, &p), 0);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < 2; i++)
                resha_spawn(&g, waits, p);
        ASSERT_EQ(resha_sleep(RESHA_MS(10)), 0);
        resha_process_close(p);
        ASSERT_EQ(resha_group_end(&g, 0), -EBADF);
        ASSERT_STR(notes(), "-9 -9");
        return 0;
}

/* ---- the end ---- */

static int takes_its_time(resha_test_process *p, void *arg)
{
        struct life *l = arg;
        int sig = 0, rc = resha_test_process_on(p, SIGTERM, RESHA_TEST_KEEP);

        if (rc == 0)
                rc = resha_test_process_signal(p, &sig);
        note("sig%d", sig);
        if (rc == 0)
                rc = resha_sleep(RESHA_MS(l->ms));
        note(rc < 0 ? "killed" : "done");
        return rc < 0 ? rc : l->status;
}

/* A close of one that needs `ms` after SIGTERM, with the default grace: how long it took. */
static int64_t close_takes(int ms, resha_duration grace)
{
        struct life life = { ms, 0 };
        resha_process *p = NULL;

        ASSERT_EQ(start(takes_its_time, &life, (resha_process_opts){ .grace = grace }, &p), 0);
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), 0);
        resha_instant t = resha_now();
        resha_process_close(p);
        return test_ms_since(t);
}

TASK(the_end_has_its_grace)
{
        SIM_ONLY();
        ASSERT_EQ(close_takes(2999, (resha_duration){ 0 }), 2999);
        ASSERT_STR(notes(), "sig15 done");
        ASSERT_EQ(close_takes(3001, (resha_duration){ 0 }), 3000);
        ASSERT_STR(notes(), "sig15 killed");
        ASSERT_EQ(close_takes(500, RESHA_MS(400)), 400);
        ASSERT_STR(notes(), "sig15 killed");
        ASSERT_EQ(close_takes(500, RESHA_NS(-1)), 0);
        ASSERT_STR(notes(), "sig0 killed");
        return 0;
}

static int owns_one(void *arg)
{
        PROCESS(p);
        int rc = start(takes_its_time, arg, (resha_process_opts){ 0 }, &p);

        return rc < 0 ? rc : resha_process_wait(p, NULL);
}

TASK(a_cancelled_owner_waits_for_its_end)
{
        struct life life = { 1000, 0 };
        resha_instant t = resha_now();

        SIM_ONLY();
        ASSERT_EQ(resha_timeout(RESHA_MS(500), owns_one, &life), -ETIME);
        ASSERT_ELAPSED(t, 1500);
        ASSERT_STR(notes(), "sig15 done");
        return 0;
}

TASK(a_stopped_one_is_ended_too)
{
        struct life life = { 3600 * 1000, 0 };
        resha_process *p = NULL;

        SIM_ONLY();
        ASSERT_EQ(start(lives, &life, (resha_process_opts){ 0 }, &p), 0);
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), 0);
        ASSERT_EQ(resha_process_signal(p, SIGSTOP), 0);
        resha_instant t = resha_now();
        resha_process_close(p);
        ASSERT_ELAPSED(t, 0);
        return 0;
}

static int reads_to_the_end(resha_test_process *p, void *arg)
{
        char buf[16];
        ssize_t n;

        (void)arg;
        do
                n = resha_read(resha_test_process_stream(p, 0), buf, sizeof buf);
        while (n > 0);
        return (int)n;
}

TASK(its_input_ends_before_it_is_told_to_end)
{
        resha_process *p = NULL;

        SIM_ONLY();
        ASSERT_EQ(start(reads_to_the_end, NULL, (resha_process_opts){ .in = RESHA_PIPE }, &p), 0);
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), 0);
        resha_instant t = resha_now();
        resha_process_close(p);
        ASSERT_ELAPSED(t, 0);
        return 0;
}

static int with_two(void *arg)
{
        struct life *life = arg;
        PROCESS(p);
        PROCESS(q);
        int rc = start(takes_its_time, life, (resha_process_opts){ 0 }, &p);

        if (rc == 0)
                rc = start(takes_its_time, life, (resha_process_opts){ 0 }, &q);
        return rc < 0 ? rc : resha_sleep(RESHA_MS(1));
}

TASK(they_end_in_reverse_order)
{
        struct life life = { 100, 0 };
        resha_instant t = resha_now();

        SIM_ONLY();
        ASSERT_EQ(with_two(&life), 0);
        ASSERT_ELAPSED(t, 201);
        ASSERT_STR(notes(), "sig15 done sig15 done");
        return 0;
}

static int spawns(void *arg)
{
        return start(lives, arg, (resha_process_opts){ 0 }, &(resha_process *){ NULL });
}

TASK(a_cancelled_spawn_starts_nothing)
{
        struct life life = { 0, 0 };

        SIM_ONLY();
        ASSERT_EQ(resha_timeout(RESHA_MS(0), spawns, &life), -ETIME);
        return 0;
}

/* ---- one that nobody has closed ---- */

static int leaves_it(void *arg)
{
        resha_process *p;

        return start(lives, arg, (resha_process_opts){ 0 }, &p);
}

static void on_report(const resha_report *r, void *arg)
{
        (void)arg;
        note("report%d", (int)r->kind == RESHA_REPORT_LEFT_OPEN);
}

TEST(one_that_nobody_has_closed_is_ended_with_the_run)
{
        struct life life = { 3600 * 1000, 0 };

        SIM_ONLY();
        ASSERT_EQ(test_run_opts(leaves_it, &life, &(resha_run_opts){ .report = on_report }), 0);
        ASSERT_STR(notes(), "report1");
}

/* ---- failures ---- */

TASK(after_a_failed_spawn_the_next_one_is_as_ever)
{
        struct life life = { 0, 0 };

        SIM_ONLY();
        for (int i = 0; i < 2; i++) { /* the record is the same each time */
                PROCESS(p);
                ASSERT_EQ(start(NULL, NULL, (resha_process_opts){ .in = RESHA_PIPE }, &p), -ENOENT);
                ASSERT_HAS(resha_error_of(-ENOENT)->text, "program: ");
                ASSERT_EQ(start(lives, &life, (resha_process_opts){ .in = RESHA_PIPE }, &p), 0);
                ASSERT_EQ(resha_process_check(p), 0);
        }
        return 0;
}
