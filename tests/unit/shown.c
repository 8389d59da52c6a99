/* SPDX-License-Identifier: MIT */
/* What is open and who opened it, walks through it, and what tasks say that they do. */

#include <resha/embed.h>
#include <resha/portal.h>
#include <resha/run.h>
#include <resha/shown.h>
#include <resha/stats.h>
#include <resha/workers.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "job.h"
#include "sys/symbol.h"

/* ---- the list ---- */

static void describe(const void *object, char *text, size_t size)
{
        snprintf(text, size, "%s here", (const char *)object);
}

static const resha_shown_kind kind = { .kind = "thing", .describe = describe };

TASK(shown_has_who_opened_it_where_and_when)
{
        char name[] = "n", object[] = "o", text[64];
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } };

        ASSERT_OK(resha_shown_begin(&s, &kind, object, name, NULL, __builtin_return_address(0)));
        const struct rs_shown *in = rs_shown_of(&s);
        ASSERT_STR(in->task, "main");
        ASSERT_TRUE(in->opened_by == __builtin_return_address(0));
        ASSERT_EQ(in->fd, -1);
        ASSERT_TRUE(in->opened >= rs_loop_current->counters.began);
        rs_shown_describe(in, text, sizeof text);
        ASSERT_STR(text, "thing n o here");
        char cut[8];
        rs_shown_describe(in, cut, sizeof cut);
        ASSERT_STR(cut, "thing n");
        resha_shown_end(&s);
        resha_shown_end(&s); /* nothing more */
        ASSERT_TRUE(in->loop == NULL);
        return 0;
}

TASK(shown_refuses_kinds_that_are_not_valid)
{
        const resha_shown_kind reserved = { .kind = "x", ._reserved = { 1 } }, many = { .kind = "x", .count = 17 };
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } };

        ASSERT_EQ(resha_shown_begin(&s, &reserved, NULL, NULL, NULL, NULL), -EINVAL);
        ASSERT_EQ(resha_shown_begin(&s, &many, NULL, NULL, NULL, NULL), -EINVAL);
        return 0;
}

static resha_shown left;

static int leaves(__attribute__((unused)) void *arg)
{
        return resha_shown_begin(&left, &kind, NULL, NULL, NULL, NULL);
}

TEST(shown_that_outlives_its_loop_ends_without_harm)
{
        ASSERT_OK(test_run_opts(leaves, NULL, NULL));
        ASSERT_TRUE(rs_shown_of(&left)->loop == NULL);
        resha_shown_end(&left);
        ASSERT_EQ(resha_shown_begin(&left, &kind, NULL, NULL, NULL, NULL), -EPERM); /* no loop */
}

static void *ends(void *s)
{
        resha_shown_end(s);
        return NULL;
}

static int ends_elsewhere(void *arg)
{
        pthread_t thread;
        resha_shown s;

        (void)arg;
        if (resha_shown_begin(&s, &kind, NULL, NULL, NULL, NULL) < 0 || pthread_create(&thread, NULL, ends, &s) != 0)
                return 1;
        return pthread_join(thread, NULL);
}

static int runs_that(void *arg)
{
        return resha_run(ends_elsewhere, arg, NULL);
}

TEST(shown_that_ends_on_another_thread_aborts_with_the_reason)
{
        struct test_child c;

        test_child(runs_that, NULL, &c);
        ASSERT_TRUE(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGABRT);
        ASSERT_HAS(c.text, "a thing on another thread than that of its loop");
}

/* What its parent had open is not its own to end, and is in no list of a loop that goes on. */
static int ends_in_a_fork(void *arg)
{
        resha_shown s;
        int ends[2];
        char said = '?';

        (void)arg;
        if (resha_shown_begin(&s, &kind, NULL, NULL, NULL, NULL) < 0 || pipe(ends) < 0)
                return 1;
        pid_t pid = fork();
        if (pid == 0) {
                resha_shown_end(&s);
                /* tools that watch have codes of theirs */
                _exit(write(ends[1], rs_shown_of(&s)->loop ? "n" : "y", 1) != 1);
        }
        close(ends[1]);
        ssize_t n = read(ends[0], &said, 1);
        close(ends[0]);
        waitpid(pid, NULL, 0);
        resha_shown_end(&s);
        return n == 1 && said == 'y' ? 0 : -EINVAL;
}

TEST(shown_that_ends_in_a_forked_child_is_the_parents)
{
        ASSERT_OK(resha_run(ends_in_a_fork, NULL, NULL));
}

static int sleeps_while_shown(void *s)
{
        int rc = resha_shown_begin(s, &kind, NULL, NULL, NULL, NULL);

        return rc < 0 ? rc : resha_sleep(RESHA_S(60));
}

