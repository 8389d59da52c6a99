/* SPDX-License-Identifier: MIT */
/* Maps over workers in the simulated world, where items run inline on copies. Processes: tests/real/workers.c. */

#include <errno.h>
#include <string.h>

#include "test.h"

struct job {
        int n, result;
        bool fails;
};

static int square(void *arg)
{
        struct job *j = arg;

        j->result = j->n * j->n;
        return j->fails ? resha_fail(-ENOENT, "no item %d", j->n) : j->n;
}

enum { N = 20 };

static int map_squares(void *arg)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;
        struct job jobs[N];
        int status[N];
        size_t failed;

        (void)arg;
        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .processes = 3 }, &w));
        for (int i = 0; i < N; i++)
                jobs[i] = (struct job){ .n = i, .fails = i == 7 };
        int rc = resha_workers_map(
                w, square, jobs, N, sizeof jobs[0],
                &(resha_gather_opts){ .keep_going = true, .ret_status = status, .ret_failed = &failed });
        if (rc < 0)
                return rc;
        ASSERT_EQ(failed, 1);
        for (int i = 0; i < N; i++) {
                ASSERT_EQ(status[i], i == 7 ? -ENOENT : i);
                ASSERT_EQ(jobs[i].result, i == 7 ? 0 : i * i); /* an item that fails is as it was */
        }
        rc = resha_workers_map(w, square, jobs, N, sizeof jobs[0], NULL);
        if (rc == -ENOENT) {
                ASSERT_EQ(resha_error_of(rc)->item, 8);
                ASSERT_STR(resha_error_of(rc)->text, "no item 7");
                rc = 0;
        }
        return rc;
}

TASK(workers_items_are_run_on_copies_and_come_back)
{
        SIM_ONLY();
        return map_squares(NULL);
}

TEST(workers_items_come_in_any_order_of_the_seeds)
{
        SIM_ONLY();
        RUN_SEEDS(map_squares, NULL, 20);
}

static int turn(const void *data, size_t size, void **ret_data, size_t *ret_size)
{
        char *p = resha_malloc(size);
        const char *from = data;

        if (!p)
                return -ENOMEM;
        for (size_t i = 0; i < size; i++)
                p[i] = from[size - 1 - i];
        *ret_data = p;
        *ret_size = size;
        return 0;
}

TASK(workers_bytes_go_and_come)
{
        SIM_ONLY();
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;
        resha_bytes b[2] = { { .data = "abc", .size = 3 }, { .data = "wxyz", .size = 4 } };

        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .largest = 3 }, &w));
        ASSERT_OK(resha_workers_map_bytes(w, turn, b, 1, NULL));
        ASSERT_EQ(b[0].ret_size, 3);
        ASSERT_TRUE(memcmp(b[0].ret_data, "cba", 3) == 0);
        resha_free(b[0].ret_data);
        ASSERT_EQ(resha_workers_map_bytes(w, turn, b + 1, 1, NULL), -EMSGSIZE);
        ASSERT_TRUE(b[1].ret_data == NULL);
        return 0;
}

TASK(workers_map_of_a_cancelled_task_runs_nothing)
{
        SIM_ONLY();
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;
        struct job j = { .n = 3 };
        int status = 1;
        RESHA_SCOPE(s);

        ASSERT_OK(resha_workers_start(NULL, &w));
        resha_timeout_begin(&s, RESHA_S(0));
        int rc = resha_workers_map(w, square, &j, 1, sizeof j, &(resha_gather_opts){ .ret_status = &status });
        ASSERT_EQ(resha_scope_end(&s, rc), -ETIME);
        ASSERT_EQ(status, -ECANCELED);
        ASSERT_EQ(j.result, 0);
        return 0;
}

TASK(workers_bad_options_are_refused)
{
        SIM_ONLY();
        resha_workers *w = NULL;

        ASSERT_EQ(resha_workers_start(&(resha_workers_opts){ .processes = 257 }, &w), -EINVAL);
        ASSERT_EQ(resha_workers_start(&(resha_workers_opts){ .name = "a name of more than 15 bytes" }, &w), -EINVAL);
        ASSERT_EQ(resha_workers_start(&(resha_workers_opts){ ._reserved = { 1 } }, &w), -EINVAL);
        resha_workers_stop(NULL);
        return 0;
}

/* What the item says: bytes and no place for them, a place and no bytes, more than there may be. */
static int says(const void *data, size_t size, void **ret_data, size_t *ret_size)
{
        char what = *(const char *)data;

        *ret_size = what == '0' ? 0 : what == '3' ? size + 1000 : 5;
        if (what != '5' && !(*ret_data = resha_malloc(*ret_size + 1)))
                return -ENOMEM;
        return what == 'f' ? resha_fail(-EIO, "it says so") : what;
}

TASK(workers_results_without_bytes_are_none)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;
        resha_bytes b[4] = { { .data = "5", .size = 1 },
                             { .data = "0", .size = 1 },
                             { .data = "3", .size = 1 },
                             { .data = "f", .size = 1 } };
        int status[4];
        resha_error errors[4];

        SIM_ONLY();
        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .largest = 1000 }, &w));
        ASSERT_OK(resha_workers_map_bytes(
                w, says, b, 4, &(resha_gather_opts){ .keep_going = true, .ret_status = status, .ret_errors = errors }));
        for (int i = 0; i < 4; i++) {
                ASSERT_EQ(status[i], i == 2 ? -EMSGSIZE : i == 3 ? -EIO : i == 0 ? '5' : '0');
                ASSERT_TRUE(b[i].ret_data == NULL);
                ASSERT_EQ(b[i].ret_size, 0);
        }
        ASSERT_STR(errors[2].text, "a result of 1001 bytes: at most 1000 (largest in the options)");
        return 0;
}

static int echo_bytes(const void *data, size_t size, void **ret_data, size_t *ret_size)
{
        (void)data, (void)size, (void)ret_data, (void)ret_size;
        return 0;
}

TASK(workers_too_many_items_are_refused)
{
        SIM_ONLY();
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;
        resha_bytes one = { 0 };

        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .processes = 1 }, &w));
        ASSERT_EQ(resha_workers_map_bytes(w, echo_bytes, &one, SIZE_MAX, NULL), -EINVAL);
        ASSERT_EQ(resha_workers_map(w, square, &one, SIZE_MAX, 0, NULL), -EINVAL);
        return 0;
}
