/* SPDX-License-Identifier: MIT */
/* Several loops at once, each on a thread of its own: nothing is shared. */

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "job.h"

enum { THREADS = 4, ROUNDS = 5 };

struct worker {
        pthread_t thread;
        resha_fn *fn;
        int number, rc;
        resha_error error;
};

static int adds(void *arg)
{
        int *n = arg;

        for (int i = 0; i < 20; i++) {
                int rc = i % 3 ? resha_yield() : resha_sleep(RESHA_US(50));
                if (rc < 0)
                        return rc;
                ++*n;
        }
        return 0;
}

static int many_tasks(void *arg)
{
        struct worker *w = arg;
        int n = 0, again = 0;
        resha_mutex m = { { 0 } };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 50; i++)
                ASSERT_OK(resha_spawn(&g, adds, &n));
        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_OK(resha_gather(adds, &again, 1, sizeof again, NULL));
        ASSERT_OK(resha_mutex_unlock(&m));
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(n, 1000);
        return resha_fail(-EIO, "of thread %d", w->number);
}

static void *runs(void *arg)
{
        struct worker *w = arg;

        for (int i = 0; i < ROUNDS; i++)
                w->rc = resha_run(w->fn, w, &(resha_run_opts){ .backend = test_backend(), .ret_error = &w->error });
        return NULL;
}

