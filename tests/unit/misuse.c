/* SPDX-License-Identifier: MIT */
/* Misuse of what tasks share: a code, a text that says what is wrong, and an abort with that text in a strict run. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "job.h"

/* ---- mistakes, each as the body of a main task ---- */

static int lock_twice(__attribute__((unused)) void *arg)
{
        resha_mutex m = { { 0 } };
        int rc = resha_mutex_lock(&m);

        return rc < 0 ? rc : resha_mutex_lock(&m);
}

static int unlock_unlocked(__attribute__((unused)) void *arg)
{
        resha_mutex m = { { 0 } };

        return resha_mutex_unlock(&m);
}

static int wait_without_lock(__attribute__((unused)) void *arg)
{
        resha_mutex m = { { 0 } };
        resha_condition c;

        resha_condition_init(&c, &m);
        return resha_condition_wait(&c);
}

static int notify_nothing(__attribute__((unused)) void *arg)
{
        resha_condition c = { { 0 } };

        return resha_condition_notify_all(&c);
}

static int release_too_many(__attribute__((unused)) void *arg)
{
        resha_semaphore s;

        resha_semaphore_init(&s, 2);
        return resha_semaphore_release(&s);
}

static int barrier_of_nobody(__attribute__((unused)) void *arg)
{
        resha_barrier b = { { 0 } };

        return resha_barrier_wait(&b);
}

static int limiter_of_no_rate(__attribute__((unused)) void *arg)
{
        resha_limiter l = { { 0 } };

        return resha_limiter_acquire(&l);
}

static int done_too_often(__attribute__((unused)) void *arg)
{
        resha_queue *q RESHA_CLEANUP(resha_queue_freep) = NULL;

        ASSERT_OK(resha_queue_new(sizeof(int), 1, NULL, &q));
        return resha_queue_task_done(q);
}

static int select_nothing(__attribute__((unused)) void *arg)
{
        return resha_select(NULL, 0);
}

static int select_never_spawned(__attribute__((unused)) void *arg)
{
        resha_task t = { 0 };
        resha_case c[] = { RESHA_ON_EVENT(NULL), RESHA_ON_TASK(&t) };

        return resha_select(c, 2);
}

static const struct mistake {
        resha_fn *fn;
        int code;
        const char *text;
} mistakes[] = {
        { lock_twice, -EDEADLK, "holds the mutex already" },
        { unlock_unlocked, -EPERM, "unlocks a mutex that it does not hold" },
        { wait_without_lock, -EPERM, "lock it first" },
        { notify_nothing, -EINVAL, "call resha_condition_init() first" },
        { release_too_many, -EOVERFLOW, "a permit is given back that nobody has: all 2 are free" },
        { barrier_of_nobody, -EINVAL, "call resha_barrier_init() first" },
        { limiter_of_no_rate, -EINVAL, "call resha_limiter_init() first" },
        { done_too_often, -EINVAL, "told done that nobody has taken" },
        { select_nothing, -EINVAL, "a select of 0 cases" },
        { select_never_spawned, -EINVAL, "case 1 of a select: a task that was never spawned" },
};

TEST(misuse_has_a_code_and_says_what_is_wrong)
{
        unsetenv("RESHA_STRICT");
        for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
                resha_error e;
                ASSERT_EQ(test_run_opts(mistakes[i].fn, NULL, &(resha_run_opts){ .ret_error = &e }), mistakes[i].code);
                ASSERT_HAS(e.text, mistakes[i].text);
        }
}

static int strictly(void *arg)
{
        return test_run_opts(((const struct mistake *)arg)->fn, NULL, &(resha_run_opts){ .strict = true });
}

TEST(misuse_aborts_when_strict)
{
        for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
                struct test_child c;

                test_child(strictly, (void *)(uintptr_t)&mistakes[i], &c);
                ASSERT_HAS(c.text, mistakes[i].text);
                ASSERT_HAS(c.text, "task \"main\"");
                ASSERT_TRUE(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGABRT);
        }
}

