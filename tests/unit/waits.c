/* SPDX-License-Identifier: MIT */
/* No wait allocates, and none that is cancelled: each is made while every allocation would fail. */

#include "base/alloc.h"
#include "job.h"

/* What the waits are for. The main task ends each of them. */
struct all {
        resha_event gate, event;
        resha_mutex mutex, guard;
        resha_condition changed;
        resha_semaphore semaphore;
        resha_barrier barrier;
        resha_limiter limiter;
        resha_queue *empty, *full;
        resha_task *waited_for;
        resha_duration pause;
        int done;
};

typedef int wait_fn(struct all *a);

static int wait_sleep(struct all *a)
{
        return resha_sleep(a->pause);
}

static int wait_event(struct all *a)
{
        return resha_event_wait(&a->event);
}

static int wait_mutex(struct all *a)
{
        int rc = resha_mutex_lock(&a->mutex);

        return rc < 0 ? rc : resha_mutex_unlock(&a->mutex);
}

static int wait_condition(struct all *a)
{
        int rc = resha_mutex_lock(&a->guard);

        if (rc < 0)
                return rc;
        rc = resha_condition_wait(&a->changed);
        ASSERT_OK(resha_mutex_unlock(&a->guard));
        return rc;
}

static int wait_semaphore(struct all *a)
{
        return resha_semaphore_acquire(&a->semaphore);
}

static int wait_barrier(struct all *a)
{
        return resha_barrier_wait(&a->barrier);
}

static int wait_limiter(struct all *a)
{
        return resha_limiter_acquire(&a->limiter);
}

static int wait_limiter_by(struct all *a)
{
        return resha_limiter_acquire_by(&a->limiter, resha_after(RESHA_S(1000000)));
}

static int wait_get(struct all *a)
{
        int item;

        return resha_queue_get(a->empty, &item);
}

static int wait_put(struct all *a)
{
        return resha_queue_put(a->full, &(int){ 1 });
}

static int wait_task(struct all *a)
{
        return resha_task_wait(a->waited_for, NULL);
}

static int wait_select(struct all *a)
{
        int item;
        resha_case c[] = { RESHA_ON_GET(a->empty, &item), RESHA_ON_EVENT(&a->event), RESHA_ON_TASK(a->waited_for),
                           RESHA_ON_TIME(resha_after(RESHA_S(1000))) };

        return resha_select(c, 4);
}

static wait_fn *const waits[] = {
        wait_sleep,   wait_event, wait_mutex, wait_condition, wait_semaphore, wait_barrier,
        wait_limiter, wait_get,   wait_put,   wait_task,      wait_select,    wait_limiter_by
};

enum { WAITS = sizeof waits / sizeof waits[0] };

struct waiter {
        struct all *a;
        wait_fn *fn;
        resha_task task;
};

static int waits_once(void *arg)
{
        struct waiter *w = arg;
        int rc = resha_event_wait(&w->a->gate);

        if (rc >= 0)
                rc = w->fn(w->a);
        w->a->done += rc >= 0;
        return rc;
}

static int sleeps(void *arg)
{
        return resha_sleep(((struct all *)arg)->pause);
}

/* Each gets what it waits for. */
static void end_all(struct all *a)
{
        int item;

        resha_event_set(&a->event);
        ASSERT_OK(resha_mutex_unlock(&a->mutex));
        ASSERT_OK(resha_mutex_lock(&a->guard));
        ASSERT_OK(resha_condition_notify_all(&a->changed));
        ASSERT_OK(resha_mutex_unlock(&a->guard));
        ASSERT_OK(resha_semaphore_release(&a->semaphore));
        ASSERT_OK(resha_barrier_wait(&a->barrier));
        ASSERT_EQ(resha_queue_put(a->empty, &(int){ 2 }), 1);
        ASSERT_EQ(resha_queue_get(a->full, &item), 1);
}

static void begin(struct all *a)
{
        resha_condition_init(&a->changed, &a->guard);
        resha_semaphore_init(&a->semaphore, 1);
        ASSERT_OK(resha_semaphore_acquire(&a->semaphore));
        ASSERT_OK(resha_barrier_init(&a->barrier, 2));
        ASSERT_OK(resha_limiter_init(&a->limiter, 1, a->pause, 1));
        ASSERT_OK(resha_limiter_acquire(&a->limiter));
        ASSERT_OK(resha_queue_new(sizeof(int), 1, NULL, &a->empty));
        ASSERT_OK(resha_queue_new(sizeof(int), 1, NULL, &a->full));
        ASSERT_EQ(resha_queue_put(a->full, &(int){ 1 }), 1);
        ASSERT_OK(resha_mutex_lock(&a->mutex));
}

/* All wait; then each is cancelled, or gets what it waits for. */
static int all_wait(bool cancel)
{
        /* Who is to be cancelled waits for so long that no machine is too slow. */
        struct all a = { .pause = cancel ? RESHA_S(100000) : MS(2) };
        struct waiter w[WAITS];
        resha_task waited_for = { 0 };
        int item;

        begin(&a);
        a.waited_for = &waited_for;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        ASSERT_OK(resha_spawn_task(&g, sleeps, &a, &waited_for));
        for (int i = 0; i < WAITS; i++) {
                w[i] = (struct waiter){ .a = &a, .fn = waits[i] };
                ASSERT_OK(resha_spawn_task(&g, waits_once, &w[i], &w[i].task));
        }
        ASSERT_OK(resha_yield()); /* all have a stack, and wait at the gate */
        rs_alloc_fail_after(1, true);
        resha_event_set(&a.gate);
        ASSERT_OK(resha_yield());
        for (int i = 0; i < WAITS && cancel; i++)
                resha_task_cancel(&w[i].task);
        if (cancel) {
                ASSERT_OK(resha_mutex_unlock(&a.mutex));
                resha_task_cancel(&waited_for);
        } else {
                end_all(&a);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(rs_alloc_failed(), 0);
        rs_alloc_fail_after(0, false);
        ASSERT_EQ(a.done, cancel ? 0 : WAITS);
        while (resha_queue_try_get(a.empty, &item) > 0 || resha_queue_try_get(a.full, &item) > 0)
                ;
        resha_queue_free(a.empty);
        resha_queue_free(a.full);
        return 0;
}

TASK(waits_do_not_allocate)
{
        return all_wait(false);
}

TASK(waits_that_are_cancelled_do_not_allocate)
{
        return all_wait(true);
}
