/* SPDX-License-Identifier: MIT */
/* Workers that end while nobody looks, from outside, with the template, with the program; and none that can be forked.
 * Each test is the reaper of all that is left by somebody who has ended: so it sees whether a process is left. */

#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/workers.h"

enum { WORKERS = 2, ITEMS = 40, TIME_MS = 20000 };

static struct shared {
        atomic_int pids[64], taken, begun; /* of workers */
        atomic_int mapping;
        atomic_int fail;    /* forks that fail */
        atomic_int program; /* where they do not */
        atomic_int holder;
        atomic_uint count[ITEMS];
} * shared;

static void begin(void)
{
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_TRUE(shared != MAP_FAILED);
        ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

/* In time: nothing is killed by the test. */
static void no_process_is_left(void)
{
        int rc = 0;

        for (int ms = 0; ms < TIME_MS && rc >= 0; ms++) {
                while ((rc = waitpid(-1, NULL, WNOHANG)) > 0) {}
                if (rc == 0)
                        usleep(1000);
        }
        ASSERT_EQ(rc, -1);
        ASSERT_EQ(errno, ECHILD);
}

static int note_pid(__attribute__((unused)) void *arg)
{
        atomic_store(&shared->pids[atomic_fetch_add(&shared->taken, 1)], getpid());
        atomic_fetch_add(&shared->begun, 1);
        return 0;
}

static const resha_workers_opts noted = { .processes = WORKERS, .init = note_pid };

static void until_begun(int n)
{
        for (int ms = 0; ms < TIME_MS && atomic_load(&shared->begun) < n; ms++)
                usleep(1000);
        ASSERT_TRUE(atomic_load(&shared->begun) >= n);
}

static int counts(void *arg)
{
        atomic_fetch_add(&shared->count[*(int *)arg], 1);
        return 0;
}

static int never_ends(__attribute__((unused)) void *arg)
{
        atomic_fetch_add(&shared->mapping, 1);
        return pause();
}

static void map_numbers(resha_workers *w)
{
        int items[ITEMS];

        for (int i = 0; i < ITEMS; i++)
                items[i] = i;
        ASSERT_OK(resha_workers_map(w, counts, items, ITEMS, sizeof items[0], NULL));
}

/* Each item is run, and once. */
static void map_all(resha_workers *w)
{
        for (int i = 0; i < ITEMS; i++)
                atomic_store(&shared->count[i], 0);
        map_numbers(w);
        for (int i = 0; i < ITEMS; i++)
                ASSERT_EQ(atomic_load(&shared->count[i]), 1);
}

static int map_for_ever(void *w)
{
        char items[WORKERS] = "";

        return resha_workers_map(w, never_ends, items, WORKERS, 1, NULL);
}

/* ---- idle workers ---- */

/* The one that began as the i-th. It has not been killed yet. */
static void kill_worker(int i)
{
        ASSERT_TRUE(atomic_load(&shared->pids[i]) > 1);
        ASSERT_EQ(kill(atomic_load(&shared->pids[i]), SIGKILL), 0);
}

static int idle_ones_are_killed(void *w)
{
        for (int round = 0; round < 8; round++) {
                for (int i = 0; i < WORKERS; i++)
                        kill_worker(WORKERS * round + i);
                map_all(w);
                while (atomic_load(&shared->begun) < WORKERS * (round + 2))
                        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        }
        return 0;
}

static int one_of_them_is_killed(void *w)
{
        kill_worker(1);
        map_all(w);
        return 0;
}

TEST(idle_workers_that_are_killed_before_and_between_maps_cost_nothing)
{
        resha_workers *w;

        begin();
        ASSERT_OK(resha_workers_start(&noted, &w));
        until_begun(WORKERS);
        RUN(idle_ones_are_killed, w);
        resha_workers_stop(w);
        atomic_store(&shared->taken, 0);
        atomic_store(&shared->begun, 0);
        ASSERT_OK(resha_workers_start(&noted, &w));
        until_begun(WORKERS);
        RUN(one_of_them_is_killed, w);
        resha_workers_stop(w);
        ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1); /* at once */
}

/* ---- the template ---- */

