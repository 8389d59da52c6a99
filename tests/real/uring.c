/* SPDX-License-Identifier: MIT */
/* The io_uring backend where it hurts: each step of its set-up refused, queues that are far too small, a kernel that
 * takes nothing for a while, cancels that race with what they cancel, and wake-ups in storms. */

#include "common.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/backend.h"

/* As in io/uring.h, which needs liburing. */
extern struct rs_uring_sizes {
        unsigned entries, completions;
} rs_uring_sizes __attribute__((weak));

static void only_on_uring(void)
{
        if (strcmp(test_backend(), "uring") != 0 || !&rs_uring_sizes)
                test_skip("about io_uring");
}

/* ---- set-up ---- */

static enum rs_syscall refused;
static int code;
static unsigned asked, from, to; /* the calls of its kind that fail, from 1 */

static int refuse(enum rs_syscall call)
{
        if (call != refused)
                return 0;
        asked++;
        return asked >= from && asked <= to ? code : 0;
}

static void refuse_calls(enum rs_syscall call, int rc, unsigned first, unsigned last)
{
        refused = call;
        code = rc;
        asked = 0;
        from = first;
        to = last;
        rs_fault_hook = refuse;
}

static char told[512];

static void on_report(const resha_report *r, __attribute__((unused)) void *arg)
{
        ASSERT_EQ(r->kind, RESHA_REPORT_FALLBACK);
        ASSERT_EQ(r->code, code);
        snprintf(told, sizeof told, "%s", r->text);
}

static int talks(void *arg);

static int backend_is(void *arg)
{
        ASSERT_STR(resha_backend(), arg);
        return talks(NULL);
}

/* By default epoll is taken and the reason told; by name there is no run, for that reason. */
static void falls_back(enum rs_syscall call, int rc, const char *why)
{
        resha_error e;

        refuse_calls(call, rc, 1, UINT32_MAX);
        told[0] = '\0';
        ASSERT_OK(resha_run(backend_is, (char *)"epoll", &(resha_run_opts){ .report = on_report }));
        ASSERT_HAS(told, why);
        ASSERT_HAS(told, "epoll in place of io_uring");
        ASSERT_EQ(resha_run(backend_is, NULL, &(resha_run_opts){ .backend = "uring", .ret_error = &e }), rc);
        ASSERT_HAS(e.text, why);
        rs_fault_hook = NULL;
}

TEST(uring_that_is_refused_is_told_with_its_reason)
{
        only_on_uring();
        unsetenv("RESHA_BACKEND");
        falls_back(RS_SYS_URING_SETUP, -EPERM, "io_uring_setup: Operation not permitted (seccomp or kernel.io_uring");
        falls_back(RS_SYS_URING_SETUP, -ENOSYS, "io_uring_setup: Function not implemented (no io_uring in this kernel");
        falls_back(RS_SYS_URING_SETUP, -EINVAL, "io_uring_setup: Invalid argument");
        falls_back(RS_SYS_URING_SETUP, -ENOMEM, "io_uring_setup: Cannot allocate memory (ulimit -l?)");
        falls_back(RS_SYS_URING_REGISTER, -EACCES, "io_uring_register: Permission denied");
        falls_back(RS_SYS_URING_ENTER, -EPERM, "io_uring_enter: Operation not permitted");
        ASSERT_OK(resha_run(backend_is, (char *)"uring", NULL));
}

/* ---- what runs on rings of all kinds ---- */

enum { PAIRS = 40, ROUNDS = 20 };

