/* SPDX-License-Identifier: MIT */
/* Maps over real threads: how many at once, failures and cancels that stop them, places that are shared. */

#include "common.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

struct item {
        int number, us, fails;
        atomic_int ran;
};

static atomic_int at_once, most_at_once, begun;

static void count_in(void)
{
        int now = atomic_fetch_add(&at_once, 1) + 1, most = atomic_load(&most_at_once);

        while (now > most && !atomic_compare_exchange_weak(&most_at_once, &most, now))
                ;
        atomic_fetch_add(&begun, 1);
}

static int work(void *arg)
{
        struct item *item = arg;

        count_in();
        if (item->us)
                usleep((unsigned)item->us);
        atomic_fetch_add(&item->ran, 1);
        atomic_fetch_sub(&at_once, 1);
        return item->fails ? resha_fail(item->fails, "item number %d", item->number) : 0;
}

enum { ITEMS = 1000 };

static void fill(struct item items[ITEMS], int us)
{
        for (int i = 0; i < ITEMS; i++)
                items[i] = (struct item){ .number = i, .us = us };
        atomic_store(&most_at_once, 0);
        atomic_store(&begun, 0);
}

static struct item items[ITEMS];

TASK(each_item_runs_once)
{
        for (int round = 0; round < 20; round++) {
                fill(items, 0);
                ASSERT_OK(resha_pool_map(NULL, work, items, ITEMS, sizeof items[0], NULL));
                for (int i = 0; i < ITEMS; i++)
                        ASSERT_EQ(atomic_load(&items[i].ran), 1);
        }
        return 0;
}

TASK(no_more_than_the_limit_run_at_once)
{
        resha_pool *p RESHA_CLEANUP(resha_pool_freep) = NULL;

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 4 }, &p));
        for (unsigned limit = 0; limit < 6; limit++) {
                int wanted = limit && limit < 4 ? (int)limit : 4;
                fill(items, 1000);
                ASSERT_OK(resha_pool_map(p, work, items, 40, sizeof items[0], &(resha_gather_opts){ .limit = limit }));
                ASSERT_EQ(atomic_load(&most_at_once), wanted);
        }
        return 0;
}

TASK(the_first_failure_stops_a_map)
{
        int status[ITEMS];
        static resha_error errors[ITEMS];
        size_t failed = 0;

        fill(items, 100);
        items[20].fails = -EBADMSG;
        int rc = resha_pool_map(
                NULL, work, items, ITEMS, sizeof items[0],
                &(resha_gather_opts){ .ret_status = status, .ret_errors = errors, .ret_failed = &failed });
        ASSERT_EQ(rc, -EBADMSG);
        ASSERT_STR(resha_error_of(rc)->text, "item number 20");
        ASSERT_STR(errors[20].text, "item number 20");
        ASSERT_EQ(errors[20].item, 21);
        size_t n = 0;
        for (int i = 0; i < ITEMS; i++) {
                ASSERT_EQ(status[i], i == 20 ? -EBADMSG : atomic_load(&items[i].ran) ? 0 : -ECANCELED);
                n += status[i] < 0;
        }
        ASSERT_EQ(failed, n);
        ASSERT_TRUE(n > 1);
        return 0;
}

TASK(a_map_that_keeps_going_tells_of_each_failure)
{
        int status[ITEMS];
        size_t failed = 0;

        fill(items, 0);
        for (int i = 0; i < ITEMS; i += 10)
                items[i].fails = -EBADMSG;
        ASSERT_OK(resha_pool_map(
                NULL, work, items, ITEMS, sizeof items[0],
                &(resha_gather_opts){ .keep_going = true, .ret_status = status, .ret_failed = &failed }));
        ASSERT_EQ(failed, ITEMS / 10);
        for (int i = 0; i < ITEMS; i++)
                ASSERT_EQ(status[i], i % 10 ? 0 : -EBADMSG);
        return 0;
}

/* ---- cancels ---- */

static int until_stopped(void *arg)
{
        count_in();
        while (!resha_job_stopped())
                usleep(200);
        atomic_fetch_add(&((struct item *)arg)->ran, 1);
        atomic_fetch_sub(&at_once, 1);
        return 0;
}

static int map_until_stopped(void *arg)
{
        return resha_pool_map(arg, until_stopped, items, ITEMS, sizeof items[0], NULL);
}

