/* SPDX-License-Identifier: MIT */
/* The inspector: what it answers of loops that run, sleep, are blocked, embedded, many, or about to end; and what
 * becomes of clients that do not behave. */

#include "inspector.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/core.h"

enum { MANY = TEST_ASAN || TEST_TSAN ? 2000 : 100000, PAUSE_MOST_NS = 5000000 };

struct hold {
        bool release; /* atomic */
};

static int holds(void *arg)
{
        struct hold *h = arg;

        while (!__atomic_load_n(&h->release, __ATOMIC_SEQ_CST))
                poll(NULL, 0, 1);
        return 0;
}

/* ---- what is answered ---- */

INSPECTED(a_snapshot)
{
        RESHA_GROUP(g);
        char *text;

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, inspector_sleeps, NULL);
        text = asker_text("snapshot stacks\n");
        assert_whole(text);
        ASSERT_HAS(text, "{\"type\":\"resha\",\"protocol\":1,");
        ASSERT_EQ(inspector_number(text, "\"type\":\"resha\"", "pid"), getpid());
        ASSERT_EQ(inspector_number(text, "\"type\":\"resha\"", "loops"), 1);
        ASSERT_EQ(inspector_number(text, "\"type\":\"loop\"", "tasks"), 4);
        ASSERT_HAS(text, "\"mode\":\"loop\"");
        ASSERT_EQ(inspector_count(text, "\"type\":\"task\""), 4);
        ASSERT_EQ(inspector_count(text, "\"name\":\"inspector_sleeps\""), 4); /* three and their place */
        ASSERT_HAS(text, "\"type\":\"scope\"");
#if defined(__x86_64__) && !TEST_ASAN && !TEST_TSAN
        ASSERT_TRUE(inspector_count(text, "\"text\":\"inspector_sleeps+0x") == 3);
#endif
        resha_free(text);
        return resha_group_end(&g, 0);
}

static int yields(void *arg)
{
        (void)arg;
        int rc = 0;
        while (rc == 0)
                rc = resha_yield();
        return rc;
}

/* Who has the thread most of the time is told of as the one that runs; in a slice it does not. */
INSPECTED(a_stack_of_a_busy_task)
{
        RESHA_GROUP(g);
        char part[64];

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, yields, NULL);
        char *text = asker_text("snapshot stacks\n");
        assert_whole(text);
        int64_t id = inspector_number(text, "\"name\":\"yields\"", "id");
        snprintf(part, sizeof part, "\"task\":%d,\"depth\":0", (int)id);
#if defined(__x86_64__) && !TEST_ASAN && !TEST_TSAN
        ASSERT_HAS(text, part);
#endif
        resha_free(text);
        return resha_group_end(&g, 0);
}

INSPECTED(a_snapshot_of_one_task)
{
        RESHA_GROUP(g);
        char line[64], *text;

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, inspector_sleeps, NULL);
        snprintf(line, sizeof line, "snapshot task=%u.3\n", (unsigned)(rs_loop_current->last_mark >> RS_MARK_RUN));
        text = asker_text(line);
        assert_whole(text);
        ASSERT_EQ(inspector_count(text, "\"type\":\"task\""), 1);
        ASSERT_EQ(inspector_number(text, "\"type\":\"task\"", "id"), 3);
        ASSERT_EQ(inspector_count(text, "\"type\":\"place\""), 0);
        resha_free(text);
        return resha_group_end(&g, 0);
}

INSPECTED(statistics)
{
        char *text = asker_text("stats\n");

        ASSERT_HAS(text, "# TYPE resha_");
        resha_free(text);
        return 0;
}

static int spins(void *arg)
{
        const bool *stop = arg;

        while (!__atomic_load_n(stop, __ATOMIC_SEQ_CST)) {
                for (volatile unsigned i = 0; i < 20000; i++)
                        ;
                int rc = resha_yield();
                if (rc < 0)
                        return rc;
        }
        return 0;
}

INSPECTED(samples_of_who_is_busy)
{
        bool stop = false;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, spins, &stop);
        resha_spawn(&g, inspector_sleeps, NULL);
        char *text = asker_text("sample 200\n");
        assert_whole(text);
        long long of = inspector_number(text, "\"type\":\"samples\"", "of");
        long long hits = inspector_number(text, "\"name\":\"spins\"", "hits");
        if (!(of > 10 && hits > of / 4 && hits <= of))
                FAIL("%lld of %lld: %s", hits, of, text);
        ASSERT_EQ(inspector_count(text, "\"name\":\"inspector_sleeps\""), 0);
        resha_free(text);
        stop = true;
        return resha_group_end(&g, 0);
}