static void on_threads(struct worker w[THREADS], resha_fn *fn)
{
        for (int i = 0; i < THREADS; i++) {
                w[i].fn = fn;
                w[i].number = i;
                ASSERT_EQ(pthread_create(&w[i].thread, NULL, runs, &w[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
                ASSERT_EQ(pthread_join(w[i].thread, NULL), 0);
}

TEST(loops_on_several_threads)
{
        static struct worker w[THREADS];
        char text[32];

        on_threads(w, many_tasks);
        for (int i = 0; i < THREADS; i++) {
                snprintf(text, sizeof text, "of thread %d", i);
                ASSERT_EQ(w[i].rc, -EIO);
                ASSERT_STR(w[i].error.text, text);
        }
}

static int on_the_pool(void *arg)
{
        int *n = arg;

        return ++*n;
}

static int through_the_pool(void *arg)
{
        return resha_pool_run(NULL, on_the_pool, arg, NULL);
}

static int blocking_jobs(void *arg)
{
        int n[20] = { 0 }, status[20];

        (void)arg;
        ASSERT_OK(resha_gather(through_the_pool, n, 20, sizeof n[0], &(resha_gather_opts){ .ret_status = status }));
        for (int i = 0; i < 20; i++) {
                ASSERT_EQ(n[i], 1);
                ASSERT_EQ(status[i], 1);
        }
        return 0;
}

TEST(loops_each_with_a_pool)
{
        static struct worker w[THREADS];

        on_threads(w, blocking_jobs);
        for (int i = 0; i < THREADS; i++)
                ASSERT_EQ(w[i].rc, 0);
}

/* ---- a mutex of another loop ---- */

static int locks_what_is_held_elsewhere(void *mutex)
{
        ASSERT_EQ(resha_mutex_unlock(mutex), -EPERM);
        ASSERT_EQ(resha_mutex_lock(mutex), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "another loop");
        return 0;
}

static void *runs_locks(void *mutex)
{
        ASSERT_OK(resha_run(locks_what_is_held_elsewhere, mutex, &(resha_run_opts){ .backend = test_backend() }));
        return NULL;
}

/* semantics 192 same
 * asyncio: a lock that is contended from two loops is an error.
 * resha: a mutex belongs to the loop whose task holds it; to wait for it from another gives -EPERM. */
TASK(semantics_192_mutex_held_in_another_loop)
{
        resha_mutex m = { { 0 } };
        pthread_t thread;

        ASSERT_OK(resha_mutex_lock(&m));
        ASSERT_EQ(pthread_create(&thread, NULL, runs_locks, &m), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0); /* this loop stands still meanwhile */
        ASSERT_TRUE(resha_mutex_locked(&m));
        ASSERT_OK(resha_mutex_unlock(&m));
        return 0;
}

/* ---- what belongs to a loop, on another thread ---- */

static int meddles_on_its_loop(void *arg)
{
        resha_case c = RESHA_ON_TASK(arg);

        resha_task_cancel(arg);
        ASSERT_EQ(resha_task_wait(arg, NULL), -EPERM);
        ASSERT_EQ(resha_task_wait_all(arg, 1, RESHA_S(1), NULL), -EPERM);
        ASSERT_EQ(resha_select(&c, 1), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "another loop");
        return resha_sleep(RESHA_MS(1)); /* it goes on */
}

static void *meddles(void *arg)
{
        resha_task_cancel(arg); /* without a loop */
        ASSERT_EQ(resha_task_wait(arg, NULL), -EPERM);
        ASSERT_EQ(resha_run(meddles_on_its_loop, arg, &(resha_run_opts){ .backend = test_backend() }), 0);
        return NULL;
}

static int sleeps_until_cancelled(void *arg)
{
        note("%d", resha_event_wait(arg));
        return resha_checkpoint();
}

/* A task that waits, and a thread beside, with and without a loop of its own, that meddles with it. */
static int with_a_meddler(__attribute__((unused)) void *arg)
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };
        pthread_t thread;
        int status;

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, sleeps_until_cancelled, &e, &t));
        ASSERT_OK(resha_yield());
        ASSERT_EQ(pthread_create(&thread, NULL, meddles, &t), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        ASSERT_OK(resha_yield());
        ASSERT_FALSE(resha_task_done(&t, NULL));
        resha_event_set(&e);
        ASSERT_OK(resha_task_wait(&t, &status));
        ASSERT_EQ(status, 0);
        ASSERT_STR(notes(), "0");
        return resha_group_end(&g, 0);
}

TEST(semantics_22_cancel_on_another_thread_does_nothing)
{
        RUN(with_a_meddler, NULL);
}

/* semantics 33 same
 * asyncio: awaiting a future of another loop is an error.
 * resha: resha_task_wait() for a task that runs on another loop gives -EPERM, and disturbs neither. */
TEST(semantics_33_waiting_for_the_task_of_another_loop_is_an_error)
{
        RUN(with_a_meddler, NULL);
}

/* semantics 162 same
 * asyncio: gather over futures of different loops is a ValueError.
 * resha: gather's tasks are of the running loop, always; an array of handles with one of another loop gives -EPERM. */
TEST(semantics_162_tasks_of_different_loops_are_not_waited_for_together)
{
        RUN(with_a_meddler, NULL);
}

/* ---- waking from a thread without the loop ---- */

struct shared {
        resha_event event;
        resha_semaphore semaphore;
        resha_barrier barrier;
        resha_limiter limiter;
        resha_mutex mutex;
        resha_condition condition;
        resha_queue *empty, *full, *taken; /* taken: its item is not done yet */
        int item;
};

/* All of it stands at something: a permit that is taken, a queue that is full, ... */
static void shared_init(struct shared *s)
{
        *s = (struct shared){ .item = 1 };
        resha_semaphore_init(&s->semaphore, 1);
        ASSERT_OK(resha_semaphore_acquire(&s->semaphore));
        ASSERT_OK(resha_barrier_init(&s->barrier, 2));
        ASSERT_OK(resha_limiter_init(&s->limiter, 1, RESHA_S(3600), 0));
        ASSERT_OK(resha_limiter_acquire(&s->limiter));
        resha_condition_init(&s->condition, &s->mutex);
        ASSERT_OK(resha_queue_new(sizeof(int), 1, NULL, &s->empty));
        ASSERT_OK(resha_queue_new(sizeof(int), 1, NULL, &s->full));
        ASSERT_EQ(resha_queue_put(s->full, &s->item), 1);
        ASSERT_OK(resha_queue_new(sizeof(int), 1, NULL, &s->taken));
        ASSERT_EQ(resha_queue_put(s->taken, &s->item), 1);
        ASSERT_EQ(resha_queue_get(s->taken, &s->item), 1);
}

static int waits_for_event(void *arg)
{
        return resha_event_wait(&((struct shared *)arg)->event);
}

static int waits_for_permit(void *arg)
{
        return resha_semaphore_acquire(&((struct shared *)arg)->semaphore);
}

static int waits_at_barrier(void *arg)
{
        return resha_barrier_wait(&((struct shared *)arg)->barrier);
}

static int waits_for_rate(void *arg)
{
        return resha_limiter_acquire(&((struct shared *)arg)->limiter);
}

static int waits_for_item(void *arg)
{
        struct shared *s = arg;

        return resha_queue_get(s->empty, &s->item);
}

static int waits_for_place(void *arg)
{
        struct shared *s = arg;

        return resha_queue_put(s->full, &s->item);
}

static int waits_for_work(void *arg)
{
        return resha_queue_join(((struct shared *)arg)->full);
}

static int waits_for_what_was_taken(void *arg)
{
        return resha_queue_join(((struct shared *)arg)->taken);
}

static int waits_for_either(void *arg)
{
        struct shared *s = arg;
        resha_case c[] = { RESHA_ON_GET(s->empty, &s->item), RESHA_ON_EVENT(&s->event) };

        return resha_select(c, 2);
}

static void sets(struct shared *s)
{
        resha_event_set(&s->event);
}

static void releases(struct shared *s)
{
        resha_semaphore_release(&s->semaphore);
}

static void breaks(struct shared *s)
{
        resha_barrier_abort(&s->barrier);
}

static void comes_last(struct shared *s)
{
        int rc = resha_barrier_wait(&s->barrier);

        if (rc == -EPERM) /* no task: it has not come */
                breaks(s);
}

static void pauses(struct shared *s)
{
        resha_limiter_pause_until(&s->limiter, RESHA_NEVER);
}

static void puts_one(struct shared *s)
{
        resha_queue_try_put(s->empty, &s->item);
}

static void gets_one(struct shared *s)
{
        resha_queue_try_get(s->full, &s->item);
}

static void shuts_down(struct shared *s)
{
        resha_queue_shutdown(s->empty);
}

static void shuts_down_now(struct shared *s)
{
        resha_queue_shutdown_now(s->full);
}

/* One who waits, and what another thread does that would wake it, each way there is. */
static const struct from_outside {
        resha_fn *waits;
        void (*wakes)(struct shared *s);
} from_outside[] = {
        { waits_for_event, sets },        { waits_for_permit, releases }, { waits_at_barrier, breaks },
        { waits_at_barrier, comes_last }, { waits_for_rate, pauses },     { waits_for_item, puts_one },
        { waits_for_item, shuts_down },   { waits_for_place, gets_one },  { waits_for_work, shuts_down_now },
        { waits_for_either, puts_one },   { waits_for_either, sets },
};

static const struct from_outside *outside;
static bool with_a_loop;

static int wakes_in_a_run(void *arg)
{
        outside->wakes(arg);
        return 0;
}

static void *wakes(void *arg)
{
        if (with_a_loop)
                resha_run(wakes_in_a_run, arg, &(resha_run_opts){ .backend = test_backend() });
        else
                outside->wakes(arg);
        return NULL;
}

static int is_woken_from_outside(__attribute__((unused)) void *arg)
{
        struct shared s;
        pthread_t thread;

        shared_init(&s);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, outside->waits, &s);
        ASSERT_OK(resha_yield());
        ASSERT_EQ(pthread_create(&thread, NULL, wakes, &s), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        resha_group_cancel(&g);
        return resha_group_end(&g, 0);
}

static int run_outside(void *arg)
{
        return test_run_opts(is_woken_from_outside, arg, NULL);
}

TEST(waking_on_a_thread_that_does_not_run_the_loop_aborts)
{
        for (size_t i = 0; i < 2 * sizeof from_outside / sizeof from_outside[0]; i++) {
                struct test_child c;

                outside = &from_outside[i / 2];
                with_a_loop = i % 2;
                test_child(run_outside, NULL, &c);
                ASSERT_HAS(c.text, "task \"outside->waits\" spawned at");
                ASSERT_HAS(c.text, "a thread that does not run its loop");
                ASSERT_TRUE(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGABRT);
        }
}

static int spawns_from_a_thread(void *arg)
{
        return test_is_sim() ? 0 : resha_spawn(arg, adds, NULL);
}

TASK(semantics_21_the_end_of_a_job_wakes_a_sleeping_loop)
{
        struct job hour = JOB("hour", 3600 * 1000);
        int n = 0;

        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, job, &hour);
        ASSERT_OK(resha_yield());
        resha_instant start = resha_now();
        ASSERT_EQ(resha_pool_run(NULL, on_the_pool, &n, NULL), 1);
        ASSERT_TRUE(resha_between(start, resha_now()).ns < RESHA_S(60).ns);
        ASSERT_EQ(resha_pool_run(NULL, spawns_from_a_thread, &g, NULL), test_is_sim() ? 0 : -EPERM);
        return resha_group_end(&g, 0);
}

