/* SPDX-License-Identifier: MIT */
/* Loops that are blocked, in every way that comes to mind: the watchdog names the task and the line while it lasts, and
 * no call ends in another way for it. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/symbol.h"

enum { LIMIT_MS = 40, LOOKS_MAX = 20 /* half of those of a watchdog that stays awake */ };

/* ---- what is seen ---- */

static struct {
        pthread_mutex_t lock;
        pthread_cond_t came;
        unsigned blocked, over, others;
        char task[64], site[64], text[160], stack[4096];
        int go_on[2]; /* a byte is written there once a block was reported */
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER, .go_on = { -1, -1 } };

static void note_stack(const resha_report *r)
{
        char line[256];
        size_t have = 0;

        seen.stack[0] = '\0';
        for (size_t i = 0; i < r->depth; i++)
                if (rs_symbol_format(r->stack[i], line, sizeof line))
                        have += (size_t)snprintf(seen.stack + have,
                                                 have < sizeof seen.stack ? sizeof seen.stack - have : 0, "%s\n", line);
}

static void sink(const resha_report *r, void *arg)
{
        (void)arg;
        if (r->kind != RESHA_REPORT_BLOCKED) {
                seen.others += r->kind != RESHA_REPORT_FALLBACK;
                return;
        }
        pthread_mutex_lock(&seen.lock);
        bool over = strstr(r->text, "had blocked");
        if (!over && !seen.blocked) {
                snprintf(seen.task, sizeof seen.task, "%s", r->task ? r->task : "");
                snprintf(seen.site, sizeof seen.site, "%s", r->spawned_at ? r->spawned_at : "");
                snprintf(seen.text, sizeof seen.text, "%s", r->text);
                note_stack(r);
        }
        seen.blocked += !over;
        seen.over += over;
        pthread_cond_broadcast(&seen.came);
        pthread_mutex_unlock(&seen.lock);
        if (!over && seen.go_on[1] >= 0)
                ASSERT_EQ(write(seen.go_on[1], "x", 1), 1);
}

static bool was_seen(void)
{
        pthread_mutex_lock(&seen.lock);
        bool is = seen.blocked > 0;
        pthread_mutex_unlock(&seen.lock);
        return is;
}

static void wait_until_seen(void)
{
        pthread_mutex_lock(&seen.lock);
        while (!seen.blocked)
                pthread_cond_wait(&seen.came, &seen.lock);
        pthread_mutex_unlock(&seen.lock);
}

static int watched(resha_fn *fn, void *arg)
{
        return resha_run(fn, arg,
                         &(resha_run_opts){ .backend = test_backend(), .blocked = RESHA_MS(LIMIT_MS), .report = sink });
}

static const char *test_path(const char *name)
{
        static char path[64];
        snprintf(path, sizeof path, "/tmp/resha-watchdog-%d-%s", getpid(), name);
        return path;
}

/* ---- the blocks: each ends when it was reported; where that has no effect on it, it must not be cut short. Long
 * enough for a report unless the machine is busy: then it is done again, and the loop is blocked still ---- */

static void by_sleep(void)
{
        while (!was_seen())
                ASSERT_EQ(sleep(1), 0);
}

static int64_t now_ms(void)
{
        return rs_sys_now() / 1000000;
}

static void by_usleep(void)
{
        while (!was_seen())
                ASSERT_EQ(usleep(300000), 0);
}

static void by_nanosleep(void)
{
        while (!was_seen())
                ASSERT_EQ(nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL), 0);
}

static void by_poll(void)
{
        struct pollfd p = { .fd = seen.go_on[0], .events = POLLIN };

        ASSERT_EQ(poll(&p, 1, -1), 1);
}

static void by_poll_for_nothing(void)
{
        while (!was_seen()) {
                int64_t start = now_ms();
                ASSERT_EQ(poll(NULL, 0, 300), 0);
                ASSERT_TRUE(now_ms() - start >= 299);
        }
}

static void by_select(void)
{
        fd_set set;

        FD_ZERO(&set);
        FD_SET(seen.go_on[0], &set);
        ASSERT_EQ(select(seen.go_on[0] + 1, &set, NULL, NULL, NULL), 1);
}

static void by_read(void)
{
        char c;

        ASSERT_EQ(read(seen.go_on[0], &c, 1), 1);
}