TASK(a_cancel_stops_a_map_and_waits_for_what_runs)
{
        resha_pool *p RESHA_CLEANUP(resha_pool_freep) = NULL;
        int ran = 0;

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 3 }, &p));
        fill(items, 0);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), map_until_stopped, p), -ETIME);
        ASSERT_EQ(atomic_load(&at_once), 0);
        for (int i = 0; i < ITEMS; i++)
                ran += atomic_load(&items[i].ran);
        ASSERT_EQ(ran, atomic_load(&begun));
        ASSERT_TRUE(ran <= 3);
        return 0;
}

static int map_short(void *arg)
{
        return resha_pool_map(arg, work, items, ITEMS, sizeof items[0], NULL);
}

/* Runners come back, stand in line and in the queue, work; and the cancel comes at each of those. */
TASK(a_map_is_cancelled_at_every_moment)
{
        int stopped = 0;

        for (int i = 0; i < 500; i++) {
                resha_pool *p;
                ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1 + (unsigned)i % 3, .queue = 1 }, &p));
                fill(items, 0);
                int rc = resha_timeout(RESHA_US(i), map_short, p);
                ASSERT_TRUE(rc == 0 || rc == -ETIME);
                for (int k = 0, n = atomic_load(&begun); k < ITEMS; k++)
                        ASSERT_EQ(atomic_load(&items[k].ran), k < n);
                stopped += rc < 0;
                resha_pool_free(p);
        }
        printf("%d stopped\n", stopped);
        ASSERT_TRUE(stopped > 0);
        return 0;
}

/* ---- with others ---- */

struct other {
        resha_pool *pool;
        struct item own[50];
};

static int map_own(void *arg)
{
        struct other *o = arg;

        return resha_pool_map(o->pool, work, o->own, 50, sizeof o->own[0], NULL);
}

TASK(maps_share_a_pool)
{
        static struct other others[20];
        resha_pool *p RESHA_CLEANUP(resha_pool_freep) = NULL;

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 2, .queue = 2 }, &p));
        for (int i = 0; i < 20; i++)
                others[i] = (struct other){ .pool = p };
        ASSERT_OK(resha_gather(map_own, others, 20, sizeof others[0], NULL));
        for (int i = 0; i < 20; i++)
                for (int k = 0; k < 50; k++)
                        ASSERT_EQ(atomic_load(&others[i].own[k].ran), 1);
        return 0;
}

static int one_job(void *arg)
{
        resha_pool *p = arg;
        struct item item = { 0 };

        ASSERT_OK(resha_sleep(RESHA_MS(2)));
        ASSERT_OK(resha_pool_run(p, work, &item, NULL));
        note("job after %d items", atomic_load(&begun) < ITEMS);
        return 0;
}

TASK(a_job_gets_its_turn_while_a_map_runs)
{
        resha_pool *p RESHA_CLEANUP(resha_pool_freep) = NULL;
        resha_call calls[] = { RESHA_CALL(map_short, NULL), RESHA_CALL(one_job, NULL) };

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1 }, &p));
        fill(items, 100);
        calls[0].arg = calls[1].arg = p;
        ASSERT_OK(resha_gather_calls(calls, 2, NULL));
        ASSERT_HAS(notes(), "job after 1 items");
        return 0;
}

static int free_pool(void *arg)
{
        resha_pool_free(arg);
        return 0;
}

/* The pool is gone when the tasks that stood in line look at why they were turned away. */
static int map_refused(void *arg)
{
        int rc = map_own(arg);

        ASSERT_TRUE(rc == 0 || rc == -EBADF);
        if (rc == -EBADF)
                ASSERT_HAS(resha_error_of(rc)->text, "being freed");
        return 0;
}

TASK(a_pool_is_freed_under_maps_that_wait_for_it)
{
        static struct other others[10];
        resha_pool *p;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1, .queue = 1 }, &p));
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 10; i++) {
                others[i] = (struct other){ .pool = p };
                resha_spawn(&g, map_refused, &others[i]);
        }
        resha_spawn(&g, free_pool, p);
        return resha_group_end(&g, 0);
}

static int no_threads(enum rs_syscall call)
{
        return call == RS_SYS_THREAD ? -EAGAIN : 0;
}

TASK(without_a_thread_a_map_fails)
{
        int status[3];

        fill(items, 0);
        rs_fault_hook = no_threads;
        int rc = resha_pool_map(NULL, work, items, 3, sizeof items[0], &(resha_gather_opts){ .ret_status = status });
        rs_fault_hook = NULL;
        ASSERT_EQ(rc, -EAGAIN);
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(status[i], -ECANCELED);
        ASSERT_OK(resha_pool_map(NULL, work, items, 3, sizeof items[0], NULL));
        return 0;
}
