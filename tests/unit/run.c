/* SPDX-License-Identifier: MIT */
/* Runs: results, options, reports, the end of a run; resha_main() as a process sees it. Ctrl-C: interrupt.c. */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

static int gives(void *arg)
{
        return *(int *)arg;
}

TEST(run_gives_the_result_of_its_function)
{
        const int results[] = { 0, 5, 100000, -EIO, -ECANCELED };

        for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
                ASSERT_EQ(test_run_opts(gives, (int *)&results[i], NULL), results[i]);
}

static int backend_is(void *arg)
{
        ASSERT_STR(resha_backend(), arg);
        return 0;
}

TEST(run_backend_by_option_and_environment)
{
        ASSERT_STR(resha_backend(), NULL);
        ASSERT_OK(resha_run(backend_is, (char *)"sim", &(resha_run_opts){ .backend = "sim:7" }));
        ASSERT_OK(resha_run(backend_is, (char *)"sim", &(resha_run_opts){ .backend = "sim" }));
        ASSERT_OK(resha_run(backend_is, (char *)"epoll", &(resha_run_opts){ .backend = "epoll" }));
        setenv("RESHA_BACKEND", "sim:3", 1);
        ASSERT_OK(resha_run(backend_is, (char *)"sim", NULL));
        ASSERT_OK(resha_run(backend_is, (char *)"epoll", &(resha_run_opts){ .backend = "epoll" }));
        unsetenv("RESHA_BACKEND");
        ASSERT_STR(resha_backend(), NULL);
}

TEST(run_refuses_bad_options)
{
        const char *names[] = { "sim:", "sim:x", "sim:1x", "simulation", "kqueue", "epoll:1" };

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                ASSERT_EQ(resha_run(gives, &(int){ 1 }, &(resha_run_opts){ .backend = names[i] }), -EINVAL);
        resha_run_opts o = { .backend = "sim" };
        o._reserved[2] = 1;
        ASSERT_EQ(resha_run(gives, &(int){ 1 }, &o), -EINVAL);
        ASSERT_EQ(test_run_opts(gives, &(int){ 1 }, &(resha_run_opts){ .threads = 100000 }), -EINVAL);
}

static int notes_its_number(void *arg)
{
        note("%d", *(int *)arg);
        return 0;
}

static int order(__attribute__((unused)) void *arg)
{
        int n[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

        return resha_gather(notes_its_number, n, 10, sizeof n[0], NULL);
}

TEST(run_seeds_give_orders_of_their_own_and_always_the_same)
{
        char first[64];
        int different = 0;

        ASSERT_OK(resha_run(order, NULL, &(resha_run_opts){ .backend = "sim:0" }));
        ASSERT_STR(notes(), "0 1 2 3 4 5 6 7 8 9");
        for (int seed = 1; seed <= 10; seed++) {
                char name[16];
                snprintf(name, sizeof name, "sim:%d", seed);
                ASSERT_OK(resha_run(order, NULL, &(resha_run_opts){ .backend = name }));
                snprintf(first, sizeof first, "%s", notes());
                different += strcmp(first, "0 1 2 3 4 5 6 7 8 9") != 0;
                ASSERT_OK(resha_run(order, NULL, &(resha_run_opts){ .backend = name }));
                ASSERT_STR(notes(), first);
        }
        ASSERT_TRUE(different >= 9);
}

static int runs_inside(__attribute__((unused)) void *arg)
{
        ASSERT_EQ(resha_run(gives, &(int){ 1 }, NULL), -EBUSY);
        return resha_sleep(MS(1));
}

/* semantics 306 same
 * asyncio: run() inside a running loop raises.
 * resha: resha_run() there gives -EBUSY, and the loop goes on. */
TEST(semantics_306_run_inside_a_running_loop)
{
        RUN(runs_inside, NULL);
}

TEST(run_again_and_again)
{
        for (int i = 0; i < 50; i++)
                ASSERT_EQ(test_run_opts(gives, &i, NULL), i);
}

static int waits_for_ever(__attribute__((unused)) void *arg)
{
        resha_event never = { { 0 } };
        int rc = resha_event_wait(&never);

        note("main %d", rc);
        return rc;
}

static void note_report(const resha_report *r, void *arg)
{
        if (arg)
                ASSERT_STR(arg, "argument");
        note("report %d %d %s: %s", r->kind, r->code, r->task ? r->task : "-", r->text);
}

TEST(run_deadlock_of_the_main_task)
{
        ASSERT_EQ(test_run_opts(waits_for_ever, NULL, &(resha_run_opts){ .report = note_report }), -EDEADLK);
        const char *n = notes();
        ASSERT_HAS(n, "report 4 -35 main: ");
        ASSERT_HAS(n, "main -125"); /* it could clean up */
}

static int waits_for(void *arg)
{
        return resha_task_wait(arg, NULL);
}

static int deadlocked_pair(__attribute__((unused)) void *arg)
{
        resha_task a = { 0 }, b = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, waits_for, &b, &a));
        ASSERT_OK(resha_spawn_task(&g, waits_for, &a, &b));
        return resha_group_end(&g, 0);
}