/* ---- groups and scopes, on another thread ---- */

struct opened {
        resha_group group;
        resha_scope scope;
};

static int meddles_with_blocks(void *arg)
{
        struct opened *o = arg;
        resha_task t = { 0 };
        int n = 0;

        resha_group_cancel(&o->group);
        resha_scope_cancel(&o->scope);
        ASSERT_EQ(resha_scope_reschedule(&o->scope, resha_now()), -EINVAL);
        ASSERT_EQ(resha_spawn(&o->group, adds, &n), -EPERM);
        ASSERT_EQ(resha_spawn_task(&o->group, adds, &n, &t), -EPERM);
        ASSERT_EQ(resha_group_end(&o->group, 0), -EPERM);
        return resha_sleep(RESHA_MS(1));
}

static void *runs_meddler(void *arg)
{
        ASSERT_OK(resha_run(meddles_with_blocks, arg, &(resha_run_opts){ .backend = test_backend() }));
        return NULL;
}

TASK(blocks_of_another_loop_are_left_alone)
{
        static struct opened o; /* no clean-up: ended below */
        pthread_t thread;

        resha_group_begin(&o.group, NULL);
        resha_timeout_begin(&o.scope, RESHA_S(60));
        ASSERT_EQ(pthread_create(&thread, NULL, runs_meddler, &o), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        ASSERT_FALSE(resha_cancelled());
        ASSERT_EQ(resha_group_running(&o.group), 0);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_scope_end(&o.scope, 0));
        return resha_group_end(&o.group, 0);
}

