/* SPDX-License-Identifier: MIT */
/* resha_process_communicate() and resha_process_run(), with programs of the simulated world. */

#include <resha/test.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "test.h"

static const char *const NAME[] = { "program", NULL };

/* The program of a test: fn, with these options. */
static int start(resha_test_program_fn *fn, void *arg, resha_process_opts o, resha_process **ret)
{
        int rc = resha_test_program("program", fn, arg);

        o.argv = NAME;
        return rc < 0 ? rc : resha_process_spawn(&o, ret);
}

#define ALL_PIPES \
        (resha_process_opts) \
        { \
                .in = RESHA_PIPE, .out = RESHA_PIPE, .err = RESHA_PIPE \
        }
#define PROCESS(p) resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL
#define OUTPUT(o) resha_output o RESHA_CLEANUP(resha_output_free) = { 0 }

enum { MUCH = 300 * 1000 };

static char much[MUCH];

/* ---- all at once ---- */

/* Answers each piece on both outputs before it reads the next: who does not read both while it writes waits for
 * ever. */
static int answers(resha_test_process *p, void *arg)
{
        char buf[1000];
        ssize_t n;
        int rc = 0;

        (void)arg;
        while (rc == 0 && (n = resha_read(resha_test_process_stream(p, 0), buf, sizeof buf)) > 0) {
                rc = resha_write_all(resha_test_process_stream(p, 2), buf, (size_t)n, NULL);
                if (rc == 0)
                        rc = resha_write_all(resha_test_process_stream(p, 1), buf, (size_t)n, NULL);
        }
        return rc;
}

/* semantics 280 same
 * asyncio: communicate() feeds the input, reads both outputs at once, and waits for the exit.
 * resha: the same, by resha_process_communicate(). */
TASK(semantics_280_communicate_feeds_and_reads_both_at_once)
{
        PROCESS(p);
        OUTPUT(out);
        OUTPUT(err);

        SIM_ONLY();
        for (size_t i = 0; i < MUCH; i++)
                much[i] = (char)('a' + i % 23);
        ASSERT_EQ(start(answers, NULL, ALL_PIPES, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, much, MUCH, 0, &out, &err), 0);
        ASSERT_EQ(out.size, MUCH);
        ASSERT_EQ(err.size, MUCH);
        ASSERT_TRUE(memcmp(out.data, much, MUCH) == 0 && memcmp(err.data, much, MUCH) == 0);
        ASSERT_TRUE(out.data[MUCH] == 0 && err.data[MUCH] == 0);
        ASSERT_TRUE(resha_process_stdin(p) == NULL);
        ASSERT_EQ(resha_process_signal(p, SIGTERM), -ESRCH);
        return resha_process_check(p);
}

TASK(no_input_is_an_end_at_once_and_no_output_is_empty)
{
        PROCESS(p);
        OUTPUT(out);

        SIM_ONLY();
        ASSERT_EQ(start(answers, NULL, ALL_PIPES, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, NULL, 0, 0, &out, NULL), 0);
        ASSERT_EQ(out.size, 0);
        ASSERT_STR(out.data, "");
        return resha_process_check(p);
}

TASK(an_output_that_nobody_wants_is_read_and_dropped)
{
        PROCESS(p);
        OUTPUT(out);

        SIM_ONLY();
        ASSERT_EQ(start(answers, NULL, ALL_PIPES, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, much, MUCH, 0, &out, NULL), 0);
        ASSERT_EQ(out.size, MUCH);
        return resha_process_check(p);
}

static int says(resha_test_process *p, void *arg)
{
        return resha_write_all(resha_test_process_stream(p, 1), arg, strlen(arg), NULL);
}

TASK(what_comes_is_put_behind_what_is_there)
{
        OUTPUT(out);

        SIM_ONLY();
        for (int i = 0; i < 2; i++) {
                PROCESS(p);
                ASSERT_EQ(start(says, (char *)"word ", ALL_PIPES, &p), 0);
                ASSERT_EQ(resha_process_communicate(p, NULL, 0, 5, &out, NULL), 0);
        }
        ASSERT_STR(out.data, "word word ");
        return 0;
}