TEST(run_deadlock_of_two_tasks_names_both)
{
        ASSERT_EQ(test_run_opts(deadlocked_pair, NULL,
                                &(resha_run_opts){ .report = note_report, .report_arg = (char *)"argument" }),
                  -EDEADLK);
        const char *n = notes();
        ASSERT_HAS(n, "report 4 -35 main:");
        ASSERT_HAS(n, "report 4 -35 waits_for:");
        ASSERT_HAS(n, "task");
}

static int sigpipe_is(void *arg)
{
        struct sigaction now;

        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_IGN);
        return *(int *)arg;
}

static void on_sigpipe(__attribute__((unused)) int sig)
{
}

TEST(run_ignores_sigpipe_and_restores_it)
{
        struct sigaction mine = { .sa_handler = on_sigpipe }, now;

        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
        ASSERT_EQ(test_run_opts(sigpipe_is, &(int){ 3 }, NULL), 3);
        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);

        ASSERT_EQ(sigaction(SIGPIPE, &mine, NULL), 0);
        ASSERT_EQ(test_run_opts(sigpipe_is, &(int){ -EIO }, NULL), -EIO); /* after a failure too */
        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == on_sigpipe);
}

struct beside {
        int up[2], down[2]; /* pipes: it runs; it may end */
        pthread_t thread;
};

static int runs_until_told(void *arg)
{
        struct beside *b = arg;
        char c = 0;

        ASSERT_EQ(write(b->up[1], &c, 1), 1);
        ASSERT_EQ(read(b->down[0], &c, 1), 1);
        return sigpipe_is(&(int){ 0 });
}

static void *run_beside(void *arg)
{
        ASSERT_EQ(resha_run(runs_until_told, arg, &(resha_run_opts){ .backend = "epoll" }), 0);
        return NULL;
}

static int starts_a_run_beside(void *arg)
{
        struct beside *b = arg;
        char c;

        ASSERT_EQ(pthread_create(&b->thread, NULL, run_beside, b), 0);
        ASSERT_EQ(read(b->up[0], &c, 1), 1);
        return 0;
}

TEST(run_ignores_sigpipe_until_the_last_run_at_a_time_has_ended)
{
        struct beside b;
        struct sigaction now;

        ASSERT_EQ(pipe(b.up) | pipe(b.down), 0);
        ASSERT_EQ(test_run_opts(starts_a_run_beside, &b, NULL), 0); /* ends first */
        ASSERT_EQ(write(b.down[1], "", 1), 1);
        ASSERT_EQ(pthread_join(b.thread, NULL), 0);
        ASSERT_EQ(sigaction(SIGPIPE, NULL, &now), 0);
        ASSERT_TRUE(now.sa_handler == SIG_DFL);
        for (int i = 0; i < 2; i++)
                ASSERT_EQ(close(b.up[i]) | close(b.down[i]), 0);
}

static int leaves_children_in_early_return(void *arg)
{
        struct job *j = arg;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, j);
        ASSERT_OK(resha_yield());
        return 3;
}

/* semantics 301 same
 * asyncio: at its end run() cancels the tasks that are left and waits for them, then closes generators, joins the
 * threads and closes the loop.
 * resha: groups have cancelled and joined their tasks when the main task returns; then pools and look-ups are ended,
 * the loop is closed, and the signals are as before. */
TEST(semantics_301_run_ends_after_all_tasks_have)
{
        struct job j = JOB("a", 1000, .clean = 2);

        ASSERT_EQ(test_run_opts(leaves_children_in_early_return, &j, NULL), 3);
        ASSERT_STR(notes(), "a+ a!");
}

static int fails_and_leaves_children(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, job, arg);
        ASSERT_OK(resha_yield());
        return resha_fail(-ENOENT, "the main task failed");
}

/* semantics 302 same
 * asyncio: when main raises, the same is cleaned up first.
 * resha: a main task that returns a failure with its group open: the children are cancelled, clean up and are joined,
 * and the failure is the result of the run. */
TEST(semantics_302_failed_main_task_is_cleaned_up_after_first)
{
        struct job j = JOB("a", 1000, .clean = 2);
        resha_error e;

        ASSERT_EQ(test_run_opts(fails_and_leaves_children, &j, &(resha_run_opts){ .ret_error = &e }), -ENOENT);
        ASSERT_STR(notes(), "a+ a!");
        ASSERT_STR(e.text, "the main task failed");
}

