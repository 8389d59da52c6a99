/* SPDX-License-Identifier: MIT */
/* Maps over processes: results, failures, deaths of every kind, limits, cancels, several at once, ends. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum how { WELL, FAIL, KILL, SEGV, EXIT, LOOP, EAT, STOP_ALL };

struct job {
        int n;
        enum how how;
        int result;
        int pid;
};

static volatile int *counter; /* shared: how often each item has begun */

static void count_in_shared_memory(void)
{
        counter = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_TRUE(counter != MAP_FAILED);
}

static void crash(void)
{
        volatile int *nowhere = (int *)(uintptr_t)getenv("RESHA_NO_SUCH_NAME");

        signal(SIGSEGV, SIG_DFL);
        if (TEST_ASAN || TEST_TSAN)
                raise(SIGSEGV);
        *nowhere = 1;
}

static int eat(void)
{
        for (int i = 0; i < 64; i++) {
                char *p = resha_malloc(4 << 20);
                if (!p)
                        return resha_fail(-ENOMEM, "no memory after %d MiB", 4 * i);
                memset(p, 1, 4 << 20);
        }
        return 0;
}

static int work(void *arg)
{
        struct job *j = arg;

        if (counter)
                __atomic_add_fetch(&counter[j->n], 1, __ATOMIC_RELAXED);
        j->pid = getpid();
        switch (j->how) {
        case WELL: break;
        case FAIL: return resha_fail(-ENOENT, "no item %d", j->n);
        case KILL: raise(SIGKILL); break;
        case SEGV: crash(); break;
        case EXIT: exit(3);
        case LOOP:
                for (volatile bool on = true; on;)
                        ;
                break;
        case EAT: return eat();
        case STOP_ALL:
                kill(getppid(), SIGKILL);
                pause();
                break;
        }
        j->result = j->n * j->n;
        return j->n % 7;
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

/* ---- results ---- */

enum { MANY = 3000 };

static int map_many(void *w)
{
        static struct job jobs[MANY];
        static int status[MANY];
        size_t failed = 1;

        prepare(jobs, MANY);
        ASSERT_OK(resha_workers_map(w, work, jobs, MANY, sizeof jobs[0],
                                    &(resha_gather_opts){ .ret_status = status, .ret_failed = &failed }));
        for (int i = 0; i < MANY; i++) {
                ASSERT_EQ(jobs[i].result, i * i);
                ASSERT_EQ(status[i], i % 7);
                ASSERT_TRUE(jobs[i].pid != getpid());
                ASSERT_EQ(counter[i], 1);
        }
        ASSERT_EQ(failed, 0);
        return 0;
}

TEST(every_item_is_run_once_in_a_worker_and_its_bytes_come_back)
{
        count_in_shared_memory();
        with_workers(&(resha_workers_opts){ .processes = 3 }, map_many);
}

TEST(every_item_is_run_once_in_chunks_of_a_given_size)
{
        count_in_shared_memory();
        with_workers(&(resha_workers_opts){ .processes = 2, .chunk = 7 }, map_many);
}

static int map_nothing(void *w)
{
        return resha_workers_map(w, work, NULL, 0, sizeof(struct job), NULL);
}

TEST(nothing_is_mapped_to_nothing)
{
        with_workers(NULL, map_nothing);
}

static int map_failing(void *w)
{
        struct job jobs[40];
        size_t failed = 0;

        prepare(jobs, 40);
        jobs[5].how = FAIL;
        int rc = resha_workers_map(w, work, jobs, 40, sizeof jobs[0], &(resha_gather_opts){ .ret_failed = &failed });
        ASSERT_EQ(rc, -ENOENT);
        const resha_error *e = resha_error_of(rc);
        ASSERT_STR(e->text, "no item 5");
        ASSERT_EQ(e->item, 6);
        ASSERT_EQ(e->items, 40);
        ASSERT_TRUE(e->site && strstr(e->site, "workers.c:"));
        ASSERT_TRUE(failed >= 1);
        ASSERT_EQ(jobs[5].pid, 0); /* as it was */
        return 0;
}

TEST(the_first_failure_is_the_result_with_its_record)
{
        with_workers(&(resha_workers_opts){ .processes = 2 }, map_failing);
}

/* ---- bytes ---- */

static int twice(const void *data, size_t size, void **ret_data, size_t *ret_size)
{
        char *p = resha_malloc(2 * size + 1);

        if (!p)
                return -ENOMEM;
        memcpy(p, data, size);
        memcpy(p + size, data, size);
        *ret_data = p;
        *ret_size = 2 * size;
        return 1;
}

static int map_bytes(void *w)
{
        enum { N = 60 };
        static char text[1 << 20];
        resha_bytes b[N];
        int status[N];
        size_t failed;

        for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)(i * 31 % 251);
        for (size_t i = 0; i < N; i++)
                b[i] = (resha_bytes){ .data = text + i, .size = i * 1000 };
        b[7].size = sizeof text - 100; /* its result is too large */
        ASSERT_OK(resha_workers_map_bytes(
                w, twice, b, N,
                &(resha_gather_opts){ .keep_going = true, .ret_status = status, .ret_failed = &failed }));
        ASSERT_EQ(failed, 1);
        for (size_t i = 0; i < N; i++) {
                ASSERT_EQ(status[i], i == 7 ? -EMSGSIZE : 1);
                if (i == 7)
                        continue;
                ASSERT_EQ(b[i].ret_size, 2 * b[i].size);
                ASSERT_TRUE(b[i].size == 0 || memcmp(b[i].ret_data, text + i, b[i].size) == 0);
                ASSERT_TRUE(b[i].size == 0 || memcmp((char *)b[i].ret_data + b[i].size, text + i, b[i].size) == 0);
                resha_free(b[i].ret_data);
        }
        b[0].size = sizeof text + 1;
        ASSERT_EQ(resha_workers_map_bytes(w, twice, b, 1, NULL), -EMSGSIZE);
        return 0;
}