TEST(shown_ends_on_the_host_of_an_embedded_run)
{
        resha_shown s = { { 0 } };
        resha_embed *e;

        ASSERT_OK(resha_embed_begin(sleeps_while_shown, &s, NULL, &e));
        ASSERT_EQ(resha_embed_step(e, RESHA_S(1)), 1);
        ASSERT_TRUE(rs_shown_of(&s)->loop != NULL && rs_loop_current == NULL);
        struct rs_loop *l = rs_shown_of(&s)->loop;
        resha_shown_end(&s);
        ASSERT_TRUE(l->shown.first == NULL && l->counters.shown == 0);
        (void)resha_embed_end(e);
}

/* The call of the program that opened it, and not one of the library in between. */
static __attribute__((noinline)) int opens(resha_stream *pair[2])
{
        int rc = resha_stream_pair(pair);

        __asm__ volatile("");
        return rc;
}

TASK(shown_streams_are_opened_by_the_function_of_the_program)
{
        resha_stream *pair[2];
        char text[128];

        ASSERT_OK(opens(pair));
        const struct rs_node *n = rs_loop_current->shown.last;
        const struct rs_shown *s = RS_CONTAINER(n, struct rs_shown, node);
        ASSERT_TRUE(rs_symbol_format(s->opened_by, text, sizeof text));
        ASSERT_TRUE(strncmp(text, "opens+", 6) == 0);
        resha_stream_opened_by(pair[1],
                               (const void *)(uintptr_t)task_shown_streams_are_opened_by_the_function_of_the_program);
        ASSERT_TRUE(s->opened_by != NULL && memcmp(&s->kind->kind[0], "stream", 7) == 0);
        resha_stream_close(pair[0]);
        resha_stream_close(pair[1]);
        return 0;
}

/* What there is of that kind, in one line; "" for none. */
static const char *shown_of_kind(const char *name)
{
        static char text[RESHA_DESCRIBE_MAX];

        text[0] = '\0';
        for (const struct rs_node *n = rs_loop_current->shown.first; n; n = n->next) {
                const struct rs_shown *s = RS_CONTAINER((void *)(uintptr_t)n, struct rs_shown, node);
                if (strcmp(s->kind->kind, name) == 0)
                        rs_shown_describe(s, text, sizeof text);
        }
        return text;
}

static int serves(void *portal)
{
        return resha_portal_serve(portal);
}

TASK(shown_portals_while_they_are_served)
{
        resha_portal *p RESHA_CLEANUP(resha_portal_unrefp) = NULL;

        ASSERT_OK(resha_portal_new(&(resha_portal_opts){ .limit = 7 }, &p));
        ASSERT_STR(shown_of_kind("portal"), "");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serves, p);
        ASSERT_OK(resha_yield());
        ASSERT_STR(shown_of_kind("portal"), "portal 0 of 7 calls run, 0 wait; 0 have ended");
        resha_portal_shutdown(p);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_STR(shown_of_kind("portal"), "");
        return 0;
}

/* Inline, on the loop. */
static int sees_its_map(void *arg)
{
        char line[RESHA_DESCRIBE_MAX];
        const int *n = arg;

        snprintf(line, sizeof line, "map over processes few %d of 3 items done, %d failed; by 1 workers",
                 *n < 1 ? 0 : 1, *n < 2 ? 0 : 1);
        ASSERT_STR(shown_of_kind("map over processes"), line);
        return *n == 1 ? -EIO : 0;
}

static void free_text(char **text)
{
        resha_free(*text);
}

TASK(shown_maps_over_processes_until_they_return)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;
        int items[] = { 0, 1, 2 };
        char *text RESHA_CLEANUP(free_text) = NULL;
        size_t size;

        SIM_ONLY();
        ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .name = "few", .processes = 1 }, &w));
        ASSERT_OK(resha_workers_map(w, sees_its_map, items, 3, sizeof items[0],
                                    &(resha_gather_opts){ .keep_going = true }));
        ASSERT_STR(shown_of_kind("map over processes"), "");
        ASSERT_OK(resha_stats_text(&text, &size));
        ASSERT_HAS(text, "workers=\"few\"} 2\n");
        ASSERT_HAS(text, "resha_workers_failed_total{");
        return 0;
}

/* ---- walks ---- */

/* The next one of this file. */
static const struct rs_shown *next_thing(uint64_t walk)
{
        struct rs_loop *l = rs_loop_current;
        const struct rs_shown *s;

        while ((s = rs_shown_walk_at(&l->shown_walks, walk)) && s->kind != &kind)
                rs_shown_walk_on(l, walk);
        if (s)
                rs_shown_walk_on(l, walk);
        return s;
}

