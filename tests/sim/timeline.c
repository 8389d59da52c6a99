/* SPDX-License-Identifier: MIT */
/* The picture of a run, compared to the byte: in virtual time it is always the same. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/ring.h"
#include "inspect/timeline.h"
#include "test.h"

/* ---- whole programs ---- */

struct program {
        resha_fn *main;
        const char *locale, *no_color, *how;
};

static int with_timeline(void *arg)
{
        const struct program *p = arg;

        setenv("RESHA_TIMELINE", p->how ? p->how : "1", 1);
        setenv("LC_ALL", p->locale ? p->locale : "C.UTF-8", 1);
        unsetenv("NO_COLOR");
        if (p->no_color)
                setenv("NO_COLOR", p->no_color, 1);
        int rc = resha_run(p->main, NULL, &(resha_run_opts){ .backend = "sim:0" });
        return rc < 0 ? 1 : 0;
}

static const char *picture(struct program p)
{
        static struct test_child child;

        test_child(with_timeline, &p, &child);
        return child.text;
}

static int greet(void *arg)
{
        char name[48];

        snprintf(name, sizeof name, "greet \"%s\"", *(char **)arg);
        int rc = resha_task_set_name(name);
        return rc < 0 ? rc : resha_sleep(RESHA_S(2));
}

static int greetings(void *arg)
{
        const char *names[] = { "Alice", "Bob", "Charlie" };

        (void)arg;
        return resha_gather(greet, names, 3, sizeof names[0], NULL);
}

TEST(timeline_shows_what_ran_and_waited)
{
        ASSERT_STR(picture((struct program){ .main = greetings }),
                   "greet \"Alice\"    ▌~~~~~~~~~~~~~~~~~~▌ 2.0 s     ▌ runs   ~ waits   x cancelled\n"
                   "greet \"Bob\"      ▌~~~~~~~~~~~~~~~~~~▌\n"
                   "greet \"Charlie\"  ▌~~~~~~~~~~~~~~~~~~▌\n");
}

TEST(timeline_is_ascii_where_asked_for)
{
        static const char ascii[] = "greet \"Alice\"    #~~~~~~~~~~~~~~~~~~# 2.0 s     # runs   ~ waits   x cancelled\n"
                                    "greet \"Bob\"      #~~~~~~~~~~~~~~~~~~#\n"
                                    "greet \"Charlie\"  #~~~~~~~~~~~~~~~~~~#\n";

        ASSERT_STR(picture((struct program){ .main = greetings, .locale = "C" }), ascii);
        ASSERT_STR(picture((struct program){ .main = greetings, .no_color = "1" }), ascii);
}

static int nap(void *arg)
{
        (void)arg;
        return resha_sleep(RESHA_S(1));
}

static int fails(void *arg)
{
        int rc = resha_sleep(RESHA_S(2));

        (void)arg;
        return rc < 0 ? rc : -EIO;
}

static int cleans_up(void *arg)
{
        int rc = resha_sleep(RESHA_S(10));

        (void)arg;
        if (rc == -ECANCELED && resha_shielded(RESHA_S(5), nap, NULL) < 0)
                return -EIO;
        return rc;
}

static int ticks(void *arg)
{
        int rc = 0;

        (void)arg;
        for (int i = 0; i < 100 && rc >= 0; i++)
                rc = resha_sleep(RESHA_MS(10));
        return rc;
}

static int workers(void *arg)
{
        (void)arg;
        int rc = resha_sleep(RESHA_S(1));
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, nap, NULL);
        resha_spawn(&g, fails, NULL);
        resha_spawn(&g, cleans_up, NULL);
        resha_spawn(&g, ticks, NULL);
        return resha_group_end(&g, 0);
}

TEST(timeline_shows_a_cancel_and_the_clean_up_after_it)
{
        ASSERT_STR(picture((struct program){ .main = workers }),
                   "main       ▌~~~~▌~~~~~~~~x~~~~▌ 4.0 s     ▌ runs   ~ waits   x cancelled\n"
                   "nap             ▌~~~~▌\n"
                   "fails           ▌~~~~~~~~▌\n"
                   "cleans_up       ▌~~~~~~~~x~~~~▌\n"
                   "ticks           ▌~▌~▌▌\n");
}

static int crowd(void *arg)
{
        static char items[60];

        (void)arg;
        return resha_gather(nap, items, 60, 1, &(resha_gather_opts){ .limit = 30 });
}

TEST(timeline_ends_after_forty_lanes)
{
        const char *text = picture((struct program){ .main = crowd });
        size_t lines = 0;

        for (const char *s = text; *s; s++)
                lines += *s == '\n';
        ASSERT_EQ(lines, 41);
        ASSERT_HAS(text, "\nnap  ▌~~~~~~~~~~~~~~▌\n");
        ASSERT_HAS(text, "\nnap                 ▌~~~~~~~~~~~~~▌\n... 20 more lanes like these\n");
}