TEST(bytes_of_any_length_go_and_come)
{
        with_workers(&(resha_workers_opts){ .processes = 2 }, map_bytes);
}

/* ---- deaths ---- */

enum { AMONG = 300 };

/* One item of that kind among others: it alone fails, everything else is done, once. */
static void dies_alone(resha_workers *w, enum how how, int code, const char *text)
{
        static struct job jobs[AMONG];
        static int status[AMONG];
        static resha_error errors[AMONG];
        size_t failed;

        prepare(jobs, AMONG);
        memset((void *)(uintptr_t)counter, 0, 65536);
        jobs[100].how = how;
        ASSERT_OK(resha_workers_map(
                w, work, jobs, AMONG, sizeof jobs[0],
                &(resha_gather_opts){
                        .keep_going = true, .ret_status = status, .ret_errors = errors, .ret_failed = &failed }));
        ASSERT_EQ(failed, 1);
        for (int i = 0; i < AMONG; i++) {
                ASSERT_EQ(counter[i], 1);
                if (i != 100) {
                        ASSERT_EQ(status[i], i % 7);
                        ASSERT_EQ(jobs[i].result, i * i);
                }
        }
        ASSERT_EQ(status[100], code);
        ASSERT_TRUE(strstr(errors[100].text, text) != NULL);
        ASSERT_EQ(jobs[100].result, 0);
        ASSERT_EQ(errors[100].item, 101);
        ASSERT_EQ(errors[100].spawned_at == NULL, true);
}

static int die_each_way(void *w)
{
        for (int i = 0; i < 2; i++) {
                dies_alone(w, KILL, RESHA_EPROCESS, "killed by signal 9 (SIGKILL)");
                dies_alone(w, SEGV, RESHA_EPROCESS, "killed by signal 11 (SIGSEGV)");
                if (!TEST_ASAN && !TEST_TSAN)
                        dies_alone(w, EXIT, RESHA_EPROCESS, "exit status 3");
                dies_alone(w, LOOP, -ETIMEDOUT, "took longer than 0.300 s");
                dies_alone(w, FAIL, -ENOENT, "no item 100");
        }
        return 0;
}

/* semantics 241 better
 * asyncio: when a worker process dies, its pool's jobs all fail and the pool stays unusable.
 * resha: the item that it ran fails, the worker is replaced, and the rest goes on. */
TEST(semantics_241_a_worker_that_dies_fails_its_item_alone_and_is_replaced)
{
        count_in_shared_memory();
        with_workers(&(resha_workers_opts){ .processes = 2, .time = RESHA_MS(300) }, die_each_way);
}

static int die_of_memory(void *w)
{
        dies_alone(w, EAT, -ENOMEM, "no memory after");
        return 0;
}

TEST(an_item_that_wants_too_much_memory_fails_alone)
{
        if (TEST_ASAN || TEST_TSAN || TEST_VALGRIND)
                test_skip("sanitizers have memory of their own");
        count_in_shared_memory();
        with_workers(&(resha_workers_opts){ .processes = 2, .memory = 48 << 20 }, die_of_memory);
}

