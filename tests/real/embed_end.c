/* SPDX-License-Identifier: MIT */
/* Embedded runs: their end while tasks are left, several on one thread, forks. */

#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

/* ---- the end while tasks are left ---- */

static int sleeps_long(void *arg)
{
        int rc = resha_sleep(RESHA_S(3600));

        note("%s", resha_errname(rc));
        (void)arg;
        return rc;
}

static int tasks_that_sleep(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, sleeps_long, arg);
        return resha_group_end(&g, 0);
}

TEST(a_run_that_is_ended_early_is_cancelled_and_joined)
{
        resha_error error;
        char place[64];
        resha_embed *e = host_begin(tasks_that_sleep, NULL, &(resha_run_opts){ .ret_error = &error });

        ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 1);
        snprintf(place, sizeof place, "embed_end.c:%d", __LINE__ + 1);
        ASSERT_EQ(resha_embed_end(e), -ECANCELED);
        ASSERT_STR(notes(), "ECANCELED ECANCELED ECANCELED");
        ASSERT_STR(error.text, "cancelled");
        ASSERT_HAS(error.site, place);
}

TEST(a_run_that_is_ended_before_its_first_step_runs_to_its_first_wait)
{
        resha_embed *e = host_begin(sleeps_long, NULL, NULL);

        ASSERT_EQ(resha_embed_end(e), -ECANCELED);
        ASSERT_STR(notes(), "ECANCELED");
}

static int plain_sleep(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_S(3600));
}

static int never_ends(void *arg)
{
        return resha_shielded(RESHA_FOREVER, plain_sleep, arg);
}

static void counts_stuck(const resha_report *report, void *arg)
{
        *(unsigned *)arg += report->kind == RESHA_REPORT_STUCK;
}

static int gives_up(void *arg)
{
        static unsigned stuck;
        resha_run_opts o = { .grace = RESHA_MS(20), .report = counts_stuck, .report_arg = &stuck };
        resha_embed *e = host_begin(never_ends, NULL, &o);

        (void)arg;
        ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 1);
        ASSERT_EQ(resha_embed_end(e), -ECANCELED);
        ASSERT_EQ(stuck, 1);
        return 42;
}

TEST(what_does_not_end_is_given_up_after_the_grace)
{
        struct test_child c;

        test_child(gives_up, NULL, &c);
        ASSERT_STR(c.text, "");
        ASSERT_EQ(c.status, 42 << 8);
}

/* ---- several runs, one thread ---- */

static int plain_run(void *arg)
{
        int rc = resha_sleep(RESHA_MS(1));

        return rc < 0 ? rc : ++*(int *)arg;
}

TEST(other_runs_between_steps_and_several_embedded_ones)
{
        unsigned done[3] = { 0 };
        resha_embed *e[3];
        int runs = 0, left = 3;

        for (int i = 0; i < 3; i++)
                e[i] = host_begin(host_sleeps, &done[i], NULL);
        for (int turn = 0; left; turn++) {
                struct pollfd p[3];
                nfds_t n = 0;
                for (int i = 0; i < 3; i++)
                        p[n++] = (struct pollfd){ .fd = e[i] ? resha_embed_fd(e[i]) : -1, .events = POLLIN };
                ASSERT_TRUE(poll(p, n, HOST_LONG_MS) > 0);
                for (int i = 2; i >= 0; i--)
                        if (e[i] && p[i].revents && resha_embed_step(e[i], RESHA_MS(1)) == 0) {
                                ASSERT_EQ(resha_embed_end(e[i]), 0);
                                e[i] = NULL;
                                left--;
                        }
                if (turn < 5)
                        ASSERT_EQ(test_run_opts(plain_run, &runs, NULL), turn + 1);
        }
        for (int i = 0; i < 3; i++)
                ASSERT_EQ(done[i], HOST_SLEEPS);
}