static void by_getline(void)
{
        char line[8];
        FILE *f = fdopen(dup(seen.go_on[0]), "r");

        ASSERT_TRUE(f != NULL);
        setvbuf(f, NULL, _IONBF, 0);
        ASSERT_TRUE(fgets(line, 2, f) != NULL);
        fclose(f);
}

static void *opens_for_writing(void *path)
{
        wait_until_seen();
        ASSERT_EQ(close(open(path, O_WRONLY)), 0);
        return NULL;
}

static void by_fifo(void)
{
        const char *path = test_path("fifo");
        pthread_t t;

        ASSERT_EQ(mkfifo(path, 0600), 0);
        ASSERT_EQ(pthread_create(&t, NULL, opens_for_writing, (char *)(uintptr_t)path), 0);
        ASSERT_EQ(close(open(path, O_RDONLY)), 0);
        ASSERT_EQ(pthread_join(t, NULL), 0);
        unlink(path);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool holds;

static void *holds_mutex(void *arg)
{
        pthread_mutex_lock(&mutex);
        atomic_store(&holds, true);
        wait_until_seen();
        pthread_mutex_unlock(&mutex);
        return arg;
}

static void by_mutex(void)
{
        pthread_t t;

        atomic_store(&holds, false);
        ASSERT_EQ(pthread_create(&t, NULL, holds_mutex, NULL), 0);
        while (!atomic_load(&holds))
                sched_yield();
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        ASSERT_EQ(pthread_join(t, NULL), 0);
}

static void by_condition(void)
{
        wait_until_seen();
}

static void *ends_when_seen(void *arg)
{
        by_condition();
        return arg;
}

static void by_join(void)
{
        pthread_t t;

        ASSERT_EQ(pthread_create(&t, NULL, ends_when_seen, NULL), 0);
        ASSERT_EQ(pthread_join(t, NULL), 0);
}

static void by_flock(void)
{
        const char *path = test_path("lock");
        int held = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), wanted = open(path, O_RDWR | O_CLOEXEC);

        ASSERT_TRUE(held >= 0 && wanted >= 0);
        ASSERT_EQ(flock(held, LOCK_EX), 0);
        pid_t pid = fork();
        if (pid == 0) { /* has the lock, too, until the byte comes */
                char c;
                close(seen.go_on[1]);
                _exit(read(seen.go_on[0], &c, 1) == 1 ? 0 : 1);
        }
        close(held);
        ASSERT_EQ(flock(wanted, LOCK_EX), 0);
        close(wanted);
        ASSERT_EQ(waitpid(pid, NULL, 0), pid);
        unlink(path);
}

static void by_waitpid(void)
{
        pid_t pid = fork();
        char c;

        if (pid == 0)
                _exit(read(seen.go_on[0], &c, 1) == 1 ? 0 : 1);
        ASSERT_EQ(waitpid(pid, NULL, 0), pid);
}

static void by_recv(void)
{
        int pair[2];
        char c;

        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        ASSERT_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_usec = 300000 },
                             sizeof(struct timeval)),
                  0);
        do {
                ASSERT_EQ(recv(pair[0], &c, 1, 0), -1);
                if (strcmp(resha_backend(), "epoll") == 0) /* io_uring may end it early by what it completes */
                        ASSERT_EQ(errno, EAGAIN);
        } while (!was_seen());
        close(pair[0]);
        close(pair[1]);
}

static volatile unsigned long sum;

static void by_computing(void)
{
        while (!was_seen())
                for (unsigned long i = 0; i < 100000; i++)
                        sum = sum + i * i;
}

