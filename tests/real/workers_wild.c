/* SPDX-License-Identifier: MIT */
/* Workers that go wild, that die in their init, and that the kernel refuses something. */

#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "workers/workers.h"

enum how { WELL, LOOP, WILD_CELLS, WILD_LOOP, WILD_ORDERS, WILD_GENERATION, WILD_TIME };

struct job {
        int n;
        enum how how;
        int result;
};

/* The desk at which this item lies: it is one of the first. */
static struct rs_desk *desk_of(const void *item)
{
        return (struct rs_desk *)(((uintptr_t)item & ~(uintptr_t)4095) - RS_DESK_HEAD);
}

static int work(void *arg)
{
        struct job *j = arg;

        switch (j->how) {
        case WELL: break;
        case LOOP:
                for (volatile bool on = true; on;)
                        ;
                break;
        case WILD_CELLS: memset(desk_of(j)->cells, 0x41, sizeof desk_of(j)->cells); break;
        case WILD_LOOP:
                memset(desk_of(j)->cells, 0x41, sizeof desk_of(j)->cells);
                for (volatile bool on = true; on;)
                        ;
                break;
        case WILD_GENERATION:
                for (int i = 0; i < RS_CELLS; i++)
                        desk_of(j)->cells[i].generation = 0x41414141;
                for (volatile bool on = true; on;)
                        ;
                break;
        case WILD_TIME:
                desk_of(j)->began = 0x4141414141414141;
                for (volatile bool on = true; on;)
                        ;
                break;
        case WILD_ORDERS:
                signal(SIGSEGV, SIG_DFL);
                desk_of(j)->count = 0;
                break;
        }
        j->result = j->n * j->n;
        return 0;
}

static void prepare(struct job *jobs, int n)
{
        for (int i = 0; i < n; i++)
                jobs[i] = (struct job){ .n = i };
}

static void with_workers(const resha_workers_opts *o, resha_fn *fn)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;

        ASSERT_OK(resha_workers_start(o, &w));
        RUN(fn, w);
}

/* ---- what the kernel refuses to the other processes ---- */

static int program_pid;

static int refuse_files(enum rs_syscall call)
{
        return call == RS_SYS_OPEN && getpid() != program_pid ? -EAGAIN : 0;
}

static int no_limit(void *w)
{
        struct job jobs[3];

        prepare(jobs, 3);
        int rc = resha_workers_map(w, work, jobs, 3, sizeof jobs[0], NULL);
        ASSERT_EQ(rc, -ENOSYS);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "its memory cannot be limited") != NULL);
        return 0;
}

TEST(items_fail_where_memory_cannot_be_limited)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;

        program_pid = getpid();
        rs_fault_hook = refuse_files;
        int rc = resha_workers_start(&(resha_workers_opts){ .processes = 2, .memory = 64 << 20 }, &w);
        rs_fault_hook = NULL;
        ASSERT_OK(rc);
        RUN(no_limit, w);
}

static int allocates(void *arg)
{
        (void)arg;
        void *p = resha_malloc(16 << 20);
        resha_free(p);
        return p ? 0 : resha_fail(-ENOMEM, "no 16 MiB");
}

static int map_allocating(void *w)
{
        return resha_workers_map(w, allocates, NULL, 2, 0, NULL);
}

TEST(a_limit_of_memory_may_be_larger_than_all_there_is)
{
        with_workers(&(resha_workers_opts){ .processes = 2, .memory = SIZE_MAX }, map_allocating);
}

/* Keeps all that it can get, or wants little. */
static int wants(void *arg)
{
        struct job *j = arg;

        if (j->n == 2 || (j->n >= 8 && j->n < 16))
                while (j->result < 64 && resha_malloc(4 << 20))
                        j->result++;
        return allocates(NULL);
}

static int map_hungry(void *w)
{
        struct job jobs[24];
        int status[24];

        prepare(jobs, 24);
        ASSERT_OK(resha_workers_map(w, wants, jobs, 24, sizeof jobs[0],
                                    &(resha_gather_opts){ .keep_going = true, .ret_status = status }));
        for (int i = 0; i < 24; i++)
                ASSERT_EQ(status[i], i == 2 || (i >= 8 && i < 16) ? -ENOMEM : 0);
        return 0;
}

TEST(what_an_item_holds_that_failed_for_want_of_memory_is_not_missed_by_the_others)
{
        if (TEST_ASAN || TEST_TSAN || TEST_VALGRIND)
                test_skip("sanitizers have memory of their own");
        with_workers(&(resha_workers_opts){ .processes = 1, .memory = 48 << 20 }, map_hungry);
        with_workers(&(resha_workers_opts){ .processes = 2, .chunk = 1, .memory = 48 << 20 }, map_hungry);
}

/* ---- init ---- */

static int *begun; /* shared: workers */

static int dies_but_once(void *arg)
{
        (void)arg;
        if (__atomic_add_fetch(begun, 1, __ATOMIC_RELAXED) > 1)
                abort();
        return 0;
}

static int init_dies_later(void *w)
{
        struct job jobs[2];
        int status[2];

        prepare(jobs, 2);
        jobs[0].how = LOOP;
        ASSERT_OK(resha_workers_map(w, work, jobs, 2, sizeof jobs[0],
                                    &(resha_gather_opts){ .keep_going = true, .ret_status = status }));
        ASSERT_EQ(status[0], -ETIMEDOUT);
        ASSERT_EQ(status[1], RESHA_EPROCESS);
        int before = __atomic_load_n(begun, __ATOMIC_RELAXED);
        ASSERT_OK(resha_sleep(RESHA_MS(500)));
        ASSERT_TRUE(__atomic_load_n(begun, __ATOMIC_RELAXED) - before <= 10);
        return 0;
}