/* What is in it is for tests of traces: here, that it is whole, and one at a time. */
INSPECTED(a_trace)
{
        bool stop = false;
        struct asker a, b;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, spins, &stop);
        asker_start(&a, "trace 300\n");
        ASSERT_OK(resha_sleep(RESHA_MS(100)));
        asker_start(&b, "trace 100\n");
        asker_wait(&a);
        asker_wait(&b);
        bool a_first = a.text[0] == '[';
        const char *whole = a_first ? a.text : b.text, *refused = a_first ? b.text : a.text;
        ASSERT_HAS(refused, "somebody else traces this process already");
        ASSERT_TRUE(whole[0] == '[' && whole[strlen(whole) - 2] == ']');
        ASSERT_HAS(whole, "\"spins\"");
        resha_free(a.text);
        resha_free(b.text);
        char *again = asker_text("trace 10\n");
        ASSERT_TRUE(again[0] == '[');
        resha_free(again);
        stop = true;
        return resha_group_end(&g, 0);
}

/* ---- what tasks wait for in the world ---- */

static int reads(void *arg)
{
        char byte;
        ssize_t n = resha_read(arg, &byte, 1);

        return n < 0 ? (int)n : 0;
}

static int waits_for_descriptor(void *arg)
{
        int rc = resha_fd_wait(*(int *)arg, POLLIN);

        return rc < 0 ? rc : 0;
}

static int runs_a_process(void *arg)
{
        resha_process *p;
        static const char *const argv[] = { "sleep", "100", NULL };
        int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv, .grace = RESHA_MS(1) }, &p);

        (void)arg;
        ASSERT_OK(rc);
        rc = resha_process_wait(p, NULL);
        resha_process_close(p);
        return rc;
}

static int runs_a_job(void *arg)
{
        return resha_pool_run(NULL, holds, arg, NULL);
}

INSPECTED(descriptors_processes_and_threads)
{
        struct hold hold = { false };
        struct real_pair pair;
        int ends[2];
        char want[64];
        RESHA_GROUP(g);

        real_pair(&pair);
        ASSERT_EQ(pipe(ends), 0);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, reads, pair.here);
        resha_spawn(&g, waits_for_descriptor, &ends[0]);
        resha_spawn(&g, runs_a_process, NULL);
        resha_spawn(&g, runs_a_job, &hold);
        ASSERT_OK(resha_sleep(RESHA_MS(20)));
        char *text = asker_text("snapshot\n");
        assert_whole(text);
        ASSERT_HAS(strstr(text, "\"name\":\"reads\""), "\"detail\":\"descriptor ");
        snprintf(want, sizeof want, "\"detail\":\"descriptor %d to be readable\"", ends[0]);
        ASSERT_HAS(text, want);
        ASSERT_HAS(strstr(text, "\"name\":\"runs_a_process\""), " sleep\"");
        ASSERT_HAS(strstr(text, "\"name\":\"runs_a_job\""), "\"detail\":\"of pool resha\"");
        ASSERT_HAS(text, "{\"type\":\"handle\",");
        resha_free(text);
        __atomic_store_n(&hold.release, true, __ATOMIC_SEQ_CST);
        ASSERT_OK(resha_group_end(&g, 0));
        real_pair_close(&pair);
        close(ends[0]);
        close(ends[1]);
        return 0;
}

/* ---- a hundred thousand tasks ---- */

/* The loop stands still for a slice at a time. The processor time of the longest is what counts: between its beginning
 * and its end the thread may have had to wait for others of the machine. */
INSPECTED(many_tasks_in_short_slices)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (int i = 0; i < MANY; i++)
                resha_spawn(&g, inspector_sleeps, NULL);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        char *text = asker_text("snapshot\n");
        assert_whole(text);
        ASSERT_EQ(inspector_count(text, "\"type\":\"task\""), MANY + 1);
        ASSERT_EQ(inspector_number(text, "\"name\":\"inspector_sleeps\"", "loop"),
                  (long long)(rs_loop_current->last_mark >> RS_MARK_RUN));
        resha_free(text);
        text = asker_text("snapshot\n");
        long long pause = inspector_number(text, "\"type\":\"loop\"", "pause_cpu");
        if (!(pause > 0 && (pause <= PAUSE_MOST_NS || TEST_SANITIZED)))
                FAIL("a slice of %lld ns", pause);
        resha_free(text);
        return resha_group_end(&g, 0);
}

/* ---- blocked ---- */

static int blocks(void *arg)
{
        struct asker *a = arg;

        while (!__atomic_load_n(&a->done, __ATOMIC_SEQ_CST))
                poll(NULL, 0, 5);
        return 0;
}