TASK(one_that_reads_nothing_of_its_input_is_no_failure)
{
        PROCESS(p);
        OUTPUT(out);

        SIM_ONLY();
        ASSERT_EQ(start(says, (char *)"enough", ALL_PIPES, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, much, MUCH, 0, &out, NULL), 0);
        ASSERT_STR(out.data, "enough");
        return resha_process_check(p);
}

static int closes_and_sleeps(resha_test_process *p, void *arg)
{
        (void)arg;
        for (int fd = 0; fd < 3; fd++)
                resha_test_process_close(p, fd);
        return resha_sleep(RESHA_S(5));
}

TASK(it_waits_for_the_process_and_not_for_its_pipes_alone)
{
        PROCESS(p);
        OUTPUT(out);
        resha_instant t = resha_now();

        SIM_ONLY();
        ASSERT_EQ(start(closes_and_sleeps, NULL, ALL_PIPES, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, much, MUCH, 0, &out, NULL), 0);
        ASSERT_ELAPSED(t, 5000);
        return 0;
}

/* ---- limits ---- */

static int babbles(resha_test_process *p, void *arg)
{
        int rc = 0, *fd = arg;

        while (rc == 0)
                rc = resha_write_all(resha_test_process_stream(p, *fd), much, 16 * 1024, NULL);
        return rc;
}

TASK(too_much_is_an_error_and_what_came_is_there)
{
        SIM_ONLY();
        for (int fd = 1; fd <= 2; fd++) {
                PROCESS(p);
                OUTPUT(out);
                OUTPUT(err);
                ASSERT_EQ(start(babbles, &fd, ALL_PIPES, &p), 0);
                ASSERT_EQ(resha_process_communicate(p, NULL, 0, 1000, &out, &err), -EMSGSIZE);
                ASSERT_HAS(resha_error_of(-EMSGSIZE)->text, fd == 1 ? "program: its standard output" : "error");
                ASSERT_HAS(resha_error_of(-EMSGSIZE)->text, "1000 bytes");
                ASSERT_EQ((fd == 1 ? &out : &err)->size, 1000);
                ASSERT_EQ((fd == 1 ? &err : &out)->size, 0);
                ASSERT_EQ(resha_process_signal(p, 0), 0); /* it goes on */
        }
        return 0;
}

TASK(as_much_as_the_limit_is_not_too_much)
{
        PROCESS(p);
        OUTPUT(out);

        SIM_ONLY();
        ASSERT_EQ(start(says, (char *)"12345", ALL_PIPES, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, NULL, 0, 5, &out, NULL), 0);
        ASSERT_STR(out.data, "12345");
        return 0;
}

/* ---- pipes that others hold ---- */

static int holds(resha_test_process *p, void *arg)
{
        resha_duration *d = arg;
        int rc = resha_sleep(*d);

        return rc < 0 ? rc : resha_write_all(resha_test_process_stream(p, 1), "late", 4, NULL);
}

static int leaves_one(resha_test_process *p, void *arg)
{
        int rc = resha_test_process_fork(p, holds, arg);

        if (rc == 0)
                rc = resha_write_all(resha_test_process_stream(p, 1), much, 50 * 1000, NULL);
        return rc;
}

/* One that writes after `ms`, and the time that is given: the milliseconds that communicate took, and the output. */
static int64_t held(int64_t ms, resha_duration time, size_t limit, resha_output *out)
{
        PROCESS(p);
        resha_duration d = RESHA_MS(ms);
        resha_instant t = resha_now();
        resha_process_opts o = ALL_PIPES;

        o.held = time;
        ASSERT_EQ(start(leaves_one, &d, o, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, NULL, 0, limit, out, NULL), 0);
        ASSERT_EQ(resha_process_check(p), 0);
        int64_t took = test_ms_since(t);
        ASSERT_EQ(resha_sleep(RESHA_MS(ms + 1)), 0); /* d is borrowed */
        return took;
}