static int all_die(void *w)
{
        struct job jobs[20];
        int status[20];

        prepare(jobs, 20);
        for (int i = 0; i < 20; i++)
                jobs[i].how = KILL;
        ASSERT_OK(resha_workers_map(w, work, jobs, 20, sizeof jobs[0],
                                    &(resha_gather_opts){ .keep_going = true, .ret_status = status }));
        for (int i = 0; i < 20; i++)
                ASSERT_EQ(status[i], RESHA_EPROCESS);
        return 0;
}

TEST(workers_that_all_die_are_all_replaced)
{
        with_workers(&(resha_workers_opts){ .processes = 2 }, all_die);
}

static int template_dies(void *w)
{
        struct job jobs[20];

        prepare(jobs, 20);
        jobs[3].how = STOP_ALL;
        int rc = resha_workers_map(w, work, jobs, 20, sizeof jobs[0], NULL);
        ASSERT_EQ(rc, RESHA_EPROCESS);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "template process was ended (signal 9)") != NULL);
        prepare(jobs, 20);
        ASSERT_EQ(resha_workers_map(w, work, jobs, 20, sizeof jobs[0], NULL), RESHA_EPROCESS);
        return 0;
}

TEST(a_template_that_is_killed_is_said)
{
        with_workers(&(resha_workers_opts){ .processes = 2 }, template_dies);
}

static bool ends_within(int pid, int ms)
{
        for (int i = 0; i < ms && kill(pid, 0) == 0; i++)
                usleep(1000);
        return kill(pid, 0) < 0;
}

static int report_pids(void *w)
{
        struct job jobs[2];

        prepare(jobs, 2);
        int rc = resha_workers_map(w, work, jobs, 2, sizeof jobs[0], NULL);
        counter[100] = jobs[0].pid;
        if (rc >= 0) {
                jobs[0].how = LOOP;
                counter[102] = 1;
                rc = resha_workers_map(w, work, jobs, 1, sizeof jobs[0], NULL);
        }
        return rc;
}

TEST(when_the_parent_is_killed_its_workers_end_even_in_an_endless_loop)
{
        count_in_shared_memory();
        int pid = fork();
        if (pid == 0) {
                resha_workers *w;
                if (resha_workers_start(&(resha_workers_opts){ .processes = 2 }, &w) == 0)
                        (void)test_run_opts(report_pids, w, NULL);
                _exit(1);
        }
        for (int i = 0; i < 10000 && !(counter[102] && counter[0] == 2); i++)
                usleep(1000);
        ASSERT_EQ(counter[0], 2);
        kill(pid, SIGKILL);
        ASSERT_EQ(waitpid(pid, NULL, 0), pid);
        ASSERT_TRUE(ends_within(counter[100], 10000));
}

/* ---- cancel ---- */

static int map_loops(void *w)
{
        struct job jobs[4];

        prepare(jobs, 4);
        for (int i = 0; i < 4; i++)
                jobs[i].how = LOOP;
        return resha_workers_map(w, work, jobs, 4, sizeof jobs[0], NULL);
}

static int cancel_loops(void *w)
{
        for (int i = 0; i < 3; i++) {
                resha_instant began = resha_now();
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, RESHA_MS(50));
                ASSERT_EQ(resha_scope_end(&s, map_loops(w)), -ETIME);
                ASSERT_TRUE(resha_between(began, resha_now()).ns < INT64_C(5000000000));
        }
        memset((void *)(uintptr_t)counter, 0, 65536);
        return map_many(w); /* those that were killed have been replaced */
}

TEST(a_cancel_kills_what_runs_and_the_next_map_has_all_workers)
{
        count_in_shared_memory();
        with_workers(&(resha_workers_opts){ .processes = 2 }, cancel_loops);
}

/* ---- several at once ---- */

static int map_some(void *arg)
{
        resha_workers **w = arg;
        struct job jobs[100];

        for (int k = 0; k < 5; k++) {
                prepare(jobs, 100);
                jobs[50].how = k == 2 ? KILL : WELL;
                size_t failed;
                ASSERT_OK(resha_workers_map(*w, work, jobs, 100, sizeof jobs[0],
                                            &(resha_gather_opts){ .keep_going = true, .ret_failed = &failed }));
                ASSERT_EQ(failed, k == 2);
        }
        return 0;
}

static int several(void *w)
{
        resha_workers *all[8];

        for (int i = 0; i < 8; i++)
                all[i] = w;
        return resha_gather(map_some, all, 8, sizeof all[0], NULL);
}