/* ---- what cannot be made: no reason to abort, the figures may be a user's ---- */

TASK(misuse_of_makers_says_what_is_possible)
{
        resha_queue *q = NULL;
        resha_barrier b;
        resha_limiter l;
        const resha_rate rates[] = { { .count = 1, .per = RESHA_S(1) }, { .count = 1, .per = RESHA_S(1), .burst = 2 } };

        ASSERT_EQ(resha_queue_new(0, 1, NULL, &q), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "items of 0 bytes: 1 to 65536");
        ASSERT_EQ(resha_queue_new_opt(4, 1, &(resha_queue_opts){ .order = RESHA_PRIORITY }, &q), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "`compare`");
        ASSERT_EQ(resha_queue_new_opt(4, 0, &(resha_queue_opts){ .order = RESHA_LIFO }, &q), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "capacity 0");
        ASSERT_EQ(resha_queue_new_opt(4, 1, &(resha_queue_opts){ ._reserved = { 1 } }, &q), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "reserved");
        ASSERT_EQ(resha_queue_new(4, SIZE_MAX / 8, NULL, &q), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "larger than any memory");
        ASSERT_PTR(q, NULL);
        ASSERT_EQ(resha_barrier_init(&b, 0), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "a barrier of 0 parties: 1 to");
        ASSERT_EQ(resha_limiter_init_rates(&l, rates, 0), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "a limiter of 0 rates: 1 to 4");
        ASSERT_EQ(resha_limiter_init_rates(&l, rates, 2), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "rate 1 of a limiter");
        return 0;
}

/* ---- an older failure of the same code: what is said is said of the mistake, not of that ---- */

static int nothing(__attribute__((unused)) void *arg)
{
        return 0;
}

static int wait_never_spawned(void)
{
        resha_task t = { 0 };

        return resha_task_wait(&t, NULL);
}

static int wait_any_never_spawned(void)
{
        resha_task t[2] = { 0 };

        return resha_task_wait_any(t, 2, RESHA_FOREVER, NULL);
}

static int wait_for_nothing(void)
{
        return resha_task_wait_all(NULL, 0, RESHA_FOREVER, NULL);
}

static resha_task own;

static int wait_for_itself(__attribute__((unused)) void *arg)
{
        resha_fail(-EDEADLK, "older");
        int rc = resha_task_wait(&own, NULL);
        ASSERT_EQ(rc, -EDEADLK);
        ASSERT_HAS(resha_error_of(rc)->text, "its own end");
        return rc;
}

static int wait_in_a_circle_of_one(void)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, wait_for_itself, NULL, &own));
        return resha_group_end(&g, 0);
}

static int spawn_nowhere(void)
{
        resha_group g = { { 0 } };

        return resha_spawn(&g, nothing, NULL);
}

static int spawn_opt_nowhere(void)
{
        resha_group g = { { 0 } };

        return resha_spawn_opt(&g, nothing, NULL, NULL);
}

static int spawned_with(const resha_spawn_opts *opts)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        return resha_group_end(&g, resha_spawn_opt(&g, nothing, NULL, opts));
}

static int spawn_reserved(void)
{
        return spawned_with(&(resha_spawn_opts){ ._reserved = { 1 } });
}

static int spawn_copies_much(void)
{
        return spawned_with(&(resha_spawn_opts){ .copy = 1 << 20 });
}

static int spawn_tiny_stack(void)
{
        return spawned_with(&(resha_spawn_opts){ .stack = 1 });
}

static int spawn_handle_in_use(void)
{
        RESHA_GROUP(g);
        resha_task t = { 0 };

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, nothing, NULL, &t));
        return resha_group_end(&g, resha_spawn_opt(&g, nothing, NULL, &(resha_spawn_opts){ .task = &t }));
}

static int gather_reserved(void)
{
        int item = 0;

        return resha_gather(nothing, &item, 1, sizeof item, &(resha_gather_opts){ ._reserved = { 1 } });
}