static int compare(const void *a, const void *b)
{
        const int *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static void by_sorting(void)
{
        enum { N = 20000 };
        static int numbers[N];

        while (!was_seen()) {
                for (int i = 0; i < N; i++)
                        numbers[i] = (int)((unsigned)i * 2654435761u % 1000003);
                qsort(numbers, N, sizeof numbers[0], compare);
        }
}

static int deep(void *arg)
{
        by_computing();
        return arg != NULL;
}

static void by_deep_call(void)
{
        ASSERT_EQ(resha_deep_call(deep, NULL), 0);
}

static void by_nosuspend(void)
{
        RESHA_SCOPE(s);

        resha_nosuspend_begin(&s, "a foreign library");
        by_computing();
        ASSERT_OK(resha_scope_end(&s, 0));
}

static void by_try_calls(void) /* what never waits does not go on, either */
{
        resha_mutex m = { { 0 } };

        while (!was_seen()) {
                ASSERT_OK(resha_mutex_try_lock(&m));
                ASSERT_OK(resha_mutex_unlock(&m));
        }
}

/* ---- each, in a task of a group and in the main task ---- */

struct block {
        const char *name; /* of the function that must be in the stack */
        void (*fn)(void);
};

#define BLOCK(fn) \
        { \
#fn, fn \
        }
static const struct block blocks[] = {
        BLOCK(by_sleep),     BLOCK(by_usleep),  BLOCK(by_nanosleep), BLOCK(by_poll),      BLOCK(by_poll_for_nothing),
        BLOCK(by_select),    BLOCK(by_read),    BLOCK(by_getline),   BLOCK(by_fifo),      BLOCK(by_mutex),
        BLOCK(by_condition), BLOCK(by_join),    BLOCK(by_flock),     BLOCK(by_waitpid),   BLOCK(by_recv),
        BLOCK(by_computing), BLOCK(by_sorting), BLOCK(by_deep_call), BLOCK(by_nosuspend), BLOCK(by_try_calls),
};

static __attribute__((noinline)) int run_block(const struct block *b)
{
        b->fn();
        return resha_sleep(RESHA_MS(1));
}

static int guilty(void *arg)
{
        return run_block(arg);
}

static int idle(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_MS(1));
}

static int named(void *arg)
{
        ASSERT_OK(resha_task_set_name("order 17"));
        return run_block(arg);
}

static int among_others(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 20; i++)
                resha_spawn(&g, idle, NULL);
        resha_spawn(&g, guilty, arg);
        for (int i = 0; i < 20; i++)
                resha_spawn(&g, idle, NULL);
        return resha_group_end(&g, 0);
}

/* What io_uring completes meanwhile ends a recv() that has a time of its own, watched or not. */
static bool can_block(const struct block *b)
{
        return b->fn != by_recv || strcmp(test_backend(), "epoll") == 0;
}

static void try_block(const struct block *b, resha_fn *fn, const char *task)
{
        seen.blocked = seen.over = seen.others = 0;
        ASSERT_EQ(pipe2(seen.go_on, O_CLOEXEC), 0);
        ASSERT_OK(watched(fn, (void *)(uintptr_t)b));
        close(seen.go_on[0]);
        close(seen.go_on[1]);
        seen.go_on[0] = seen.go_on[1] = -1;
        if (!seen.blocked)
                FAIL("%s: no report", b->name);
        ASSERT_STR(seen.task, task);
        ASSERT_HAS(seen.text, "blocks the loop, for ");
        ASSERT_EQ(seen.over, 1);
        ASSERT_EQ(seen.others, 0);
        if (fn == among_others)
                ASSERT_HAS(seen.site, "tests/real/watchdog.c:");
#if defined(__x86_64__) && !defined(RS_TEST_EMULATED)
        if (TEST_ASAN && !strstr(seen.stack, b->name))
                return; /* its interceptors stand between */
        if (!strstr(seen.stack, b->name) || !strstr(seen.stack, "(watchdog.c:"))
                FAIL("%s: not in the stack:\n%s", b->name, seen.stack);
        ASSERT_HAS(seen.stack, "run_block");
#endif
}

static void skip_where_there_is_none(void)
{
        if (test_is_sim() || TEST_TSAN || TEST_VALGRIND)
                test_skip("there is no watchdog");
}

TEST(each_block_is_reported_while_it_lasts)
{
        skip_where_there_is_none();
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
                if (can_block(&blocks[i]))
                        try_block(&blocks[i], among_others, "guilty");
}

TEST(the_main_task_too)
{
        skip_where_there_is_none();
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i += 5)
                try_block(&blocks[i], i ? guilty : named, i ? "main" : "order 17");
}

/* ---- what is no block ---- */