/* It ends with the process: what another one holds open is read for a while, and all that the process itself has
 * written is there. */
TASK(a_pipe_that_another_process_holds_is_read_for_a_second)
{
        OUTPUT(out);

        SIM_ONLY();
        int64_t took = held(3600 * 1000, (resha_duration){ 0 }, 0, &out);
        ASSERT_TRUE(took >= 1000 && took <= 1050);
        ASSERT_EQ(out.size, 50 * 1000);
        ASSERT_TRUE(out.held);
        return 0;
}

TASK(one_that_ends_within_that_time_is_read_to_its_end)
{
        OUTPUT(out);

        SIM_ONLY();
        ASSERT_EQ(held(500, (resha_duration){ 0 }, 0, &out), 500);
        ASSERT_EQ(out.size, 50 * 1000 + 4);
        ASSERT_FALSE(out.held);
        return 0;
}

TASK(no_time_at_all_is_still_all_that_the_process_has_written)
{
        OUTPUT(out);

        SIM_ONLY();
        ASSERT_TRUE(held(1000, RESHA_NS(-1), 50 * 1000, &out) <= 50);
        ASSERT_EQ(out.size, 50 * 1000);
        ASSERT_TRUE(out.held);
        return 0;
}

TASK(or_it_is_waited_for_without_limit)
{
        OUTPUT(out);

        SIM_ONLY();
        ASSERT_EQ(held(3600 * 1000, RESHA_FOREVER, 0, &out), 3600 * 1000);
        ASSERT_EQ(out.size, 50 * 1000 + 4);
        ASSERT_FALSE(out.held);
        return 0;
}

static int leaves_a_babbler(resha_test_process *p, void *arg)
{
        return resha_test_process_fork(p, babbles, arg);
}

TASK(one_that_writes_on_and_on_is_left_too)
{
        PROCESS(p);
        OUTPUT(out);
        int fd = 1;
        resha_process_opts o = ALL_PIPES;

        SIM_ONLY();
        o.held = RESHA_NS(-1);
        o.group = true;
        ASSERT_EQ(start(leaves_a_babbler, &fd, o, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, NULL, 0, 0, &out, NULL), 0);
        ASSERT_TRUE(out.held && out.size > 0 && out.size < 10 << 20);
        return 0;
}

static int drips(resha_test_process *p, void *arg)
{
        int rc = 0;

        (void)arg;
        for (int i = 0; i < 10 * 1000 && rc == 0; i++)
                if ((rc = resha_sleep(RESHA_MS(10))) == 0)
                        rc = resha_write_all(resha_test_process_stream(p, 1), "x", 1, NULL);
        return rc;
}

static int leaves_one_that_drips(resha_test_process *p, void *arg)
{
        return resha_test_process_fork(p, drips, arg);
}

TASK(and_one_that_always_writes_a_little_just_in_time)
{
        PROCESS(p);
        OUTPUT(out);
        resha_instant t = resha_now();
        resha_process_opts o = ALL_PIPES;

        SIM_ONLY();
        o.held = RESHA_NS(-1);
        o.group = true;
        ASSERT_EQ(start(leaves_one_that_drips, NULL, o, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, NULL, 0, 0, &out, NULL), 0);
        ASSERT_TRUE(test_ms_since(t) <= 100);
        ASSERT_TRUE(out.held);
        return 0;
}

/* ---- the end comes from elsewhere ---- */

static int says_and_sleeps(resha_test_process *p, void *arg)
{
        int rc = says(p, arg);

        return rc < 0 ? rc : resha_sleep(RESHA_S(10));
}

struct talk {
        resha_process *p;
        resha_output *out;
        size_t n; /* bytes of `much` are the input */
        int rc;
};

static int talk(void *arg)
{
        struct talk *t = arg;

        return t->rc = resha_process_communicate(t->p, much, t->n, 0, t->out, NULL);
}