static int fails_in_its_cleanup(__attribute__((unused)) void *arg)
{
        int rc = resha_sleep(RESHA_S(1000));

        return rc == -ECANCELED ? resha_fail(-EIO, "could not save") : rc;
}

static int leaves_a_failing_cleanup(__attribute__((unused)) void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, fails_in_its_cleanup, NULL);
        ASSERT_OK(resha_yield());
        return 3;
}

/* semantics 303 same
 * asyncio: a task that is left over and fails while it cleans up is told to the exception handler.
 * resha: to the report sink, as an error that was lost: the block that owned the task was left with success. */
TEST(semantics_303_failure_of_a_left_over_task_is_reported)
{
        ASSERT_EQ(test_run_opts(leaves_a_failing_cleanup, NULL, &(resha_run_opts){ .report = note_report }), 3);
        const char *n = notes();
        ASSERT_HAS(n, "report 1 -5 ");
        ASSERT_HAS(n, "could not save");
}

RESHA_LOCAL(visits, int, 0);

static int visit(__attribute__((unused)) void *arg)
{
        int n = *(const int *)resha_local_get(&visits) + 1;

        ASSERT_OK(resha_local_set(&visits, &n));
        note("%d", n);
        return resha_yield();
}

static int visits_twice(void *arg)
{
        int rc = visit(arg);

        return rc < 0 ? rc : visit(arg);
}

/* semantics 312 better
 * asyncio: a Runner runs one main after the other and keeps the context between them; once closed it raises.
 * resha: there is no Runner: the main task calls one function after the other, and its task-locals stay. Each
 * resha_run() starts anew, as often as one likes, and nothing of the former is left. */
TEST(semantics_312_runs_start_anew_and_calls_in_a_run_do_not)
{
        for (int i = 0; i < 3; i++) {
                ASSERT_OK(test_run_opts(visits_twice, NULL, NULL));
                ASSERT_STR(notes(), "1 2");
        }
}

static int large_locals(__attribute__((unused)) void *arg)
{
        volatile char locals[600 * 1024];

        for (size_t i = 0; i < sizeof locals; i += 4096)
                locals[i] = 1;
        return resha_yield() + locals[4096];
}

TEST(run_stack_size)
{
        ASSERT_EQ(test_run_opts(large_locals, NULL, &(resha_run_opts){ .stack_size = 1024 * 1024 }), 1);
}

/* ---- resha_main() ---- */

static int main_program(void *arg)
{
        setenv("RESHA_BACKEND", test_backend(), 1);
        return resha_main(arg, NULL);
}

static int fine(__attribute__((unused)) void *arg)
{
        printf("out\n");
        return 42;
}

TEST(main_success_is_status_0_and_prints_nothing)
{
        struct test_child c;

        test_child(main_program, (void *)fine, &c);
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 0);
        ASSERT_STR(c.text, "out\n");
}

enum { FAILS_AT = __LINE__ + 3 };
static int fails(__attribute__((unused)) void *arg)
{
        return resha_fail(-ENOENT, "no rate for XXX");
}

TEST(main_failure_is_status_1_and_one_line)
{
        struct test_child c;
        char expected[128];

        test_child(main_program, (void *)fails, &c);
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 1);
        snprintf(expected, sizeof expected, "tests/unit/run.c:%d: no rate for XXX\n", FAILS_AT);
        ASSERT_STR(c.text, expected);
}

static int fails_without_a_record(__attribute__((unused)) void *arg)
{
        return -ECONNREFUSED;
}

TEST(main_failure_without_a_record)
{
        struct test_child c;

        test_child(main_program, (void *)fails_without_a_record, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 1);
        ASSERT_STR(c.text, "Connection refused\n");
}

static int third_fails(__attribute__((unused)) void *arg)
{
        struct job j[] = { JOB("a", 1), JOB("b", 900), JOB("c", 300 / test_stretch(), .result = -EIO) };
        int rc = resha_gather(job, j, 3, sizeof j[0], NULL);

        notes();
        return rc;
}

TEST(main_failure_of_an_item_says_which)
{
        struct test_child c;

        test_child(main_program, (void *)third_fails, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 1);
        ASSERT_HAS(c.text, "tests/unit/job.h:");
        ASSERT_HAS(c.text, ": c failed (task 3 of 3 from tests/unit/run.c:");
        ASSERT_HAS(c.text, ", after 0.3 s; 1 other was cancelled)\n");
}

static int cancelled_by_nobody(__attribute__((unused)) void *arg)
{
        return -ECANCELED;
}

TEST(main_cancelled_without_ctrl_c_is_a_failure)
{
        struct test_child c;

        test_child(main_program, (void *)cancelled_by_nobody, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 1);
        ASSERT_TRUE(c.text[0]);
}