static int has_no_template(void *arg)
{
        resha_workers *w = arg;

        ASSERT_EQ(kill(w->template, SIGKILL), 0);
        int rc = map_for_ever(w);
        ASSERT_EQ(rc, RESHA_EPROCESS);
        ASSERT_HAS(resha_error_of(rc)->text, "template process was ended (signal 9)");
        ASSERT_HAS(resha_error_of(rc)->text, "start the program anew");
        return 0;
}

TEST(a_template_that_is_killed_while_idle_is_said_by_the_next_map)
{
        resha_workers *w;

        begin();
        ASSERT_OK(resha_workers_start(&noted, &w));
        RUN(has_no_template, w);
        resha_workers_stop(w);
        no_process_is_left();
}

static int is_told(void *w)
{
        ASSERT_EQ(map_for_ever(w), RESHA_EPROCESS);
        return 0;
}

/* Two that stand in line, too. */
static int loses_the_template(void *arg)
{
        resha_workers *w = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, is_told, w);
        while (atomic_load(&shared->mapping) < WORKERS)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(kill(w->template, SIGKILL), 0);
        return resha_group_end(&g, 0);
}

TEST(a_template_that_is_killed_while_maps_run_ends_them_and_the_workers)
{
        resha_workers *w;

        begin();
        ASSERT_OK(resha_workers_start(&noted, &w));
        RUN(loses_the_template, w);
        no_process_is_left(); /* before they are stopped */
        resha_workers_stop(w);
}

/* ---- what an item has left behind ---- */

/* It is in no group that the template kills, and has all that its parent had. */
static int leaves_a_child(__attribute__((unused)) void *arg)
{
        pid_t pid = fork();

        if (pid == 0) {
                setsid();
                for (;;)
                        pause();
        }
        while (getsid(pid) != pid)
                usleep(1000);
        atomic_store(&shared->holder, pid);
        return 0;
}

static void with_a_child_left(resha_fn *fn)
{
        resha_workers *w;

        begin();
        ASSERT_OK(resha_workers_start(&noted, &w));
        RUN(fn, w);
        ASSERT_EQ(kill(atomic_load(&shared->holder), SIGKILL), 0);
        no_process_is_left();
}

static int loses_the_template_beside_a_child(void *w)
{
        char item = 0;

        ASSERT_OK(resha_workers_map(w, leaves_a_child, &item, 1, 1, NULL));
        loses_the_template(w);
        resha_workers_stop(w);
        return 0;
}

TEST(maps_see_the_end_of_the_template_though_an_item_has_left_a_child)
{
        with_a_child_left(loses_the_template_beside_a_child);
}

static int stop(void *w)
{
        resha_workers_stop(w);
        return 0;
}

static int ends_with_the_workers(void *w)
{
        ASSERT_EQ(map_for_ever(w), -EBADF);
        return 0;
}

static int is_stopped_beside_a_child(void *w)
{
        char item = 0;
        RESHA_GROUP(g);

        ASSERT_OK(resha_workers_map(w, leaves_a_child, &item, 1, 1, NULL));
        resha_group_begin(&g, NULL);
        resha_spawn(&g, ends_with_the_workers, w);
        while (atomic_load(&shared->mapping) < 1)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_OK(resha_pool_run(NULL, stop, w, NULL));
        return resha_group_end(&g, 0);
}

TEST(maps_of_workers_that_are_stopped_end_though_an_item_has_left_a_child)
{
        with_a_child_left(is_stopped_beside_a_child);
}

/* ---- the program ---- */

static int starts_something(void *arg)
{
        if (fork() == 0)
                for (;;)
                        pause();
        return never_ends(arg);
}

static int map_starts(void *w)
{
        char items[WORKERS] = "";

        return resha_workers_map(w, starts_something, items, WORKERS, 1, NULL);
}

/* A program with workers, which run that, or nothing; it has forked a child that holds all its descriptors. */
static int program(resha_fn *fn)
{
        resha_workers *w;

        ASSERT_OK(resha_workers_start(&noted, &w));
        pid_t holder = fork();
        if (holder == 0)
                return pause();
        atomic_store(&shared->holder, holder);
        return fn ? test_run_opts(fn, w, NULL) : pause();
}