/* semantics 282 better
 * asyncio: a communicate() that is cancelled loses what it has read, and the child goes on.
 * resha: what has come lies with the caller; the process goes on until its owner ends it, and a second
 * resha_process_communicate() goes on reading. */
TASK(semantics_282_output_is_kept_by_a_cancel)
{
        PROCESS(p);
        OUTPUT(out);
        struct talk t = { .out = &out };

        SIM_ONLY();
        ASSERT_EQ(start(says_and_sleeps, (char *)"until now", ALL_PIPES, &p), 0);
        t.p = p;
        ASSERT_EQ(resha_timeout(RESHA_S(2), talk, &t), -ETIME);
        ASSERT_EQ(t.rc, -ECANCELED);
        ASSERT_STR(out.data, "until now");
        ASSERT_FALSE(out.held);
        ASSERT_EQ(resha_process_signal(p, 0), 0);
        ASSERT_EQ(talk(&t), 0); /* and goes on */
        ASSERT_STR(out.data, "until now");
        return resha_process_check(p);
}

static int sleeps_and_answers(resha_test_process *p, void *arg)
{
        int rc = resha_sleep(RESHA_S(5));

        return rc < 0 ? rc : answers(p, arg);
}

TASK(input_is_not_written_twice_after_a_cancel)
{
        PROCESS(p);
        OUTPUT(out);
        struct talk t = { .out = &out, .n = MUCH };

        SIM_ONLY();
        for (size_t i = 0; i < MUCH; i++)
                much[i] = (char)('a' + i % 23);
        ASSERT_EQ(start(sleeps_and_answers, NULL, ALL_PIPES, &p), 0);
        t.p = p;
        ASSERT_EQ(resha_timeout(RESHA_S(2), talk, &t), -ETIME); /* the pipe is full */
        ASSERT_EQ(talk(&t), 0);
        ASSERT_EQ(out.size, MUCH);
        ASSERT_EQ(memcmp(out.data, much, MUCH), 0);
        ASSERT_EQ(talk(&t), -EINVAL); /* that would be more input, and there is no pipe any more */
        return resha_process_check(p);
}

static int reads_and_sleeps(resha_test_process *p, void *arg)
{
        int rc = answers(p, arg);

        return rc < 0 ? rc : resha_sleep(RESHA_S(5));
}

TASK(nor_if_all_of_it_was_written_before)
{
        PROCESS(p);
        OUTPUT(out);
        struct talk t = { .out = &out, .n = 1000 };

        SIM_ONLY();
        ASSERT_EQ(start(reads_and_sleeps, NULL, ALL_PIPES, &p), 0);
        t.p = p;
        ASSERT_EQ(resha_timeout(RESHA_S(2), talk, &t), -ETIME);
        ASSERT_EQ(talk(&t), 0);
        ASSERT_EQ(out.size, 1000);
        return resha_process_check(p);
}

TASK(the_owner_may_close_it_meanwhile)
{
        OUTPUT(out);
        resha_process *p = NULL;
        struct talk t = { .out = &out };
        RESHA_GROUP(g);

        SIM_ONLY();
        ASSERT_EQ(start(says_and_sleeps, (char *)"until now", ALL_PIPES, &p), 0);
        t.p = p;
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, talk, &t);
        ASSERT_EQ(resha_sleep(RESHA_S(1)), 0);
        resha_process_close(p);
        ASSERT_EQ(resha_group_end(&g, 0), -EBADF);
        ASSERT_STR(out.data, "until now");
        return 0;
}

TASK(or_when_only_its_pipes_are_waited_for)
{
        OUTPUT(out);
        resha_process *p = NULL;
        struct talk t = { .out = &out };
        resha_duration d = RESHA_S(100);
        resha_process_opts o = ALL_PIPES;
        RESHA_GROUP(g);

        SIM_ONLY();
        o.held = RESHA_FOREVER;
        o.group = true;
        ASSERT_EQ(start(leaves_one, &d, o, &p), 0);
        t.p = p;
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, talk, &t);
        ASSERT_EQ(resha_sleep(RESHA_S(1)), 0);
        resha_process_close(p);
        ASSERT_EQ(resha_group_end(&g, 0), -EBADF);
        return 0;
}