static int loses_a_failure(__attribute__((unused)) void *arg)
{
        struct job j = JOB("a", 1, .result = -EIO);

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, job, &j);
        return resha_sleep(MS(20));
}

TEST(main_prints_reports)
{
        struct test_child c;

        test_child(main_program, (void *)loses_a_failure, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 0);
        ASSERT_HAS(c.text, "resha: task \"");
        ASSERT_HAS(c.text, "a failed");
}

static int run_of_main_task(void *arg)
{
        return test_run_opts(arg, NULL, NULL) < 0;
}

TEST(run_prints_nothing)
{
        struct test_child c;

        test_child(run_of_main_task, (void *)loses_a_failure, &c);
        ASSERT_STR(c.text, "");
        test_child(run_of_main_task, (void *)fails, &c);
        ASSERT_EQ(WEXITSTATUS(c.status), 1);
        ASSERT_STR(c.text, "");
        test_child(run_of_main_task, (void *)waits_for_ever, &c);
        ASSERT_STR(c.text, "");
}

static int strict_by_environment(__attribute__((unused)) void *arg)
{
        RESHA_SCOPE(s);
        resha_nosuspend_begin(&s, "a callback");
        int rc = resha_yield();
        return resha_scope_end(&s, rc);
}

TEST(run_strict_by_environment)
{
        struct test_child c;

        setenv("RESHA_STRICT", "1", 1);
        test_child(main_program, (void *)strict_by_environment, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGABRT);
        ASSERT_HAS(c.text, "a callback");
        setenv("RESHA_STRICT", "0", 1);
        test_child(main_program, (void *)strict_by_environment, &c);
        ASSERT_TRUE(WIFEXITED(c.status));
        ASSERT_EQ(WEXITSTATUS(c.status), 1);
        ASSERT_HAS(c.text, "a callback");
}

static int goes_on(void *arg)
{
        for (int i = 0; i < 3000; i++)
                if (resha_yield() == 0)
                        return 0;
        note("%s", (const char *)arg);
        return 0;
}

static int ignores_its_cancel(__attribute__((unused)) void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, goes_on, (char *)"done");
        resha_group_cancel(&g);
        return resha_group_end(&g, 0);
}

TEST(run_reports_a_task_that_ignores_its_cancel)
{
        ASSERT_EQ(test_run_opts(ignores_its_cancel, NULL, &(resha_run_opts){ .report = note_report }), 0);
        const char *n = notes();
        ASSERT_HAS(n, "report 2 -125 goes_on:");
        ASSERT_HAS(n, "done");
}

static int is_cancelled_now_and_then(__attribute__((unused)) void *arg)
{
        for (int i = 0; i < 1500; i++) {
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, MS(0));
                ASSERT_EQ(resha_scope_end(&s, resha_yield()), -ETIME);
                ASSERT_OK(resha_yield());
        }
        return 0;
}

TEST(run_does_not_report_a_task_that_obeys_its_cancels)
{
        ASSERT_EQ(test_run_opts(is_cancelled_now_and_then, NULL, &(resha_run_opts){ .report = note_report }), 0);
        ASSERT_STR(notes(), "");
}

/* ---- the watchdog's limit ---- */

static int64_t own_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What the process has used meanwhile. */
static int64_t used;

static int blocks(__attribute__((unused)) void *arg)
{
        used = own_ns();
        usleep(400000);
        used = own_ns() - used;
        return 0;
}

TEST(run_with_a_limit_of_a_nanosecond_for_blocks_does_not_look_all_the_time)
{
        used = INT64_MAX;
        for (int i = 0; i < 5 && used > 50000000; i++) /* on a busy machine a look costs more, now and then */
                ASSERT_OK(resha_run(blocks, NULL, &(resha_run_opts){ .backend = "epoll", .blocked = { 1 } }));
        ASSERT_TRUE(used <= 50000000);
}

TEST(run_refuses_a_limit_for_blocks_that_is_no_number)
{
        resha_error e = { 0 };

        setenv("RESHA_BLOCKED", "50ms", 1);
        ASSERT_EQ(resha_run(blocks, NULL, &(resha_run_opts){ .ret_error = &e }), -EINVAL);
        unsetenv("RESHA_BLOCKED");
        ASSERT_STR(e.text, "RESHA_BLOCKED=50ms: milliseconds, or 0 for no watchdog");
}

TEST(run_with_a_limit_for_blocks_beyond_all_time_has_none)
{
        setenv("RESHA_BLOCKED", "18446744073710", 1); /* 2^64 + 448384 ns */
        ASSERT_OK(resha_run(blocks, NULL, &(resha_run_opts){ .backend = "epoll", .report = note_report }));
        unsetenv("RESHA_BLOCKED");
        ASSERT_STR(notes(), "");
}
