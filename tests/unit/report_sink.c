/* SPDX-License-Identifier: MIT */
/* What the report sink may do and sees, and the reports of a run's end and of slow steps. Circles, deadlocks:
 * report.c. */

#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "job.h"
#include "sys/sys.h"

static struct {
        char text[4096];
        size_t n, depth;
        unsigned reports;
} told;

static void sink(const resha_report *r, __attribute__((unused)) void *arg)
{
        told.n += (size_t)snprintf(told.text + told.n, sizeof told.text - told.n, "%s: %s\n", r->task ? r->task : "-",
                                   r->text);
        told.depth = r->depth;
        told.reports++;
}

static int run(resha_fn *fn, void *arg)
{
        return test_run_opts(fn, arg, &(resha_run_opts){ .report = sink });
}

/* ---- what it may do ---- */

static int fails(__attribute__((unused)) void *arg)
{
        return resha_fail(-EIO, "no disk");
}

/* A block left with success although a child failed: a lost error. */
static int loses(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, fails, arg);
        return resha_yield();
}

static int loses_two(void *arg)
{
        int rc = loses(arg);

        errno = EDOM;
        ASSERT_STR(resha_error_of(-ENOENT)->text, "No such file or directory");
        return rc < 0 ? rc : loses(arg);
}

static void sink_that_fails(const resha_report *r, void *arg)
{
        resha_mutex m = { { 0 } };
        resha_event e = { { 0 } };

        ASSERT_EQ(resha_sleep(RESHA_S(1)), -EPERM);
        ASSERT_EQ(resha_yield(), -EPERM);
        ASSERT_EQ(resha_mutex_lock(&m), -EPERM);
        ASSERT_EQ(resha_event_wait(&e), -EPERM);
        ASSERT_EQ(resha_gather(fails, arg, 1, 1, NULL), -EPERM);
        ASSERT_EQ(resha_run(fails, NULL, NULL), -EBUSY);
        ASSERT_EQ(resha_fail(-ENOENT, "of the sink"), -ENOENT);
        ASSERT_FALSE(resha_in_task());
        errno = ERANGE;
        ASSERT_OK(resha_report_tasks()); /* reports while it reports: counted only */
        sink(r, NULL);
}

/* semantics 19 same
 * asyncio: an exception handler that raises is itself reported, and the loop goes on.
 * resha: the report sink cannot raise: what it calls that would wait gives -EPERM, its failures are nobody's, what it
 * would cause to be reported is counted only, and the run goes on. */
TEST(semantics_19_a_sink_that_fails_or_waits_does_no_harm)
{
        char items[1];

        ASSERT_OK(test_run_opts(loses_two, items, &(resha_run_opts){ .report = sink_that_fails }));
        ASSERT_EQ(told.reports, 2);
}

RESHA_LOCAL(request, int, 0);

static int loses_request(void *arg)
{
        ASSERT_OK(resha_local_set(&request, arg));
        return loses(NULL);
}

static int requests(__attribute__((unused)) void *arg)
{
        int ids[] = { 7, 8, 9 };

        return resha_gather(loses_request, ids, 3, sizeof ids[0], &(resha_gather_opts){ .limit = 1 });
}

static void sink_of_locals(__attribute__((unused)) const resha_report *r, __attribute__((unused)) void *arg)
{
        note("%d", *(const int *)resha_local_get(&request));
        ASSERT_EQ(resha_local_set(&request, &(int){ 1 }), -EPERM);
}

/* semantics 20 same
 * asyncio: the exception handler runs in the context of the task that it is called for.
 * resha: resha_local_get() in the report sink gives the task-locals of the task of the report. */
TEST(semantics_20_the_sink_sees_the_locals_of_the_task)
{
        ASSERT_OK(test_run_opts(requests, NULL, &(resha_run_opts){ .report = sink_of_locals }));
        ASSERT_STR(notes(), "7 8 9");
}

static int waits_with_local(void *arg)
{
        resha_event e = { { 0 } };

        ASSERT_OK(resha_local_set(&request, arg));
        return resha_event_wait(&e);
}

TEST(sink_sees_the_locals_of_tasks_that_wait)
{
        ASSERT_EQ(test_run_opts(waits_with_local, &(int){ 5 }, &(resha_run_opts){ .report = sink_of_locals }),
                  -EDEADLK);
        ASSERT_STR(notes(), "5");
}

/* ---- the end of a run ---- */

static int deaf(void *arg)
{
        resha_event e = { { 0 } };
        int rc;

        do {
                RESHA_SCOPE(s);
                resha_shield_begin(&s, RESHA_FOREVER);
                rc = resha_event_wait(&e);
                rc = resha_scope_end(&s, rc);
                note("%s", (const char *)arg);
        } while (rc < 0);
        return rc;
}

static int never_ends(__attribute__((unused)) void *arg)
{
        static char name[] = "a";

        return resha_gather(deaf, name, 1, sizeof name, NULL);
}

static int run_never_ends(__attribute__((unused)) void *arg)
{
        int rc = test_run_opts(never_ends, NULL, &(resha_run_opts){ .report = sink, .grace = RESHA_MS(5) });

        printf("%d depth %zu\n%s", rc == -EDEADLK, told.depth, told.text);
        fflush(stdout);
        return 0;
}