static int busy_but_fair(void *arg)
{
        int64_t end = now_ms() + 3 * LIMIT_MS;

        (void)arg;
        while (now_ms() < end) {
                for (unsigned long i = 0; i < 1000; i++)
                        sum = sum + i * i;
                ASSERT_OK(resha_yield());
        }
        return resha_sleep(RESHA_MS(3 * LIMIT_MS));
}

TEST(a_loop_that_goes_on_is_not_reported)
{
        skip_where_there_is_none();
        seen.blocked = seen.over = 0;
        ASSERT_OK(watched(busy_but_fair, NULL));
        ASSERT_EQ(seen.blocked, 0);
}

/* The whole process stands still for a while: nobody is blocked by that. */
static int computes_a_little(void *arg)
{
        (void)arg;
        for (int i = 0; i < 40; i++) {
                int64_t end = now_ms() + 5;
                while (now_ms() < end)
                        sum = sum + 1;
                int rc = resha_yield();
                if (rc < 0)
                        return rc;
        }
        return seen.blocked > 0;
}

TEST(a_process_that_was_stopped_is_not_reported)
{
        int status;

        skip_where_there_is_none();
        seen.blocked = 0;
        pid_t pid = fork();
        if (pid == 0)
                _exit(watched(computes_a_little, NULL));
        for (int i = 0; i < 3; i++) {
                usleep(20000);
                kill(pid, SIGSTOP);
                usleep(4 * LIMIT_MS * 1000);
                kill(pid, SIGCONT);
        }
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
}

/* What the program does with the signal by which its stack would be looked at is its own affair. */
static int blocks_all_signals(void *arg)
{
        struct timespec none = { 0 };
        sigset_t all, before;

        (void)arg;
        sigfillset(&all);
        ASSERT_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
        by_computing();
        ASSERT_EQ(sigtimedwait(&all, NULL, &none), -1);
        return pthread_sigmask(SIG_SETMASK, &before, NULL);
}

TEST(no_signal_is_left_behind)
{
        skip_where_there_is_none();
        seen.blocked = 0;
        ASSERT_OK(watched(blocks_all_signals, NULL)); /* which ends once it is seen */
}

/* ---- threads come and go ---- */

static int short_run(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_US(100));
}

static void *many_runs(void *arg)
{
        for (int i = 0; i < 50; i++)
                ASSERT_OK(watched(short_run, NULL));
        return arg;
}

TEST(runs_come_and_go)
{
        pthread_t t[4];
        unsigned before = real_threads();

        skip_where_there_is_none();
        for (int i = 0; i < 4; i++)
                ASSERT_EQ(pthread_create(&t[i], NULL, many_runs, NULL), 0);
        for (int i = 0; i < 4; i++)
                ASSERT_EQ(pthread_join(t[i], NULL), 0);
        real_threads_left(before);
}

static int forks(void *arg)
{
        int status;
        /* The watchdog has begun then: a sanitizer allocates for a new thread, and a child would inherit its lock. */
        int rc = resha_sleep(RESHA_MS(LIMIT_MS));
        pid_t pid = fork();

        (void)arg;
        if (pid == 0)
                _exit(watched(short_run, NULL) == 0 ? 0 : 1);
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
        return rc;
}

TEST(a_forked_child_has_its_own)
{
        skip_where_there_is_none();
        ASSERT_OK(watched(forks, NULL));
}

struct naps {
        int n, us;
        long wakes;
};

static int naps(void *arg)
{
        struct naps *s = arg;
        int rc = 0;
        for (int i = 0; i < s->n && rc == 0; i++)
                rc = resha_sleep(RESHA_US(s->us));
        s->wakes = real_sleeps_of("resha-watchdog");
        return rc;
}

/* A loop that wakes often wakes it once a period: to see that, and for the next look. */
TEST(an_idle_program_is_woken_by_nobody)
{
        struct naps one = { 1, 10000 * LIMIT_MS, -1 }, many = { 400, 200, -1 };

        skip_where_there_is_none();
        ASSERT_OK(watched(naps, &one));
        ASSERT_TRUE(one.wakes >= 0 && one.wakes <= LOOKS_MAX);
        int64_t began = now_ms();
        ASSERT_OK(watched(naps, &many));
        ASSERT_TRUE(many.wakes >= 0 && many.wakes <= 2 * (now_ms() - began) / (LIMIT_MS / 4) + LOOKS_MAX);
}
