/* SPDX-License-Identifier: MIT */
/* All tasks on stderr on a signal: of loops that sleep, compute, or are stuck in a call; and what becomes of the
 * signal. Each in a child process whose stderr is a file, which a thread of the child watches. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define FRAME __attribute__((noinline))

enum { PATIENCE_MS = 20000 };

static volatile int after_call;
static atomic_int stuck;

static void nap(void)
{
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

/* What stderr has, once `end` is in it; the process ends then, or when it has not come. */
struct wanted {
        const char *end;
        int loops; /* that are where they are to be when that many have said so */
};

static void *asks(void *arg)
{
        static char text[32768];
        const struct wanted *w = arg;

        for (int ms = 0; atomic_load(&stuck) < w->loops && ms < PATIENCE_MS; ms += 2)
                nap();
        for (int i = 0; i < 10; i++)
                nap(); /* from saying so to being stuck */
        if (TEST_TSAN) /* it keeps a signal back from a thread that is in no call of the C library */
                raise(SIGUSR1);
        else
                kill(getpid(), SIGUSR1);
        for (int ms = 0; ms < PATIENCE_MS; ms += 2) {
                ssize_t n = pread(STDERR_FILENO, text, sizeof text - 1, 0);
                text[n > 0 ? n : 0] = 0;
                int loops = 0; /* each of which has one `end`, at the end of its text */
                for (const char *at = text; (at = strstr(at, w->end)); at++)
                        loops++;
                if (loops >= w->loops)
                        break;
                nap();
        }
        (void)!write(STDOUT_FILENO, text, strlen(text));
        _exit(0);
}

static void stderr_to_a_file(void)
{
        FILE *f = tmpfile();

        if (!f || dup2(fileno(f), STDERR_FILENO) < 0)
                _exit(99);
}

/* Runs fn in a child, as `loops` loops, and gives what it has written when asked. */
struct run {
        resha_fn *fn;
        struct wanted wanted;
        struct test_child child;
};

static int child(void *arg)
{
        struct run *r = arg;
        resha_run_opts o = { .backend = test_backend(), .dump_signal = SIGUSR1 };
        pthread_t thread;

        stderr_to_a_file();
        if (pthread_create(&thread, NULL, asks, &r->wanted) != 0)
                return 98;
        return resha_run_loops(r->fn, NULL, (size_t)r->wanted.loops, 0, &o) < 0;
}

static const char *dump_of(struct run *r)
{
        test_child(child, r, &r->child);
        ASSERT_EQ(r->child.status, 0);
        return r->child.text;
}

static int sleeper(void *arg)
{
        (void)arg;
        int rc = resha_sleep(RESHA_S(1000));
        after_call++;
        return rc;
}

static int with(resha_fn *fn)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sleeper, NULL);
        int rc = resha_sleep(RESHA_MS(5));
        if (rc == 0 && fn)
                rc = fn(NULL);
        atomic_fetch_add(&stuck, 1);
        return resha_group_end(&g, rc);
}

static bool has_stacks(void)
{
        return !TEST_TSAN && !TEST_ASAN && TEST_VALGRIND == 0;
}

/* ---- where loops are ---- */

static int sleeps(void *arg)
{
        (void)arg;
        return with(NULL);
}

TEST(dump_signal_of_loops_that_sleep)
{
        struct run r = { .fn = sleeps, .wanted = { "    sleeper+", 1 } };
        const char *text = dump_of(&r);

        ASSERT_HAS(text, "resha: loop ");
        ASSERT_HAS(text, ", 2 tasks:\n\ntask 1 \"main\": waits for children");
        ASSERT_HAS(text, "task 2 \"sleeper\" from ");
        ASSERT_HAS(text, ": waits for sleep, over in ");
        if (!TEST_ASAN) /* clang puts the wait itself into it then, and what waits inside is not shown */
                ASSERT_HAS(text, "    resha_sleep+");
        ASSERT_HAS(text, "    sleeper+");
}

static int has_a_wild_name(void *arg)
{
        int rc = resha_task_set_name("\033[2J\nresha: all is well\177");

        return rc < 0 ? rc : sleeps(arg);
}

TEST(dump_signal_does_not_pass_on_what_controls_terminals)
{
        struct run r = { .fn = has_a_wild_name, .wanted = { "    sleeper+", 1 } };

        ASSERT_HAS(dump_of(&r), "task 1 \"?[2J?resha: all is well?\": waits for children");
}

static FRAME int computes(void *arg)
{
        (void)arg;
        atomic_fetch_add(&stuck, 1);
        for (;;)
                after_call++;
        return 0;
}

static int runs_computing(void *arg)
{
        (void)arg;
        return with(computes);
}

TEST(dump_signal_of_a_task_that_computes_for_ever)
{
        struct run r = { .fn = runs_computing, .wanted = { "    sleeper+", 1 } };
        const char *text = dump_of(&r);

        ASSERT_HAS(text, "task 1 \"main\": runs\n");
        if (has_stacks())
                ASSERT_HAS(text, "runs\n    computes+");
        ASSERT_HAS(text, "    sleeper+");
}