TEST(workers_whose_init_dies_after_one_that_was_killed_fail_their_items_and_come_slowly)
{
        begun = mmap(NULL, sizeof *begun, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_TRUE(begun != MAP_FAILED);
        with_workers(&(resha_workers_opts){ .processes = 1, .chunk = 2, .time = RESHA_MS(100), .init = dies_but_once },
                     init_dies_later);
}

static int hangs(void *arg)
{
        (void)arg;
        for (volatile bool on = true; on;)
                pause();
        return 0;
}

static int init_hangs(void *w)
{
        struct job jobs[3];

        prepare(jobs, 3);
        int rc = resha_workers_map(w, work, jobs, 3, sizeof jobs[0], NULL);
        ASSERT_EQ(rc, -ETIMEDOUT);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "its init took longer than 0.100 s") != NULL);
        return 0;
}

TEST(a_worker_whose_init_hangs_fails_its_items_in_the_end)
{
        with_workers(&(resha_workers_opts){ .processes = 1, .time = RESHA_MS(100), .init = hangs }, init_hangs);
}

static int takes_time(void *arg)
{
        (void)arg;
        usleep(200000);
        return 0;
}

static int init_takes_time(void *w)
{
        struct job jobs[3];

        prepare(jobs, 3);
        return resha_workers_map(w, work, jobs, 3, sizeof jobs[0], NULL);
}

TEST(a_worker_whose_init_takes_less_than_its_time_goes_on)
{
        with_workers(&(resha_workers_opts){ .processes = 2, .time = RESHA_S(20), .init = takes_time }, init_takes_time);
}

/* ---- what they share ---- */

enum { FEW = 8 };

static int map_well(resha_workers *w)
{
        struct job jobs[200];

        prepare(jobs, 200);
        ASSERT_OK(resha_workers_map(w, work, jobs, 200, sizeof jobs[0], NULL));
        for (int i = 0; i < 200; i++)
                ASSERT_EQ(jobs[i].result, i * i);
        return 0;
}

/* Of a few items, one goes wild at the only worker. How many have failed, all of them with that text. */
static size_t goes_wild(resha_workers *w, enum how how, const char *text)
{
        struct job jobs[FEW];
        int status[FEW];
        resha_error errors[FEW];
        size_t failed;

        prepare(jobs, FEW);
        jobs[3].how = how;
        ASSERT_OK(resha_workers_map(
                w, work, jobs, FEW, sizeof jobs[0],
                &(resha_gather_opts){
                        .keep_going = true, .ret_status = status, .ret_errors = errors, .ret_failed = &failed }));
        ASSERT_EQ(status[3], RESHA_EPROCESS);
        for (int i = 0; i < FEW; i++)
                if (status[i] < 0)
                        ASSERT_TRUE(strstr(errors[i].text, text) != NULL);
                else
                        ASSERT_EQ(jobs[i].result, i * i);
        return failed;
}

static int go_wild(void *w)
{
        for (int i = 0; i < 3; i++) {
                ASSERT_TRUE(goes_wild(w, WILD_CELLS, "has overwritten what it shares") >= 1);
                ASSERT_EQ(goes_wild(w, WILD_ORDERS, TEST_ASAN || TEST_TSAN ? "worker process" : "SIGSEGV"), 1);
        }
        return map_well(w);
}

TEST(a_worker_that_overwrites_what_it_shares_fails_its_items_and_is_replaced)
{
        with_workers(&(resha_workers_opts){ .processes = 1 }, go_wild);
}

static int go_wild_for_ever(void *w)
{
        struct job job = { .how = WILD_LOOP };
        RESHA_SCOPE(s);

        ASSERT_TRUE(goes_wild(w, WILD_LOOP, "has overwritten what it shares") >= 1);
        resha_timeout_begin(&s, RESHA_MS(50));
        ASSERT_EQ(resha_scope_end(&s, resha_workers_map(w, work, &job, 1, sizeof job, NULL)), -ETIME);
        return map_well(w);
}

TEST(a_worker_that_overwrites_what_it_shares_and_goes_on_is_killed)
{
        with_workers(&(resha_workers_opts){ .processes = 1, .time = RESHA_MS(300) }, go_wild_for_ever);
}

/* The only item of a map that goes wild, and on for ever: its result. */
static int one_goes_wild(resha_workers *w, enum how how, const char *text)
{
        struct job job = { .how = how };
        int rc = resha_workers_map(w, work, &job, 1, sizeof job, NULL);

        ASSERT_HAS(resha_error_of(rc)->text, text);
        return rc;
}

static int forget_who_they_are(void *w)
{
        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(one_goes_wild(w, WILD_GENERATION, "took longer than 1.000 s"), -ETIMEDOUT);
                ASSERT_OK(map_well(w));
        }
        return 0;
}

TEST(a_worker_that_overwrites_which_one_it_is_is_killed_all_the_same)
{
        with_workers(&(resha_workers_opts){ .processes = 1, .time = RESHA_S(1) }, forget_who_they_are);
}

static int forget_the_time(void *w)
{
        ASSERT_EQ(one_goes_wild(w, WILD_TIME, "has overwritten what it shares"), RESHA_EPROCESS);
        return map_well(w);
}

TEST(a_worker_that_overwrites_when_it_has_begun_is_killed_all_the_same)
{
        with_workers(&(resha_workers_opts){ .processes = 1, .time = RESHA_S(1) }, forget_the_time);
}