/* ---- misuse ---- */

TASK(misuse_of_communicate_is_told)
{
        PROCESS(p);
        PROCESS(q);
        OUTPUT(out);
        struct talk t = { .out = &out };
        RESHA_GROUP(g);

        SIM_ONLY();
        ASSERT_EQ(start(says_and_sleeps, (char *)"x", (resha_process_opts){ .out = RESHA_PIPE }, &p), 0);
        ASSERT_EQ(resha_process_communicate(p, "x", 1, 0, NULL, NULL), -EINVAL);
        ASSERT_EQ(start(says, (char *)"x", ALL_PIPES, &q), 0);
        ASSERT_EQ(resha_process_communicate(q, NULL, 1, 0, NULL, NULL), -EINVAL);
        ASSERT_EQ(resha_process_run(NULL, NULL, 0, 0, &out, NULL, NULL), -EINVAL);
        t.p = p;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, talk, &t);
        ASSERT_EQ(resha_yield(), 0);
        ASSERT_EQ(resha_process_communicate(p, NULL, 0, 0, NULL, NULL), -EBUSY);
        return resha_group_end(&g, 0);
}

/* ---- the whole of it ---- */

static int run(resha_test_program_fn *fn, void *arg, const char *input, resha_output *out, resha_exit *ret)
{
        int rc = resha_test_program("program", fn, arg);
        size_t n = input ? strlen(input) : 0;

        return rc < 0 ? rc
                      : resha_process_run(&(resha_process_opts){ .argv = NAME, .err = RESHA_NULL }, input, n, 100, out,
                                          NULL, ret);
}

TASK(run_is_all_of_it)
{
        OUTPUT(out);
        resha_exit e = { .code = 99 };

        SIM_ONLY();
        ASSERT_EQ(run(answers, NULL, "to and fro", &out, NULL), 0);
        ASSERT_STR(out.data, "to and fro");
        ASSERT_EQ(run(answers, NULL, NULL, &out, &e), 0); /* without input there is none */
        ASSERT_TRUE(e.code == 0 && !e.signalled);
        return 0;
}

static int seven(resha_test_process *p, void *arg)
{
        (void)p, (void)arg;
        return 7;
}

TASK(run_gives_the_status_or_makes_it_an_error)
{
        resha_exit e;

        SIM_ONLY();
        ASSERT_EQ(run(seven, NULL, NULL, NULL, &e), 0);
        ASSERT_EQ(e.code, 7);
        ASSERT_EQ(run(seven, NULL, NULL, NULL, NULL), RESHA_EPROCESS);
        ASSERT_HAS(resha_error_of(RESHA_EPROCESS)->text, "exit status 7");
        ASSERT_EQ(run(NULL, NULL, NULL, NULL, &e), -ENOENT);
        return 0;
}

static int is_ended(resha_test_process *p, void *arg)
{
        int rc = says_and_sleeps(p, arg);

        note(rc == -ECANCELED ? "ended" : "by itself");
        return rc;
}

static int run_it(void *arg)
{
        return run(is_ended, (char *)"first", NULL, arg, NULL);
}

TASK(run_ends_the_process_if_it_is_cancelled)
{
        OUTPUT(out);
        resha_instant t = resha_now();

        SIM_ONLY();
        ASSERT_EQ(resha_timeout(RESHA_S(1), run_it, &out), -ETIME);
        ASSERT_ELAPSED(t, 1000);
        ASSERT_STR(out.data, "first");
        ASSERT_STR(notes(), "ended");
        return 0;
}

TASK(run_ends_the_process_if_it_says_too_much)
{
        OUTPUT(out);
        int fd = 1;

        SIM_ONLY();
        ASSERT_EQ(run(babbles, &fd, NULL, &out, NULL), -EMSGSIZE);
        ASSERT_EQ(out.size, 100);
        return 0;
}