static FRAME int reads(void *arg)
{
        int fds[2];
        char c;

        (void)arg;
        if (pipe(fds) < 0)
                return -errno;
        atomic_fetch_add(&stuck, 1);
        ssize_t n = read(fds[0], &c, 1);
        after_call++;
        return (int)n;
}

static int runs_reading(void *arg)
{
        (void)arg;
        return with(reads);
}

TEST(dump_signal_of_a_task_that_is_stuck_in_a_call)
{
        struct run r = { .fn = runs_reading, .wanted = { "    sleeper+", 1 } };
        const char *text = dump_of(&r);

        ASSERT_HAS(text, "task 1 \"main\": runs\n");
        if (has_stacks())
                ASSERT_HAS(text, "    reads+");
}

TEST(dump_signal_of_all_loops_of_the_process)
{
        struct run r = { .fn = sleeps, .wanted = { "    sleeper+", 3 } };
        int loops = 0;

        for (const char *at = dump_of(&r); (at = strstr(at, "resha: loop ")); at++)
                loops++;
        ASSERT_EQ(loops, 3);
}

/* ---- without a file descriptor ---- */

static int leaks(void *arg)
{
        (void)arg;
        while (dup(STDERR_FILENO) >= 0)
                ;
        return errno == EMFILE ? 0 : -errno;
}

static int runs_leaking(void *arg)
{
        (void)arg;
        return with(leaks);
}

/* Names of its functions stand in the program's file. */
TEST(dump_signal_without_a_file_descriptor)
{
        struct run r = { .fn = runs_leaking, .wanted = { "    sleeper+", 1 } };
        struct rlimit before;

        if (TEST_VALGRIND)
                test_skip("the limit is Valgrind's own there, and of some calls only");
        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 128, before.rlim_max }), 0);
        ASSERT_HAS(dump_of(&r), "    sleeper+");
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- while everything moves ---- */

enum { DUMPS = 30 };

static int short_life(void *arg)
{
        char name[32];

        snprintf(name, sizeof name, "of its own %d", *(int *)arg);
        int rc = resha_task_set_name(name);
        for (int i = 0; i < 3 && rc == 0; i++)
                rc = resha_yield();
        return rc;
}

static atomic_int dumped;

static void *asks_often(void *arg)
{
        while (atomic_load(&stuck) < 2) /* until they have the signal */
                nap();
        for (int i = 0; i < DUMPS; i++) {
                kill(getpid(), SIGUSR1);
                for (int k = 0; k < 5; k++)
                        nap();
        }
        atomic_store(&dumped, 1);
        return arg;
}