static int echoes(void *arg)
{
        char c;
        ssize_t n;

        while ((n = resha_read(arg, &c, 1)) == 1) {
                int rc = resha_write_all(arg, &c, 1, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int asks(void *arg)
{
        for (int i = 0; i < ROUNDS; i++) {
                char c = (char)i;
                int rc = resha_write_all(arg, &c, 1, NULL);
                if (rc < 0)
                        return rc;
                ASSERT_EQ(resha_read(arg, &c, 1), 1);
                ASSERT_EQ(c, i);
        }
        return resha_stream_shutdown(arg);
}

static int talks(__attribute__((unused)) void *arg)
{
        resha_stream *pairs[PAIRS][2];
        RESHA_GROUP(g);

        for (int i = 0; i < PAIRS; i++)
                ASSERT_OK(resha_stream_pair(pairs[i]));
        resha_group_begin(&g, NULL);
        for (int i = 0; i < PAIRS; i++) {
                resha_spawn(&g, echoes, pairs[i][0]);
                resha_spawn(&g, asks, pairs[i][1]);
        }
        int rc = resha_group_end(&g, 0);
        for (int i = 0; i < PAIRS; i++) {
                resha_stream_close(pairs[i][0]);
                resha_stream_close(pairs[i][1]);
        }
        return rc;
}

static int waits_for_ever(void *arg)
{
        char c;

        return (int)resha_read(arg, &c, 1);
}

/* More operations in flight than the queues have places, all cancelled at once. */
static int cancels_all(__attribute__((unused)) void *arg)
{
        resha_stream *pairs[PAIRS][2];
        RESHA_GROUP(g);

        for (int i = 0; i < PAIRS; i++)
                ASSERT_OK(resha_stream_pair(pairs[i]));
        resha_group_begin(&g, NULL);
        for (int i = 0; i < PAIRS; i++) {
                resha_spawn(&g, waits_for_ever, pairs[i][0]);
                resha_spawn(&g, waits_for_ever, pairs[i][1]);
        }
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        resha_group_cancel(&g);
        ASSERT_OK(resha_group_end(&g, 0));
        for (int i = 0; i < PAIRS; i++) {
                resha_stream_close(pairs[i][0]);
                resha_stream_close(pairs[i][1]);
        }
        return 0;
}

static int both(void *arg)
{
        int rc = talks(arg);

        return rc < 0 ? rc : cancels_all(arg);
}

static int runs_on_uring(void *arg)
{
        ASSERT_STR(resha_backend(), "uring");
        return both(arg);
}

/* Kernels of before 6.1 and 5.19: the flags of the first rungs are refused. */
TEST(uring_works_on_every_rung_of_its_ladder)
{
        only_on_uring();
        for (unsigned rungs = 0; rungs <= 2; rungs++) {
                refuse_calls(RS_SYS_URING_SETUP, -EINVAL, 1, rungs);
                ASSERT_OK(resha_run(runs_on_uring, NULL, &(resha_run_opts){ .backend = "uring" }));
                ASSERT_EQ(asked, rungs + 1);
                rs_fault_hook = NULL;
        }
}

TEST(uring_is_made_smaller_where_there_is_no_memory_for_it)
{
        only_on_uring();
        refuse_calls(RS_SYS_URING_SETUP, -ENOMEM, 1, 3);
        ASSERT_OK(resha_run(runs_on_uring, NULL, &(resha_run_opts){ .backend = "uring" }));
        ASSERT_EQ(asked, 4);
        rs_fault_hook = NULL;
}

TEST(uring_with_queues_that_are_too_small_loses_nothing)
{
        static const unsigned sizes[][2] = { { 1, 2 }, { 2, 2 }, { 4, 8 }, { 64, 64 } };

        only_on_uring();
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
                for (unsigned rungs = 0; rungs <= 2; rungs++) {
                        rs_uring_sizes = (struct rs_uring_sizes){ sizes[i][0], sizes[i][1] };
                        refuse_calls(RS_SYS_URING_SETUP, -EINVAL, 1, rungs);
                        ASSERT_OK(resha_run(runs_on_uring, NULL, &(resha_run_opts){ .backend = "uring" }));
                        rs_fault_hook = NULL;
                }
        rs_uring_sizes = (struct rs_uring_sizes){ 0 };
}

/* ---- a kernel that takes nothing ---- */

static unsigned enters;
static int64_t took_ms;

static int every_third_enter(enum rs_syscall call)
{
        if (call != RS_SYS_URING_ENTER)
                return 0;
        enters++;
        return enters % 3 == 0 ? code : 0;
}

static int busy_for_a_while(enum rs_syscall call)
{
        if (call != RS_SYS_URING_ENTER)
                return 0;
        enters++;
        return enters <= 40 ? -EAGAIN : 0;
}

static int both_under_trouble(void *arg)
{
        rs_fault_hook = every_third_enter;
        int rc = both(arg);
        rs_fault_hook = NULL;
        return rc;
}

TEST(uring_that_takes_nothing_at_times_loses_nothing)
{
        static const int codes[] = { -EAGAIN, -EBUSY, -EINTR };

        only_on_uring();
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
                code = codes[i];
                ASSERT_OK(resha_run(both_under_trouble, NULL, &(resha_run_opts){ .backend = "uring" }));
                rs_uring_sizes = (struct rs_uring_sizes){ 2, 4 };
                ASSERT_OK(resha_run(both_under_trouble, NULL, &(resha_run_opts){ .backend = "uring" }));
                rs_uring_sizes = (struct rs_uring_sizes){ 0 };
        }
}

/* Nothing is taken and nothing comes back: pauses, not a spin. */
static int one_under_trouble(__attribute__((unused)) void *arg)
{
        resha_stream *pair[2];
        char c = 'x';

        ASSERT_OK(resha_stream_pair(pair));
        enters = 0;
        rs_fault_hook = busy_for_a_while;
        resha_instant start = resha_now();
        ASSERT_OK(resha_write_all(pair[0], &c, 1, NULL));
        ASSERT_EQ(resha_read(pair[1], &c, 1), 1);
        took_ms = test_ms_since(start);
        printf("%u calls of io_uring_enter, 40 of them refused, in %lld ms\n", enters, (long long)took_ms);
        rs_fault_hook = NULL;
        resha_stream_close(pair[0]);
        resha_stream_close(pair[1]);
        return 0;
}

TEST(uring_that_is_out_of_memory_is_given_time)
{
        only_on_uring();
        ASSERT_OK(resha_run(one_under_trouble, NULL, &(resha_run_opts){ .backend = "uring" }));
        ASSERT_TRUE(enters < 60);
        ASSERT_TRUE(took_ms >= 20);
}

/* ---- cancels ---- */

struct race {
        resha_stream *stream;
        unsigned got, cancelled;
};

static int reads_one(void *arg)
{
        struct race *r = arg;
        char c;
        ssize_t n = resha_read(r->stream, &c, 1);

        if (n == 1)
                r->got++;
        r->cancelled += n == -ECANCELED;
        return n == 1 ? 0 : (int)n;
}

static int sends_at_times(void *arg)
{
        for (int i = 0; i < 500; i++) {
                int rc = resha_write_all(arg, "x", 1, NULL);
                if (rc == 0)
                        rc = resha_sleep(RESHA_US(i % 7 * 10));
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* Each byte is read once, whether the cancel came before, with or after it. */
TASK(uring_cancels_race_with_bytes_and_none_is_lost)
{
        resha_stream *pair[2];
        struct race r = { 0 };
        RESHA_GROUP(g);

        ASSERT_OK(resha_stream_pair(pair));
        r.stream = pair[0];
        resha_group_begin(&g, NULL);
        resha_spawn(&g, sends_at_times, pair[1]);
        for (unsigned tries = 0; r.got < 500; tries++) {
                int rc = resha_timeout(RESHA_US(tries % 60), reads_one, &r);
                ASSERT_TRUE(rc == 0 || rc == -ETIME);
        }
        ASSERT_OK(resha_group_end(&g, 0));
        printf("%u reads, %u cancelled\n", r.got, r.cancelled);
        ASSERT_TRUE(r.cancelled > 0);
        resha_stream_close(pair[0]);
        resha_stream_close(pair[1]);
        return 0;
}

/* ---- wake-ups ---- */

enum { JOBS = 2000 };

static int hops(void *arg)
{
        atomic_fetch_add((atomic_uint *)arg, 1);
        return 0;
}

static int sends_jobs(void *arg)
{
        for (int i = 0; i < JOBS / 8; i++) {
                int rc = resha_pool_run(NULL, hops, arg, NULL);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

TASK(uring_wake_ups_in_storms_are_never_lost)
{
        atomic_uint done = 0;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 8; i++)
                resha_spawn(&g, sends_jobs, &done);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(atomic_load(&done), JOBS);
        return 0;
}

/* ---- at the seam ---- */

enum { FOREIGN = 8 };

static struct rs_backend *backend(void)
{
        struct rs_backend *b = NULL;
        char why[RS_WHY];

        ASSERT_OK(rs_uring_new(&b, why));
        return b;
}

struct polls {
        int fds[FOREIGN][2];
        struct rs_op ops[FOREIGN];
};

/* More than the queue to the kernel has places for. */
static void submit_polls(struct rs_backend *b, struct polls *p)
{
        for (int i = 0; i < FOREIGN; i++) {
                ASSERT_OK(pipe(p->fds[i]));
                p->ops[i] = (struct rs_op){ .kind = RS_OP_POLL, .fd = p->fds[i][0], .events = POLLIN };
                ASSERT_FALSE(b->ops->submit(b, &p->ops[i]));
        }
}

static void cancel_polls(struct rs_backend *b, struct polls *p)
{
        for (int i = 0; i < FOREIGN; i++) {
                struct rs_op *op = &p->ops[i];
                if (!b->ops->cancel(b, op)) {
                        while (op->state == RS_OP_PENDING)
                                ASSERT_OK(b->ops->wait(b, INT64_MAX));
                        rs_list_pop(&b->done);
                }
                ASSERT_EQ(op->result, -ECANCELED);
                close(p->fds[i][0]);
                close(p->fds[i][1]);
        }
}

static bool is_readable(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, 0) == 1;
}

/* The wake-up comes back while what is queued is given to the kernel, which has to be entered for want of places. */
TEST(uring_that_is_woken_while_it_gives_does_not_sleep)
{
        struct polls p;

        only_on_uring();
        rs_uring_sizes = (struct rs_uring_sizes){ 4, 64 };
        struct rs_backend *b = backend();
        ASSERT_OK(b->ops->wait(b, 0)); /* wakefd is polled now */
        submit_polls(b, &p);
        for (int i = 0; i < 2; i++) {
                int64_t start = b->ops->now(b);
                b->ops->wake(b);
                ASSERT_OK(b->ops->wait(b, start + 2000000000));
                ASSERT_TRUE(b->ops->now(b) - start < 1000000000);
        }
        cancel_polls(b, &p);
        b->ops->destroy(b);
        rs_uring_sizes = (struct rs_uring_sizes){ 0 };
}

/* The same inside of another loop: either it is told at once, or by the descriptor. */
TEST(uring_that_is_woken_while_it_gives_tells_its_host)
{
        struct polls p;

        only_on_uring();
        rs_uring_sizes = (struct rs_uring_sizes){ 4, 64 };
        struct rs_backend *b = backend();
        int fd = b->ops->descriptor(b);
        ASSERT_TRUE(fd >= 0 && !is_readable(fd));
        submit_polls(b, &p);
        b->ops->wake(b);
        ASSERT_TRUE(b->ops->descriptor(b) < 0 || is_readable(fd));
        ASSERT_OK(b->ops->wait(b, 0));
        ASSERT_EQ(b->ops->descriptor(b), fd);
        ASSERT_FALSE(is_readable(fd));
        cancel_polls(b, &p);
        b->ops->destroy(b);
        rs_uring_sizes = (struct rs_uring_sizes){ 0 };
}

static int never_enters(enum rs_syscall call)
{
        return call == RS_SYS_URING_ENTER ? -EAGAIN : 0;
}

/* A cancel that the kernel has not taken yet, when its operation is done and another one lies in its place. */
TEST(uring_cancels_nothing_that_comes_later_at_the_same_address)
{
        int fds[2];
        struct rs_op op;
        char c;

        only_on_uring();
        ASSERT_OK(pipe(fds));
        struct rs_backend *b = backend();
        ASSERT_TRUE(b->ops->descriptor(b) >= 0); /* what is done is told at any entry of the kernel from now on */
        op = (struct rs_op){ .kind = RS_OP_POLL, .fd = fds[0], .events = POLLIN };
        ASSERT_FALSE(b->ops->submit(b, &op));
        ASSERT_OK(b->ops->wait(b, 0));
        ASSERT_FALSE(b->ops->cancel(b, &op));
        rs_fault_hook = never_enters;
        ASSERT_OK(b->ops->wait(b, 0));
        ASSERT_EQ(op.state, RS_OP_PENDING);
        ASSERT_EQ(write(fds[1], "x", 1), 1);
        ASSERT_OK(b->ops->wait(b, 0));
        ASSERT_EQ(op.state, RS_OP_DONE);
        ASSERT_EQ(op.result, POLLIN);
        rs_list_pop(&b->done);
        ASSERT_EQ(read(fds[0], &c, 1), 1);
        op = (struct rs_op){ .kind = RS_OP_POLL, .fd = fds[0], .events = POLLIN };
        ASSERT_FALSE(b->ops->submit(b, &op));
        rs_fault_hook = NULL;
        ASSERT_OK(b->ops->wait(b, b->ops->now(b) + 20000000));
        ASSERT_EQ(op.state, RS_OP_PENDING);
        ASSERT_EQ(write(fds[1], "x", 1), 1);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_EQ(op.state, RS_OP_DONE);
        ASSERT_EQ(op.result, POLLIN);
        rs_list_pop(&b->done);
        b->ops->destroy(b);
        close(fds[0]);
        close(fds[1]);
}