static int race_of_nobody(void)
{
        int item = 0;

        return resha_race(nothing, &item, 0, sizeof item, NULL, NULL);
}

static int retry_reserved(void)
{
        return resha_retry(nothing, NULL, &(resha_retry_opts){ ._reserved = { 1 } });
}

static int ticker_of_nothing(void)
{
        resha_ticker t;

        resha_ticker_init(&t, RESHA_NS(0));
        return resha_ticker_next(&t);
}

static int local_of_no_size(void)
{
        static const resha_local key;

        return resha_local_set(&key, &key);
}

static int end_of_no_scope(void)
{
        RESHA_SCOPE(s);

        return resha_scope_end(&s, 0);
}

static int scope_twice(void)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, RESHA_S(1));
        resha_timeout_begin(&s, RESHA_S(1));
        return resha_scope_end(&s, 0);
}

static int reschedule_no_scope(void)
{
        RESHA_SCOPE(s);

        return resha_scope_reschedule(&s, RESHA_NEVER);
}

static int end_of_no_group(void)
{
        RESHA_GROUP(g);

        return resha_group_end(&g, 0);
}

static int drain_of_no_group(void)
{
        RESHA_GROUP(g);

        return resha_group_drain(&g, RESHA_S(1));
}

static int group_twice(void)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_group_begin(&g, NULL);
        return resha_group_end(&g, 0);
}

static int group_reserved(void)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ ._reserved = { 1 } });
        return resha_group_end(&g, 0);
}

static int dirty_scope(void)
{
        resha_scope s;

        memset(&s, 0x5a, sizeof s);
        resha_timeout_begin(&s, RESHA_S(1));
        return resha_scope_end(&s, 0);
}

static int dirty_group(void)
{
        resha_group g;

        memset(&g, 0x5a, sizeof g);
        resha_group_begin(&g, NULL);
        int rc = resha_spawn(&g, nothing, NULL);
        ASSERT_EQ(rc, -EPERM);
        rc = resha_group_end(&g, 0);
        resha_group_begin(&g, NULL); /* and again: now it is one */
        ASSERT_OK(resha_spawn(&g, nothing, NULL));
        ASSERT_OK(resha_group_end(&g, 0));
        return rc;
}

static int dirty_completions(void)
{
        resha_completions c;
        int item = 0;

        memset(&c, 0x5a, sizeof c);
        resha_completions_begin(&c, nothing, &item, 1, sizeof item, NULL);
        return resha_completions_end(&c, 0);
}

static int completions_reserved(void)
{
        RESHA_COMPLETIONS(c);
        int item = 0;

        resha_completions_begin(&c, nothing, &item, 1, sizeof item, &(resha_completions_opts){ ._reserved = { 1 } });
        return resha_completions_end(&c, 0);
}

static int next_of_no_completions(void)
{
        RESHA_COMPLETIONS(c);

        return resha_completions_next(&c, NULL, NULL);
}

static int suspend_where_one_must_not(void)
{
        RESHA_SCOPE(s);

        resha_nosuspend_begin(&s, "a test");
        return resha_scope_end(&s, resha_yield());
}

static int job_reserved(void)
{
        return resha_pool_run(NULL, nothing, NULL, &(resha_job_opts){ ._reserved = { 1 } });
}

static int stream_reserved(void)
{
        static const resha_stream_ops ops = { ._reserved = { 1 } };
        resha_stream *s;

        return resha_stream_new(&ops, NULL, &s);
}

static int address_of_words(void)
{
        resha_addr a;

        return resha_addr_parse("not an address", 1, &a);
}

static int run_inside(void)
{
        return resha_run(nothing, NULL, NULL);
}