static int blocked(void *arg)
{
        struct asker a;
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, inspector_sleeps, NULL);
        ASSERT_OK(resha_yield());
        asker_start(&a, "snapshot stacks\n");
        resha_spawn(&g, blocks, &a);
        ASSERT_OK(resha_yield());
        asker_wait(&a);
        assert_whole(a.text);
        ASSERT_HAS(a.text, "\"state\":\"blocked\"");
        ASSERT_HAS(a.text, "\"mode\":\"blocked\"");
        ASSERT_EQ(inspector_count(a.text, "\"type\":\"task\""), 3);
        ASSERT_EQ(inspector_number(a.text, "\"type\":\"loop\"", "current"),
                  inspector_number(a.text, "\"name\":\"blocks\"", "id"));
        ASSERT_HAS(strstr(a.text, "\"name\":\"blocks\""), "\"state\":\"runs\"");
        ASSERT_HAS(a.text, "\"what\":\"sleep\"");
#if defined(__x86_64__) && !TEST_ASAN && !TEST_TSAN
        ASSERT_HAS(a.text, "\"text\":\"blocks+0x");
        ASSERT_HAS(a.text, "\"text\":\"inspector_sleeps+0x");
#endif
        resha_free(a.text);
        ASSERT_OK(resha_group_end(&g, 0));
        a.text = asker_text("snapshot\n"); /* and it answers again */
        assert_whole(a.text);
        ASSERT_HAS(a.text, "\"mode\":\"loop\"");
        resha_free(a.text);
        return 0;
}

TEST(a_loop_that_is_blocked)
{
        inspector_run(blocked, NULL);
}

/* Question after question to a loop that does not answer: one post is in its inbox, whoever asks. */
static void *asks_three_times(void *arg)
{
        struct hold *h = arg;
        char *text;

        for (int i = 0; i < 3; i++) {
                text = inspector_ask("snapshot\n");
                ASSERT_TRUE(text != NULL);
                assert_whole(text);
                ASSERT_HAS(text, "\"mode\":\"blocked\"");
                resha_free(text);
        }
        text = inspector_ask("stats\n");
        ASSERT_HAS(text, "# TYPE resha_");
        resha_free(text);
        __atomic_store_n(&h->release, true, __ATOMIC_SEQ_CST);
        return NULL;
}

INSPECTED(a_blocked_loop_is_asked_again_and_again)
{
        struct hold h = { false };
        pthread_t thread;

        ASSERT_EQ(pthread_create(&thread, NULL, asks_three_times, &h), 0);
        holds(&h);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        char *text = asker_text("snapshot\n");
        ASSERT_HAS(text, "\"mode\":\"loop\"");
        resha_free(text);
        return 0;
}

/* ---- on, off, and how private ---- */

static int looks_at_socket(void *arg)
{
        char path[128];
        struct stat st;
        const bool *there = arg;

        inspector_path(geteuid(), getpid(), path, sizeof path);
        ASSERT_EQ(lstat(path, &st) == 0, *there);
        if (!*there)
                return 0;
        ASSERT_TRUE(S_ISSOCK(st.st_mode));
        ASSERT_EQ(st.st_mode & 07777, 0600);
        ASSERT_EQ(st.st_uid, geteuid());
        *strrchr(path, '/') = '\0';
        ASSERT_EQ(lstat(path, &st), 0);
        ASSERT_EQ(st.st_mode & 0777, 0700);
        ASSERT_EQ(st.st_uid, geteuid());
        return 0;
}

static void expect_socket(bool there, bool option, const char *variable)
{
        if (variable)
                setenv("RESHA_INSPECT", variable, 1);
        else
                unsetenv("RESHA_INSPECT");
        ASSERT_OK(test_run_opts(looks_at_socket, &there, &(resha_run_opts){ .inspect = option }));
        looks_at_socket(&(bool){ false });
}

TEST(it_is_off_unless_asked_for_and_gone_after_the_run)
{
        expect_socket(false, false, NULL);
        expect_socket(true, true, NULL);
        expect_socket(true, true, "");
        expect_socket(false, true, "0");
        expect_socket(true, false, "1");
        expect_socket(true, true, "1");
        expect_socket(false, false, "0");
}

TEST(the_umask_of_the_program_takes_nothing)
{
        mode_t before = umask(0);

        expect_socket(true, true, NULL);
        umask(0777);
        expect_socket(true, true, NULL);
        umask(before);
}

TEST(no_inspector_in_the_simulated_world)
{
        bool there = false;

        ASSERT_OK(resha_run(looks_at_socket, &there, &(resha_run_opts){ .inspect = true, .backend = "sim:1" }));
}

/* ---- several runs ---- */