TEST(several_tasks_map_over_the_same_workers)
{
        with_workers(&(resha_workers_opts){ .processes = 2 }, several);
}

/* ---- the beginning ---- */

static int broken(void *arg)
{
        return resha_fail(-EACCES, "no data in %s", (const char *)arg);
}

static int init_fails(void *w)
{
        struct job jobs[3];

        prepare(jobs, 3);
        int rc = resha_workers_map(w, work, jobs, 3, sizeof jobs[0], NULL);
        ASSERT_EQ(rc, -EACCES);
        ASSERT_STR(resha_error_of(rc)->text, "no data in here");
        return 0;
}

TEST(a_worker_whose_init_fails_fails_its_items)
{
        char here[] = "here";

        with_workers(&(resha_workers_opts){ .processes = 1, .init = broken, .arg = here }, init_fails);
}

static int dies(void *arg)
{
        (void)arg;
        abort();
}

static int init_dies(void *w)
{
        struct job jobs[1];

        prepare(jobs, 1);
        int rc = resha_workers_map(w, work, jobs, 1, sizeof jobs[0], NULL);
        ASSERT_EQ(rc, RESHA_EPROCESS);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "SIGABRT") != NULL);
        return 0;
}

TEST(a_worker_whose_init_dies_fails_its_items_in_the_end)
{
        with_workers(&(resha_workers_opts){ .processes = 1, .init = dies }, init_dies);
}

static void *sits(void *arg)
{
        pthread_barrier_wait(arg);
        pthread_barrier_wait(arg);
        return arg;
}

TEST(beside_a_thread_it_is_too_late_and_main_can_say_why)
{
        resha_workers *w = NULL;
        pthread_barrier_t both;
        pthread_t thread;
        if (TEST_TSAN)
                test_skip("TSan has a thread of its own, so they are not counted");

        ASSERT_EQ(pthread_barrier_init(&both, NULL, 2), 0);
        ASSERT_EQ(pthread_create(&thread, NULL, sits, &both), 0);
        pthread_barrier_wait(&both);
        int rc = resha_workers_start(NULL, &w);
        ASSERT_EQ(rc, -EBUSY);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "thread") != NULL);
        pthread_barrier_wait(&both);
        pthread_join(thread, NULL);
        pthread_barrier_destroy(&both);
}

static int nobody_maps(void *arg)
{
        int item = 0, rc = resha_workers_map(arg, dies, &item, 1, sizeof item, NULL);

        ASSERT_EQ(rc, -EINVAL);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "no workers") != NULL);
        return 0;
}

TEST(a_map_without_workers_is_refused)
{
        RUN(nobody_maps, NULL);
}

static int start_inside(void *arg)
{
        resha_workers *w = arg;
        int rc = resha_workers_start(NULL, &w);

        if (test_is_sim())
                return rc; /* unreachable by the tests of this file, which are real ones */
        ASSERT_EQ(rc, -EBUSY);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "start them in main()") != NULL);
        return 0;
}

TEST(inside_of_a_run_it_is_too_late)
{
        RUN(start_inside, NULL);
}

static int open_there(void *arg)
{
        int *fds = arg;

        *fds = 0;
        for (int fd = 3; fd < 1000; fd++)
                *fds += fcntl(fd, F_GETFD) >= 0;
        return 0;
}

static int no_descriptors(void *w)
{
        int fds[1];

        ASSERT_OK(resha_workers_map(w, open_there, fds, 1, sizeof fds[0], NULL));
        ASSERT_EQ(fds[0], 1); /* its own */
        return 0;
}

TEST(no_descriptor_of_the_program_is_there)
{
        int fd = dup(2);

        with_workers(&(resha_workers_opts){ .processes = 2 }, no_descriptors);
        close(fd);
}

/* ---- several loops, and the end ---- */

TEST(several_loops_map_over_the_same_workers)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;

        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .processes = 2 }, &w));
        resha_workers *all[3] = { w, w, w };
        ASSERT_OK(resha_run_loops(map_some, all, 3, sizeof all[0], NULL));
}

static int stop_them(void *w)
{
        resha_workers_stop(w);
        return 0;
}

static int map_until_stopped(void *w)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, map_loops, w);
        ASSERT_OK(resha_sleep(RESHA_MS(30)));
        ASSERT_OK(resha_pool_run(NULL, stop_them, w, NULL));
        ASSERT_EQ(resha_group_end(&g, 0), -EBADF);
        return 0;
}

TEST(maps_of_workers_that_are_stopped_fail)
{
        resha_workers *w;

        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .processes = 2 }, &w));
        RUN(map_until_stopped, w);
}