static const struct fresh {
        int (*fn)(void);
        int code;
        const char *text;
} fresh[] = {
        { wait_never_spawned, -EINVAL, "never spawned" },
        { wait_any_never_spawned, -EINVAL, "never spawned" },
        { wait_for_nothing, -EINVAL, "a wait for 0 tasks" },
        { wait_in_a_circle_of_one, -EDEADLK, "its own end" },
        { spawn_nowhere, -EPERM, "resha_group_begin() first" },
        { spawn_opt_nowhere, -EPERM, "resha_group_begin() first" },
        { spawn_reserved, -EINVAL, "reserved word of spawn options" },
        { spawn_copies_much, -EINVAL, "a spawn copies 1048576 bytes: at most 16384" },
        { spawn_tiny_stack, -EINVAL, "a task's stack of 1 bytes" },
        { spawn_handle_in_use, -EBUSY, "a task that runs" },
        { gather_reserved, -EINVAL, "a gather of 1 items" },
        { race_of_nobody, -EINVAL, "a race of 0 items" },
        { retry_reserved, -EINVAL, "reserved word of retry options" },
        { ticker_of_nothing, -EINVAL, "a period of 0 ns" },
        { local_of_no_size, -EINVAL, "a task-local of 0 bytes" },
        { end_of_no_scope, -EPERM, "begin it first" },
        { scope_twice, -EINVAL, "begun again" },
        { reschedule_no_scope, -EINVAL, "the deadline to move" },
        { end_of_no_group, -EPERM, "begin it first" },
        { drain_of_no_group, -EPERM, "begin it first" },
        { group_twice, -EINVAL, "begun again" },
        { group_reserved, -EINVAL, "options of a group" },
        { dirty_scope, -EINVAL, "was not zero" },
        { dirty_group, -EINVAL, "was not zero" },
        { dirty_completions, -EINVAL, "was not zero" },
        { completions_reserved, -EINVAL, "completions take" },
        { next_of_no_completions, -EPERM, "begin it first" },
        { suspend_where_one_must_not, -EDEADLK, "no-suspend region (a test)" },
        { job_reserved, -EINVAL, "reserved word of job options" },
        { stream_reserved, -EINVAL, "reserved word of stream operations" },
        { address_of_words, -EINVAL, "\"not an address\" is no address" },
        { run_inside, -EBUSY, "a loop runs on this thread already" },
};

static int make_them(__attribute__((unused)) void *arg)
{
        for (size_t i = 0; i < sizeof fresh / sizeof fresh[0]; i++) {
                (void)resha_fail(fresh[i].code, "older");
                ASSERT_EQ(fresh[i].fn(), fresh[i].code);
                ASSERT_HAS(resha_error_of(fresh[i].code)->text, fresh[i].text);
        }
        return 0;
}

TEST(misuse_is_told_even_after_an_older_failure_of_its_code)
{
        unsetenv("RESHA_STRICT");
        ASSERT_OK(test_run_opts(make_them, NULL, &(resha_run_opts){ 0 }));
}

/* ---- a run that cannot be ---- */

static void refused_with(const resha_run_opts *opts, int code, const char *text)
{
        resha_run_opts o = *opts;
        resha_error e;

        o.ret_error = &e;
        ASSERT_EQ(resha_run(nothing, NULL, &o), code);
        ASSERT_EQ(e.code, code);
        ASSERT_HAS(e.text, text);
}

TEST(misuse_of_a_run_says_what_is_possible)
{
        refused_with(&(resha_run_opts){ .backend = "foo" }, -EINVAL, "no backend \"foo\": uring, epoll, sim, sim:SEED");
        refused_with(&(resha_run_opts){ .backend = "sim:-1" }, -EINVAL, "no backend \"sim:-1\"");
        refused_with(&(resha_run_opts){ .backend = "sim:" }, -EINVAL, "no backend \"sim:\"");
        refused_with(&(resha_run_opts){ .backend = "sim:99999999999999999999" }, -EINVAL, "no backend \"sim:999");
        refused_with(&(resha_run_opts){ .threads = 257 }, -EINVAL, "257 threads for a run: at most 256");
        refused_with(&(resha_run_opts){ .stack_size = 1 }, -EINVAL, "stacks of 1 bytes");
        refused_with(&(resha_run_opts){ ._reserved = { 1 } }, -EINVAL, "reserved word");
}
