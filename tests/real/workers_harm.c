/* SPDX-License-Identifier: MIT */
/* Items that do to their worker, and to its template, what they must not: the program goes on, and says what it is. */

#include "common.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "workers/workers.h"

enum what { WELL, SHUT, SWAP, FORK, KILL, HALT };

static void shut_all(void)
{
        for (int fd = 3; fd < 64; fd++)
                shutdown(fd, SHUT_RDWR);
}

/* Another socket stands where the worker's was. */
static void swap_all(void)
{
        int fds[2];

        for (int fd = 3; fd < 64; fd++)
                close(fd);
        for (int i = 0; i < 4; i++)
                ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static int wild(void *arg)
{
        switch (*(enum what *)arg) {
        case WELL: break;
        case SHUT: shut_all(); break;
        case SWAP: swap_all(); break;
        case FORK: (void)fork(); break;
        case KILL: raise(SIGKILL); break;
        case HALT: kill(getppid(), SIGSTOP); break;
        }
        return 0;
}

/* The fourth of eight does that. */
static int map_wild(void *w, enum what what)
{
        enum what items[8] = { [3] = what };

        return resha_workers_map(w, wild, items, 8, sizeof items[0], NULL);
}

static void with_workers(unsigned processes, resha_fn *fn)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;

        if (test_is_sim())
                test_skip("needs processes");
        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .processes = processes }, &w));
        RUN(fn, w);
}

static int shut(void *w)
{
        int rc = map_wild(w, SHUT);

        ASSERT_EQ(rc, RESHA_EPROCESS);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "a worker has shut down the socket"));
        return 0;
}

TEST(a_worker_that_shuts_its_socket_down_ends_the_map_and_blocks_nobody)
{
        with_workers(2, shut);
}

static int swap(void *w)
{
        for (int i = 0; i < 3; i++)
                ASSERT_OK(map_wild(w, SWAP));
        return map_wild(w, WELL);
}

TEST(a_worker_that_has_another_socket_in_place_of_its_own_is_replaced)
{
        with_workers(2, swap);
}

/* It would be a second worker at the same desk, and its death nobody's. */
static int forks(void *w)
{
        ASSERT_OK(map_wild(w, FORK));
        ASSERT_EQ(map_wild(w, KILL), RESHA_EPROCESS);
        return map_wild(w, WELL);
}

TEST(a_forked_child_that_returns_from_an_item_is_no_worker)
{
        with_workers(1, forks);
}

static int halt(void *w)
{
        return map_wild(w, HALT);
}

/* One: it is there when it runs the item; others might not have been forked yet, and a map would wait for them until
 * the template goes on. */
TEST(workers_whose_template_stands_still_are_stopped_all_the_same)
{
        with_workers(1, halt);
}

static int map_too_many(void *arg)
{
        enum what item = WELL;

        (void)arg;
        ASSERT_EQ(resha_pool_map(NULL, wild, &item, SIZE_MAX, 0, NULL), -EINVAL);
        return 0;
}

TEST(a_map_of_more_items_than_can_be_is_refused_at_once)
{
        RUN(map_too_many, NULL);
}

static int no_process(enum rs_syscall call)
{
        return call == RS_SYS_SPAWN ? -EAGAIN : 0;
}

TEST(workers_that_cannot_be_started_say_the_remedy)
{
        resha_workers *w;

        if (test_is_sim())
                test_skip("needs processes");
        rs_fault_hook = no_process;
        ASSERT_EQ(resha_workers_start(NULL, &w), -EAGAIN);
        rs_fault_hook = NULL;
        ASSERT_TRUE(strstr(resha_error_of(-EAGAIN)->text, "allow more processes (ulimit -u"));
}

/* ---- a loop that is blocked ---- */

enum { RESULT = 60000, RESULTS = 40, TIME_MS = 1000 };

static int large(__attribute__((unused)) const void *data, size_t size, void **ret_data, size_t *ret_size)
{
        *ret_size = RESULT;
        *ret_data = resha_calloc(1, RESULT);
        return *ret_data ? (int)size : -ENOMEM;
}

/* Until a worker has waited for room for longer than an item may take. */
static int blocks(void *arg)
{
        struct rs_desk *d = ((resha_workers *)arg)->seats[0].desk;

        while (!__atomic_load_n(&d->count, __ATOMIC_ACQUIRE))
                ASSERT_OK(resha_yield());
        for (int ms = 0; ms < 30000 && !__atomic_load_n(&d->want_room, __ATOMIC_ACQUIRE); ms++)
                usleep(1000);
        ASSERT_TRUE(__atomic_load_n(&d->want_room, __ATOMIC_ACQUIRE));
        usleep((TIME_MS + 100) * 1000);
        return 0;
}

static int map_large(void *w)
{
        resha_bytes items[RESULTS];
        RESHA_GROUP(g);

        for (int i = 0; i < RESULTS; i++)
                items[i] = (resha_bytes){ .data = "x", .size = 1 };
        resha_group_begin(&g, NULL);
        resha_spawn(&g, blocks, w);
        ASSERT_OK(resha_workers_map_bytes(w, large, items, RESULTS, NULL));
        for (int i = 0; i < RESULTS; i++) {
                ASSERT_EQ(items[i].ret_size, RESULT);
                resha_free(items[i].ret_data);
        }
        return resha_group_end(&g, 0);
}

TEST(results_that_wait_for_a_loop_that_is_blocked_are_in_time)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;

        if (test_is_sim())
                test_skip("needs processes");
        ASSERT_OK(resha_workers_start(
                &(resha_workers_opts){ .processes = 1, .largest = RESULT, .time = RESHA_MS(TIME_MS) }, &w));
        RUN(map_large, w);
}
