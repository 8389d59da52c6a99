/* SPDX-License-Identifier: MIT */
/* Misuse of what tasks share: a code, a text that says what is wrong, and an abort with that text in a strict run. */

#include <signal.h>
#include <stdlib.h>
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