TEST(one_run_after_another)
{
        unsigned threads = real_threads(), fds = real_fds();

        for (int i = 0; i < 5; i++)
                inspector_run(inspector_answers, NULL);
        ASSERT_EQ(real_threads(), threads);
        ASSERT_EQ(real_fds(), fds);
}

static struct {
        pthread_barrier_t all;
        struct asker a;
} loops;

static int one_of_four(void *arg)
{
        const int *number = arg;

        pthread_barrier_wait(&loops.all);
        if (*number == 0) {
                asker_start(&loops.a, "snapshot\n");
                asker_wait(&loops.a);
                return -EINTR; /* which ends the others */
        }
        return resha_sleep(RESHA_S(100));
}

TEST(four_loops)
{
        int numbers[4] = { 0, 1, 2, 3 };
        resha_run_opts o = { .inspect = true, .backend = test_backend() };

        pthread_barrier_init(&loops.all, NULL, 4);
        ASSERT_EQ(resha_run_loops(one_of_four, numbers, 4, sizeof *numbers, &o), -EINTR);
        assert_whole(loops.a.text);
        ASSERT_EQ(inspector_number(loops.a.text, "\"type\":\"resha\"", "loops"), 4);
        ASSERT_EQ(inspector_count(loops.a.text, "\"type\":\"loop\""), 4);
        ASSERT_EQ(inspector_count(loops.a.text, "\"type\":\"task\""), 4);
        resha_free(loops.a.text);
}

/* Loops come and go while they are asked all the time: nothing hangs, and no answer is one of nobody's. */
static void *asks_on(void *arg)
{
        const bool *stop = arg;

        while (!__atomic_load_n(stop, __ATOMIC_SEQ_CST)) {
                char *text = inspector_ask("snapshot stacks\n");
                if (!text || !*text)
                        poll(NULL, 0, 1);
                resha_free(text);
        }
        return NULL;
}

static int short_one(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_MS(1));
}

TEST(loops_that_end_while_they_are_asked)
{
        char items[8] = { 0 };
        pthread_t threads[2];
        bool stop = false;
        resha_run_opts o = { .inspect = true, .backend = test_backend() };

        for (int i = 0; i < 2; i++)
                ASSERT_EQ(pthread_create(&threads[i], NULL, asks_on, &stop), 0);
        for (int i = 0; i < (TEST_SANITIZED ? 10 : 40); i++)
                ASSERT_OK(resha_run_loops(short_one, items, 1 + (size_t)i % 8, 1, &o));
        __atomic_store_n(&stop, true, __ATOMIC_SEQ_CST);
        for (int i = 0; i < 2; i++)
                ASSERT_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- embedded ---- */

TEST(an_embedded_run_between_steps_and_in_them)
{
        resha_run_opts o = { .inspect = true, .backend = test_backend() };
        resha_embed *e;
        struct asker a;

        ASSERT_OK(resha_embed_begin(inspector_sleeps, NULL, &o, &e));
        ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 1);
        asker_start(&a, "snapshot\n"); /* nobody takes a step */
        ASSERT_EQ(pthread_join(a.thread, NULL), 0);
        assert_whole(a.text);
        ASSERT_HAS(a.text, "\"state\":\"sleeps\"");
        ASSERT_HAS(a.text, "\"mode\":\"blocked\"");
        ASSERT_HAS(a.text, "\"what\":\"sleep\"");
        resha_free(a.text);
        asker_start(&a, "snapshot\n");
        while (!__atomic_load_n(&a.done, __ATOMIC_SEQ_CST)) {
                struct pollfd p = { .fd = resha_embed_fd(e), .events = POLLIN };
                poll(&p, 1, 1);
                ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 1);
        }
        ASSERT_EQ(pthread_join(a.thread, NULL), 0);
        assert_whole(a.text);
        ASSERT_HAS(a.text, "\"mode\":\"loop\"");
        resha_free(a.text);
        ASSERT_EQ(resha_embed_end(e), -ECANCELED);
}

/* ---- forks ---- */

/* There is none but its own, not the parent's. AddressSanitizer's allocator may have been locked by another thread when
 * it was forked: there, it has no run. */
static int child_of_a_run(void)
{
        char *text = inspector_ask("snapshot\n");

        if (text)
                return 1;
        return !TEST_ASAN && test_run_opts(inspector_answers, NULL, &(resha_run_opts){ .inspect = true }) < 0;
}

INSPECTED(a_forked_child_leaves_the_parents_alone)
{
        int status;

        if (real_under_tsan())
                test_skip("TSan knows no threads in a forked child");
        pid_t pid = fork();
        if (pid == 0)
                _exit(child_of_a_run());
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
        return inspector_answers(NULL);
}