/* A task that is the host of another run, and waits for it as for any descriptor. */
static int hosts(void *arg)
{
        unsigned done = 0, beside = 0;
        resha_embed *e = host_begin(host_sleeps, &done, NULL);
        int rc;
        RESHA_GROUP(g);

        (void)arg;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, host_sleeps, &beside);
        do {
                ASSERT_TRUE(resha_fd_wait(resha_embed_fd(e), POLLIN) > 0);
                rc = resha_embed_step(e, RESHA_MS(1));
                ASSERT_OK(rc);
                ASSERT_TRUE(resha_in_task());
        } while (rc > 0);
        ASSERT_EQ(done, HOST_SLEEPS);
        ASSERT_EQ(resha_embed_end(e), 0);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_EQ(beside, HOST_SLEEPS);
        return 3;
}

TEST(a_task_hosts_another_run)
{
        ASSERT_EQ(test_run_opts(hosts, NULL, NULL), 3);
}

TEST(an_embedded_run_hosts_another_one)
{
        resha_embed *e = host_begin(hosts, NULL, NULL);

        host_drive(e, RESHA_FOREVER);
        ASSERT_EQ(resha_embed_end(e), 3);
}

/* ---- fork ---- */

static int in_child(void *arg)
{
        int runs = 0;

        ASSERT_EQ(resha_embed_step(arg, RESHA_FOREVER), -EPERM);
        ASSERT_EQ(resha_embed_end(arg), -EPERM);
        ASSERT_TRUE(resha_embed_loop(arg) == NULL);
        ASSERT_EQ(test_run_opts(plain_run, &runs, NULL), 1);
        return 42;
}

TEST(a_forked_child_leaves_the_run_to_its_parent)
{
        unsigned done = 0;
        struct test_child c;
        resha_embed *e = host_begin(host_sleeps, &done, NULL);

        ASSERT_EQ(resha_embed_step(e, RESHA_FOREVER), 1);
        test_child(in_child, e, &c);
        ASSERT_STR(c.text, "");
        ASSERT_EQ(c.status, 42 << 8);
        host_drive(e, RESHA_FOREVER);
        ASSERT_EQ(done, HOST_SLEEPS);
        ASSERT_EQ(resha_embed_end(e), 0);
}

/* ---- threads that post and cancel while the host steps ---- */

enum { POSTERS = 3, POSTS = 400 };

static struct {
        resha_event all;
        unsigned ran;
} heard;

static void hears(void *arg)
{
        ASSERT_TRUE(arg == &heard);
        ASSERT_FALSE(resha_in_task());
        if (++heard.ran == POSTERS * POSTS)
                resha_event_set(&heard.all);
}

static void *tells(void *loop)
{
        for (int i = 0; i < POSTS; i++) {
                ASSERT_OK(resha_loop_post(loop, hears, &heard));
                if (i % 3 == 0)
                        usleep(50); /* the host is asleep again */
        }
        resha_loop_unref(loop);
        return NULL;
}

static int hears_all(void *arg)
{
        (void)arg;
        return resha_event_wait(&heard.all);
}

TEST(posts_of_threads_wake_a_host_that_polls)
{
        pthread_t threads[POSTERS];
        resha_embed *e = host_begin(hears_all, NULL, NULL);

        for (int i = 0; i < POSTERS; i++)
                ASSERT_EQ(pthread_create(&threads[i], NULL, tells, resha_embed_loop(e)), 0);
        unsigned steps = host_drive(e, RESHA_MS(1));
        for (int i = 0; i < POSTERS; i++)
                ASSERT_EQ(pthread_join(threads[i], NULL), 0);
        ASSERT_EQ(heard.ran, POSTERS * POSTS);
        if (!test_is_sim())
                ASSERT_TRUE(steps <= POSTERS * POSTS + 2);
        ASSERT_EQ(resha_embed_end(e), 0);
}

static void *cancels_late(void *loop)
{
        usleep(3000);
        resha_loop_cancel(loop);
        resha_loop_unref(loop);
        return NULL;
}

static int waits_for_ever(void *arg)
{
        resha_event never = { { 0 } };

        (void)arg;
        return resha_event_wait(&never);
}