static int at_once(void *arg)
{
        (void)arg;
        return 0;
}

TEST(timeline_of_a_run_that_takes_no_time)
{
        ASSERT_STR(picture((struct program){ .main = at_once }), "main  ▌ 0.0 s     ▌ runs   ~ waits   x cancelled\n");
}

static int long_names(void *arg)
{
        (void)arg;
        int rc = resha_task_set_name("a name\nof forty-seven bytes with a control char");
        return rc < 0 ? rc : resha_sleep(RESHA_MS(5));
}

TEST(timeline_cuts_names_and_moves_the_legend_for_them)
{
        ASSERT_STR(picture((struct program){ .main = long_names }),
                   "a name?of forty-seven byt…  ▌~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~▌ 5.0 ms\n"
                   "▌ runs   ~ waits   x cancelled\n");
}

TEST(timeline_says_what_each_lane_waits_for_longest)
{
        const char *text = picture((struct program){ .main = workers, .how = "waits" });

        ASSERT_HAS(text, "\ncleans_up");
        ASSERT_HAS(text, "▌  children 3.0 s\n");
        ASSERT_HAS(text, "▌  sleep 3.0 s\n");
        ASSERT_HAS(text, "x cancelled; 4.0 s in all; on the right: what it has waited for longest\n");
}

TEST(timeline_with_coarse_stamps_is_the_same_where_time_stands_still_meanwhile)
{
        static char fine[8192];

        snprintf(fine, sizeof fine, "%s", picture((struct program){ .main = workers }));
        ASSERT_STR(picture((struct program){ .main = workers, .how = "coarse" }), fine);
}

static int other(void *arg)
{
        return nap(arg);
}

static int two_crowds(void *arg)
{
        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 5000; i++)
                if (i % 5)
                        resha_spawn(&g, nap, NULL);
                else
                        resha_spawn(&g, other, NULL);
        for (int i = 0; i < 3000; i++)
                resha_spawn(&g, fails, NULL);
        return resha_group_end(&g, 0) < 0 ? 0 : -EPROTO;
}

TEST(timeline_has_a_lane_for_each_name_of_those_that_have_none)
{
        const char *text = picture((struct program){ .main = two_crowds });

        ASSERT_HAS(text, "\nfails ×3000  ▌~~~~");
        ASSERT_HAS(text, "\n... 4960 more lanes like these\n");
}

TEST(timeline_is_off_by_default)
{
        struct test_child child;

        unsetenv("RESHA_TIMELINE");
        test_child((int (*)(void *))at_once, NULL, &child);
        ASSERT_STR(child.text, "");
}

/* ---- a ring that has forgotten ---- */

static void put(struct rs_ring *r, enum rs_event_kind kind, uint32_t task, uint64_t body)
{
        r->events[(r->at & r->mask) / sizeof r->events[0]] = (struct rs_event){ rs_event_head(kind, 0, 0, task), body };
        r->at += sizeof r->events[0];
}

/* Two tasks that take turns, for 68.5 us that are left. */
static struct rs_ring *forgetful(void)
{
        enum { EVENTS = 1 << 16, LOST = 512 };
        struct rs_ring *ring = rs_ring_new(EVENTS);

        for (uint64_t i = 0; i < (EVENTS + LOST) / 4; i++) {
                put(ring, RS_EVENT_TIME, 0, 1000 + i * 4);
                put(ring, RS_EVENT_RUN, i % 4 < 2 ? 7 : 9, 0);
                put(ring, RS_EVENT_TIME, 0, 1000 + i * 4 + 2);
                put(ring, RS_EVENT_PARK, i % 4 < 2 ? 7 : 9, (uintptr_t) "sleep");
        }
        return ring;
}

static int print_forgetful(void *arg)
{
        setenv("LC_ALL", "C.UTF-8", 1);
        unsetenv("NO_COLOR");
        rs_timeline_print(arg, 0, 70000, false, STDERR_FILENO);
        return 0;
}

TEST(timeline_says_what_it_has_forgotten)
{
        struct test_child child;
        struct rs_ring *ring = forgetful();

        test_child(print_forgetful, ring, &child);
        rs_ring_unref(ring);
        ASSERT_STR(child.text, "task 7  ▌~▌~▌~▌~▌~▌~▌~▌~▌~▌▌ 68.5 us     ▌ runs   ~ waits   x cancelled\n"
                               "task 9  ▌~▌~▌~▌~▌~▌~▌~▌~▌~▌▌\n"
                               "... 513 earlier events are forgotten: the picture begins after them\n");
}