TEST(stuck_tasks_are_told_with_their_stacks)
{
        struct test_child c;

        test_child(run_never_ends, NULL, &c);
        ASSERT_HAS(c.text, "main: nothing can wake it: waits for the end of task \"deaf\" (1 of 1, ");
        ASSERT_HAS(c.text, "deaf: nothing can wake it: waits for event\n");
        ASSERT_HAS(c.text, "main: has not ended within the grace: waits for the end of task \"deaf\" (1 of 1, ");
        ASSERT_HAS(c.text, "deaf: has not ended within the grace: waits for event; its memory is leaked\n");
        ASSERT_FALSE(strstr(c.text, "depth 0"));
}

static void nothing(__attribute__((unused)) struct rs_post *p)
{
        note("ran");
}

static void lost(__attribute__((unused)) struct rs_post *p)
{
        note("lost");
}

static struct rs_post posts[3];
static struct rs_inbox *inbox;

/* Posts, and ends before the loop can look at its inbox. */
static int posts_at_the_end(__attribute__((unused)) void *arg)
{
        inbox = rs_inbox_ref(rs_loop_current->inbox);
        for (int i = 0; i < 2; i++) {
                posts[i] = (struct rs_post){ .fn = nothing, .lost = lost };
                rs_inbox_post(inbox, &posts[i]);
        }
        return 0;
}

/* semantics 16 better
 * asyncio: a closed loop refuses new callbacks, and drops those still queued without a word.
 * resha: a loop is closed by its run alone, once every task has ended; what other threads have posted by then and has
 * not run is counted and reported; outside of a run every call that needs a loop gives -EPERM. */
TEST(semantics_16_what_was_posted_and_did_not_run_is_reported)
{
        struct rs_post late = { .fn = nothing, .lost = lost };

        ASSERT_OK(run(posts_at_the_end, NULL));
        ASSERT_STR(notes(), "lost lost");
        ASSERT_STR(told.text, "-: 2 results of thread jobs or look-ups were dropped: the run had ended before\n");
        ASSERT_EQ(rs_inbox_late(inbox), 0);
        rs_inbox_post(inbox, &late); /* counted, and given back to its sender */
        ASSERT_STR(notes(), "lost");
        ASSERT_EQ(rs_inbox_late(inbox), 1);
        rs_inbox_unref(inbox);
        ASSERT_EQ(resha_sleep(RESHA_MS(1)), -EPERM);
}

static int leaves_open(__attribute__((unused)) void *arg)
{
        static resha_listener *n;
        resha_addr addr;
        static resha_stream *s;

        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &n));
        ASSERT_OK(resha_listener_addr(n, &addr));
        ASSERT_OK(resha_tcp_connect_addr(&addr, &s));
        return 0;
}

static int run_leaves_open(__attribute__((unused)) void *arg)
{
        int rc = run(leaves_open, NULL);

        printf("%d %s", rc, told.text);
        fflush(stdout);
        return 0;
}

static int closes_all(__attribute__((unused)) void *arg)
{
        RESHA_CLEANUP(resha_listener_closep) resha_listener *n = NULL;
        RESHA_CLEANUP(resha_stream_closep) resha_stream *s = NULL;
        resha_addr addr;

        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &n));
        ASSERT_OK(resha_listener_addr(n, &addr));
        return resha_tcp_connect_addr(&addr, &s);
}

/* semantics 320 same
 * asyncio: a loop, transport or server that is not closed gives a ResourceWarning at its destruction.
 * resha: a run closes its loop itself, and reports how many streams and listeners nobody has closed; in debug mode,
 * each with the place that opened it. */
TEST(semantics_320_what_was_not_closed_is_reported)
{
        struct test_child c;

        test_child(run_leaves_open, NULL, &c); /* it leaks, so in a process of its own */
        ASSERT_HAS(c.text, "0 -: 2 streams, listeners, datagram sockets or files were not closed before the run");
        ASSERT_OK(run(closes_all, NULL));
        ASSERT_STR(told.text, "");
}

/* ---- slow steps ---- */

static int computes(void *arg)
{
        int64_t until = rs_sys_now() + *(const int64_t *)arg;

        while (rs_sys_now() < until)
                ;
        return resha_yield();
}

static int slow_and_fast(__attribute__((unused)) void *arg)
{
        int64_t ns[] = { 0, 60000000, 0 };

        return resha_gather(computes, ns, 3, sizeof ns[0], NULL);
}

/* semantics 315 same
 * asyncio: in debug mode, a step of a task that takes 100 ms or more is logged with its duration.
 * resha: where the run is strict, or has slow_step set, such a step is reported with the task, the duration and the
 * stack; in debug mode from 50 ms on. */
TEST(semantics_315_a_slow_step_is_reported)
{
        resha_run_opts opts = { .report = sink, .slow_step = RESHA_MS(50) };

        if (test_is_sim())
                test_skip("steps are not timed in the simulated world");
        ASSERT_OK(test_run_opts(slow_and_fast, NULL, &opts));
        ASSERT_TRUE(told.reports >= 1);
        ASSERT_HAS(told.text, "computes: ran for ");
        ASSERT_HAS(told.text, " ms without a wait: no other task ran meanwhile; the stack is where it waited then\n");
}

TEST(steps_are_not_timed_unless_asked_for)
{
        ASSERT_OK(run(slow_and_fast, NULL));
        ASSERT_STR(told.text, "");
}