static int comes_and_goes(void *arg)
{
        int n = 0;

        (void)arg;
        atomic_fetch_add(&stuck, 1);
        while (!atomic_load(&dumped)) {
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                for (int i = 0; i < 100; i++, n++)
                        (void)!resha_spawn_copy(&g, short_life, &n);
                int rc = resha_group_end(&g, 0);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

static int storm(void *arg)
{
        pthread_t thread;

        (void)arg;
        stderr_to_a_file();
        resha_run_opts o = { .backend = test_backend(), .dump_signal = SIGUSR1 };
        if (pthread_create(&thread, NULL, asks_often, NULL) != 0)
                return 98;
        int rc = resha_run_loops(comes_and_goes, NULL, 2, 0, &o);
        pthread_join(thread, NULL);
        return rc < 0 || lseek(STDERR_FILENO, 0, SEEK_END) < 2000; /* a dump of both has more */
}

TEST(dump_signal_while_tasks_come_and_go)
{
        struct test_child c;

        if (TEST_TSAN)
                test_skip("signals are kept back there");
        test_child(storm, NULL, &c);
        ASSERT_EQ(c.status, 0);
}

/* ---- nobody reads ---- */

static void stderr_to_a_full_pipe(void)
{
        static const char some[4096];
        int ends[2];

        if (pipe(ends) < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0)
                _exit(99);
        while (write(ends[1], some, sizeof some) > 0)
                ;
        if (fcntl(ends[1], F_SETFL, 0) < 0 || dup2(ends[1], STDERR_FILENO) < 0)
                _exit(99);
}

static int raises(void *arg)
{
        (void)arg;
        raise(SIGUSR1);
        return resha_sleep(RESHA_MS(50)); /* until the dump is under way */
}

static int unread(void *arg)
{
        (void)arg;
        stderr_to_a_full_pipe();
        alarm(PATIENCE_MS / 1000);
        return resha_run(raises, NULL, &(resha_run_opts){ .backend = test_backend(), .dump_signal = SIGUSR1 }) < 0;
}

TEST(dump_signal_where_nobody_reads_does_not_keep_the_run)
{
        struct test_child c;

        test_child(unread, NULL, &c);
        ASSERT_EQ(c.status, 0);
}

/* ---- somebody reads, but slowly ---- */

enum { MANY = 10000, PIECE = 4096 };

static atomic_int pieces;

static void *reads_slowly(void *arg)
{
        static char some[PIECE];

        for (; read(*(int *)arg, some, sizeof some) > 0; atomic_fetch_add(&pieces, 1))
                nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
        return NULL;
}

static int many(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < MANY; i++)
                (void)!resha_spawn(&g, sleeper, arg);
        atomic_fetch_add(&stuck, 1);
        return resha_group_end(&g, 0);
}

static int run_dumped(resha_fn *fn)
{
        return resha_run(fn, NULL, &(resha_run_opts){ .backend = test_backend(), .dump_signal = SIGUSR1 });
}

static void *runs_many(void *arg)
{
        (void)run_dumped(many);
        return arg;
}

static int ends_meanwhile(void *arg)
{
        int rc = 0;

        (void)arg;
        while (rc == 0 && !atomic_load(&stuck))
                rc = resha_sleep(RESHA_MS(10));
        raise(SIGUSR1);
        while (rc == 0 && atomic_load(&pieces) < 5) /* then the pipe is full */
                rc = resha_sleep(RESHA_MS(10));
        return rc;
}

/* A dump of the other loop takes half a minute. */
static int read_slowly(void *arg)
{
        static int ends[2];
        pthread_t thread;

        (void)arg;
        if (pipe(ends) < 0 || dup2(ends[1], STDERR_FILENO) < 0 ||
            pthread_create(&thread, NULL, reads_slowly, &ends[0]) != 0 ||
            pthread_create(&thread, NULL, runs_many, NULL) != 0)
                return 99;
        alarm(PATIENCE_MS / 1000);
        _exit(run_dumped(ends_meanwhile) < 0);
}

TEST(dump_signal_where_somebody_reads_slowly_does_not_keep_the_run)
{
        struct test_child c;

        test_child(read_slowly, NULL, &c);
        ASSERT_EQ(c.status, 0);
}

/* ---- the signal ---- */

static int reports;
static char report_text[256];

static void sink(const resha_report *r, void *arg)
{
        (void)arg;
        if (r->kind != RESHA_REPORT_INSPECT)
                return;
        reports++;
        snprintf(report_text, sizeof report_text, "%s", r->text);
}

static int runs_with(int sig)
{
        return test_run_opts(sleeper, NULL, &(resha_run_opts){ .dump_signal = sig, .report = sink });
}

static int nothing(void *arg)
{
        (void)arg;
        return 0;
}

static void own_handler(int sig)
{
        (void)sig;
}

static bool is_default(int sig)
{
        struct sigaction now;

        return sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

static int sees_that_it_is_taken(void *arg)
{
        (void)arg;
        ASSERT_FALSE(is_default(SIGUSR2));
        return 0;
}

TEST(dump_signal_is_given_back_when_the_run_ends)
{
        for (int i = 0; i < 3; i++) {
                ASSERT_OK(test_run_opts(sees_that_it_is_taken, NULL,
                                        &(resha_run_opts){ .dump_signal = SIGUSR2, .report = sink }));
                ASSERT_TRUE(is_default(SIGUSR2));
        }
        ASSERT_EQ(reports, 0);
}

TEST(dump_signal_that_the_program_handles_is_left_alone)
{
        struct sigaction before, now;

        ASSERT_EQ(sigaction(SIGUSR2, &(struct sigaction){ .sa_handler = own_handler }, &before), 0);
        ASSERT_OK(test_run_opts(nothing, NULL, &(resha_run_opts){ .dump_signal = SIGUSR2, .report = sink }));
        ASSERT_EQ(reports, 1);
        ASSERT_HAS(report_text, "no tasks are written on a signal: signal 12 is taken");
        ASSERT_EQ(sigaction(SIGUSR2, &before, &now), 0);
        ASSERT_TRUE(now.sa_handler == own_handler);
}

TEST(dump_signal_that_cannot_be_one)
{
        static const int bad[] = { SIGSEGV, SIGKILL, SIGCHLD, SIGINT, 64, 65, 1000 };

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                ASSERT_OK(test_run_opts(nothing, NULL, &(resha_run_opts){ .dump_signal = bad[i], .report = sink }));
                ASSERT_EQ(reports, (int)i + 1);
                ASSERT_HAS(report_text, "cannot be taken for that");
        }
        ASSERT_EQ(runs_with(-1), -EINVAL);
}

TEST(dump_signal_of_the_environment)
{
        static const char *const good[] = { "USR2", "SIGUSR2", "12" };
        static const char *const bad[] = { "USR3", "x", "12x", "9", "-1", "999" };

        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                setenv("RESHA_DUMP", good[i], 1);
                ASSERT_OK(test_run_opts(sees_that_it_is_taken, NULL, &(resha_run_opts){ .report = sink }));
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                setenv("RESHA_DUMP", bad[i], 1);
                ASSERT_EQ(runs_with(0), -EINVAL);
        }
        setenv("RESHA_DUMP", "0", 1);
        ASSERT_OK(test_run_opts(nothing, NULL, &(resha_run_opts){ .dump_signal = SIGUSR2, .report = sink }));
        ASSERT_EQ(reports, 0);
        unsetenv("RESHA_DUMP");
}