/* Its child has still to be there when it, the template, and n processes that the workers had started, have ended. */
static void is_killed(resha_fn *fn, int n)
{
        pid_t pid = fork();

        if (pid == 0)
                _exit(program(fn));
        until_begun(WORKERS);
        for (int ms = 0; ms < TIME_MS && fn && atomic_load(&shared->mapping) < WORKERS; ms++)
                usleep(1000);
        while (!atomic_load(&shared->holder))
                usleep(1000);
        ASSERT_EQ(kill(pid, SIGKILL), 0);
        for (int i = 0; i < n + 2; i++)
                ASSERT_TRUE(waitpid(-1, NULL, 0) > 0);
        ASSERT_EQ(kill(atomic_load(&shared->holder), SIGKILL), 0);
        no_process_is_left();
}

TEST(a_program_that_is_killed_leaves_no_process_when_its_workers_are_idle)
{
        begin();
        is_killed(NULL, 0);
}

TEST(a_program_that_is_killed_leaves_no_process_of_its_workers_or_theirs)
{
        begin();
        is_killed(map_starts, WORKERS);
}

/* ---- no process to be had ---- */

static int no_forks(enum rs_syscall call)
{
        if (call != RS_SYS_SPAWN || getpid() == atomic_load(&shared->program) || atomic_load(&shared->fail) <= 0)
                return 0;
        atomic_fetch_sub(&shared->fail, 1);
        return -EAGAIN;
}

static int forks_fail_for_a_while(void *w)
{
        atomic_store(&shared->fail, 3);
        for (int i = 0; i < WORKERS; i++)
                kill_worker(i);
        map_all(w);
        ASSERT_TRUE(atomic_load(&shared->fail) < 3);
        return 0;
}

TEST(forks_of_workers_that_fail_are_tried_again)
{
        resha_workers *w;

        begin();
        atomic_store(&shared->program, getpid());
        rs_fault_hook = no_forks;
        ASSERT_OK(resha_workers_start(&noted, &w));
        until_begun(WORKERS);
        RUN(forks_fail_for_a_while, w);
        resha_workers_stop(w);
        rs_fault_hook = NULL;
}

static int forks_fail(void *w)
{
        char items[ITEMS] = "";
        int status[ITEMS];
        resha_error errors[ITEMS];

        resha_gather_opts o = { .keep_going = true, .ret_status = status, .ret_errors = errors };
        ASSERT_OK(resha_workers_map(w, counts, items, ITEMS, 1, &o));
        for (int i = 0; i < ITEMS; i++) {
                ASSERT_EQ(status[i], -EAGAIN);
                ASSERT_HAS(errors[i].text, "none could be forked for 0.2 s");
                ASSERT_HAS(errors[i].text, "ulimit -u");
                ASSERT_EQ(errors[i].item, i + 1);
        }
        atomic_store(&shared->fail, 0);
        map_all(w);
        return 0;
}

TEST(a_map_without_a_process_fails_with_the_remedy)
{
        resha_workers *w;

        begin();
        atomic_store(&shared->program, getpid());
        atomic_store(&shared->fail, 1000000);
        rs_fault_hook = no_forks;
        rs_workers_starved_ns = 200000000;
        ASSERT_OK(resha_workers_start(&noted, &w));
        RUN(forks_fail, w);
        resha_workers_stop(w);
        rs_fault_hook = NULL;
}

/* ---- loops that cancel ---- */

static int cancelled_maps(void *arg)
{
        resha_workers *w = *(resha_workers **)arg;

        for (int i = 0; i < 6; i++) {
                int rc = resha_timeout(RESHA_MS(3 * i), map_for_ever, w);
                ASSERT_EQ(rc, -ETIME);
                map_numbers(w);
        }
        return 0;
}

TEST(loops_that_cancel_their_maps_leave_the_workers_to_others)
{
        resha_workers *w, *all[3];

        begin();
        ASSERT_OK(resha_workers_start(&noted, &w));
        for (int i = 0; i < 3; i++)
                all[i] = w;
        ASSERT_OK(resha_run_loops(cancelled_maps, all, 3, sizeof all[0], NULL));
        for (int i = 0; i < ITEMS; i++)
                ASSERT_EQ(atomic_load(&shared->count[i]), 18);
        resha_workers_stop(w);
        ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1);
}