/* ---- what tasks of another loop wait for ---- */

static int waits_for_notice(void *arg)
{
        struct shared *s = arg;
        int rc = resha_mutex_lock(&s->mutex);

        if (rc == 0) {
                rc = resha_condition_wait(&s->condition);
                ASSERT_OK(resha_mutex_unlock(&s->mutex));
        }
        return rc;
}

static void meddles_by_select(struct shared *s)
{
        int item = 3;
        resha_case c[] = { RESHA_ON_GET(s->empty, &item), RESHA_ON_PUT(s->full, &item), RESHA_ON_GET(s->taken, &item),
                           RESHA_ON_EVENT(&s->event) };

        for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
                ASSERT_EQ(resha_select(&c[i], 1), -EPERM);
}

static int meddles_with_lines(void *arg)
{
        struct shared *s = arg;
        int item;

        ASSERT_EQ(resha_event_wait(&s->event), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "tasks of another loop wait at this event");
        ASSERT_EQ(resha_semaphore_acquire(&s->semaphore), -EPERM);
        ASSERT_EQ(resha_limiter_acquire(&s->limiter), -EPERM);
        ASSERT_OK(resha_mutex_lock(&s->mutex)); /* nobody holds it */
        ASSERT_EQ(resha_condition_notify(&s->condition, 1), -EPERM);
        ASSERT_EQ(resha_condition_wait(&s->condition), -EPERM);
        ASSERT_OK(resha_mutex_unlock(&s->mutex));
        ASSERT_EQ(resha_queue_put(s->empty, &(int){ 1 }), -EPERM);
        ASSERT_EQ(resha_queue_get(s->empty, &item), -EPERM);
        ASSERT_EQ(resha_queue_get(s->full, &item), -EPERM);
        ASSERT_EQ(resha_queue_put(s->full, &(int){ 3 }), -EPERM);
        ASSERT_HAS(resha_error_of(-EPERM)->text, "channels");
        ASSERT_EQ(resha_queue_get(s->taken, &item), -EPERM);
        ASSERT_EQ(resha_barrier_wait(&s->barrier), -EPERM);
        meddles_by_select(s);
        return 0;
}

static void *runs_on_lines(void *arg)
{
        ASSERT_OK(resha_run(meddles_with_lines, arg, &(resha_run_opts){ .backend = test_backend() }));
        return NULL;
}

TASK(what_another_loops_tasks_wait_for_is_refused)
{
        static resha_fn *const waits[] = { waits_for_event, waits_for_permit,        waits_at_barrier,
                                           waits_for_rate,  waits_for_notice,        waits_for_item,
                                           waits_for_place, waits_for_what_was_taken };
        struct shared s;
        pthread_t thread;
        int item;
        RESHA_GROUP(g);

        shared_init(&s);
        resha_group_begin(&g, NULL);
        for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++)
                resha_spawn(&g, waits[i], &s);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(pthread_create(&thread, NULL, runs_on_lines, &s), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        resha_group_cancel(&g);
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        ASSERT_EQ(resha_queue_try_get(s.full, &item), 1);
        resha_queue_free(s.empty);
        resha_queue_free(s.full);
        resha_queue_free(s.taken);
        return 0;
}