TASK(shown_walk_goes_on_while_things_come_and_go)
{
        resha_shown s[4];

        for (int i = 0; i < 3; i++)
                ASSERT_OK(resha_shown_begin(&s[i], &kind, NULL, NULL, NULL, NULL));
        uint64_t walk = rs_shown_walk_begin(rs_loop_current), other = rs_shown_walk_begin(rs_loop_current);
        ASSERT_TRUE(next_thing(walk) == rs_shown_of(&s[0]));
        resha_shown_end(&s[0]); /* the one that was just seen */
        resha_shown_end(&s[1]); /* the next one */
        ASSERT_OK(resha_shown_begin(&s[3], &kind, NULL, NULL, NULL, NULL));
        ASSERT_TRUE(next_thing(walk) == rs_shown_of(&s[2]));
        ASSERT_TRUE(next_thing(other) == rs_shown_of(&s[2]));
        ASSERT_TRUE(next_thing(walk) == rs_shown_of(&s[3]));
        ASSERT_TRUE(next_thing(walk) == NULL);
        ASSERT_TRUE(next_thing(walk) == NULL);
        resha_shown_end(&s[2]);
        resha_shown_end(&s[3]); /* the last, at which the other is */
        ASSERT_TRUE(next_thing(other) == NULL);
        return 0;
}

TASK(shown_walks_of_which_there_are_too_many_give_up_the_oldest)
{
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } };
        uint64_t walks[RS_SHOWN_WALKS + 1];

        ASSERT_OK(resha_shown_begin(&s, &kind, NULL, NULL, NULL, NULL));
        for (int i = 0; i <= RS_SHOWN_WALKS; i++)
                walks[i] = rs_shown_walk_begin(rs_loop_current);
        ASSERT_TRUE(next_thing(walks[0]) == NULL);
        for (int i = 1; i <= RS_SHOWN_WALKS; i++)
                ASSERT_TRUE(next_thing(walks[i]) == rs_shown_of(&s));
        return 0;
}

/* ---- what tasks do ---- */

static int inner(void *arg)
{
        RESHA_DOING(d);
        resha_doing_begin(&d, "inner", NULL);
        d.phase = "first";
        ASSERT_STR(resha_doing_current()->what, "inner");
        ASSERT_TRUE(d._outer == arg);
        if (arg)
                return -EAGAIN; /* the block ends it */
        resha_doing_end(&d);
        resha_doing_end(&d);
        return 0;
}

TASK(doing_nests_and_ends_with_its_block)
{
        ASSERT_TRUE(resha_doing_current() == NULL);
        {
                RESHA_DOING(d);
                resha_doing_begin(&d, "outer", "x:1");
                ASSERT_EQ(inner(&d), -EAGAIN);
                ASSERT_TRUE(resha_doing_current() == &d);
                ASSERT_STR(resha_doing_current()->text, "x:1");
        }
        ASSERT_TRUE(resha_doing_current() == NULL);
        ASSERT_OK(inner(NULL));
        ASSERT_TRUE(resha_doing_current() == NULL);
        return 0;
}

static int child(__attribute__((unused)) void *arg)
{
        ASSERT_TRUE(resha_doing_current() == NULL); /* its own, not the parent's */
        return resha_sleep(RESHA_MS(1));
}

TASK(doing_that_ends_before_those_in_it_is_gone)
{
        RESHA_DOING(outermost);
        RESHA_DOING(inmost);
        resha_doing middle = { 0 }, between = { 0 };

        resha_doing_begin(&outermost, "a", NULL);
        resha_doing_begin(&between, "b", NULL);
        resha_doing_begin(&middle, "c", NULL);
        resha_doing_begin(&inmost, "d", NULL);
        resha_doing_end(&between);
        resha_doing_end(&middle);
        ASSERT_TRUE(resha_doing_current() == &inmost);
        ASSERT_TRUE(inmost._outer == &outermost);
        resha_doing_end(&inmost);
        ASSERT_TRUE(resha_doing_current() == &outermost);
        return 0;
}

TASK(doing_belongs_to_its_task)
{
        RESHA_DOING(d);
        RESHA_GROUP(g);

        resha_doing_begin(&d, "parent", NULL);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, child, NULL);
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_TRUE(resha_doing_current() == &d);
        return 0;
}

TEST(doing_outside_of_a_loop_is_nothing)
{
        RESHA_DOING(d);
        resha_doing_begin(&d, "x", NULL);
        ASSERT_TRUE(resha_doing_current() == NULL);
}