TEST(a_thread_cancels_an_embedded_run)
{
        pthread_t thread;
        resha_embed *e = host_begin(waits_for_ever, NULL, NULL);

        ASSERT_EQ(pthread_create(&thread, NULL, cancels_late, resha_embed_loop(e)), 0);
        unsigned steps = host_drive(e, RESHA_FOREVER);
        if (!test_is_sim())
                ASSERT_TRUE(steps <= 4);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        ASSERT_EQ(resha_embed_end(e), -ECANCELED);
}

/* Between the end of the main task and that of the run. */
TEST(posts_that_come_after_the_last_step_run_at_the_end)
{
        unsigned done = HOST_SLEEPS;
        resha_embed *e = host_begin(host_sleeps, &done, NULL);
        resha_loop *l = resha_embed_loop(e);

        host_drive(e, RESHA_FOREVER);
        ASSERT_OK(resha_loop_post(l, hears, &heard));
        if (!test_is_sim())
                ASSERT_FALSE(host_readable(e, 1));
        ASSERT_EQ(heard.ran, 0);
        ASSERT_EQ(resha_embed_end(e), 0);
        ASSERT_EQ(heard.ran, 1);
        ASSERT_EQ(resha_loop_post(l, hears, &heard), RESHA_ESHUT);
        resha_loop_unref(l);
}

/* ---- what fails at the beginning ---- */

TEST(a_run_that_cannot_begin_leaves_nothing_behind)
{
        unsigned before = real_fds(), done = HOST_SLEEPS;
        resha_embed *e = NULL;
        resha_run_opts o = { .backend = test_backend() };

        for (unsigned n = 1;; n++) {
                real_fail_nth(n, -EMFILE);
                int rc = resha_embed_begin(host_sleeps, &done, &o, &e);
                bool failed = real_failed() != RS_SYS_COUNT;
                real_fail_nth(0, 0);
                ASSERT_EQ(rc == 0 || rc == -EMFILE, true);
                if (rc == 0)
                        ASSERT_EQ(resha_embed_end(e), 0);
                ASSERT_EQ(real_fds(), before);
                if (!failed)
                        return;
        }
}

/* Where a program was started without its input: a read of that would read what the run waits with. */
TEST(descriptors_of_the_run_are_none_of_the_standard_ones)
{
        unsigned done = HOST_SLEEPS;
        resha_embed *e;
        int kept = fcntl(0, F_DUPFD_CLOEXEC, 3);

        close(0);
        ASSERT_OK(resha_embed_begin(host_sleeps, &done, &(resha_run_opts){ .backend = test_backend() }, &e));
        ASSERT_EQ(fcntl(0, F_GETFD), -1);
        ASSERT_OK(resha_embed_end(e));
        if (kept >= 0)
                ASSERT_EQ(dup2(kept, 0), 0);
        close(kept);
}

TEST(a_run_without_memory_leaves_nothing_behind)
{
        unsigned before = real_fds(), done = HOST_SLEEPS;
        resha_embed *e = NULL;
        resha_run_opts o = { .backend = test_backend() };
        int rc = -ENOMEM;

        for (unsigned n = 1; rc == -ENOMEM; n++) {
                rs_alloc_fail_after(n, false);
                rc = resha_embed_begin(host_sleeps, &done, &o, &e);
                rs_alloc_fail_after(0, false);
                ASSERT_TRUE(rc == 0 || rc == -ENOMEM);
                if (rc < 0)
                        ASSERT_EQ(real_fds(), before);
        }
        ASSERT_EQ(resha_embed_end(e), 0);
        ASSERT_EQ(real_fds(), before);
}

static int nothing(void *unused)
{
        (void)unused;
        return 0;
}

/* Not of an embedded one alone: whoever asks for the error of a run gets why there was none. */
TEST(a_run_that_cannot_begin_says_why)
{
        resha_error error;
        int rc = -ENOMEM;

        for (unsigned n = 1; rc == -ENOMEM; n++) {
                rs_alloc_fail_after(n, false);
                rc = resha_run(nothing, NULL, &(resha_run_opts){ .backend = test_backend(), .ret_error = &error });
                rs_alloc_fail_after(0, false);
                ASSERT_EQ(error.code, rc);
        }
        ASSERT_EQ(rc, 0);
}
