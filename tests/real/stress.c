/* SPDX-License-Identifier: MIT */
/* Everything at once: loops on several threads, whose tasks have jobs done by threads and by processes that crash,
 * cancel each other and end at random moments, while other threads post, call through portals and cancel. In the end
 * each job, call and item has ended exactly once, each post that was taken has run, and no thread, descriptor, process
 * or memory is left.
 *
 *     RESHA_STRESS=200 build/tests/real/real-stress     so many rounds [12]
 *     RESHA_STRESS_SEED=7                               the luck of the first; the next ones follow [1]
 *
 * Nothing is expected to take a certain time, and what a round does is bounded, so it ends on any machine. A failure
 * names the seed of its round: that has the same decisions again, if not the same moments of the threads. */

#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/inbox.h"
#include "sys/workers.h"

enum stress_plant stress_plant;
static atomic_uint seen;

void stress_saw(enum stress_seen what)
{
        atomic_fetch_or_explicit(&seen, 1U << what, memory_order_relaxed);
}

/* ---- luck ---- */

struct luck luck_of(unsigned seed, unsigned actor)
{
        struct luck l = { (seed * UINT64_C(1000003) + actor) * UINT64_C(0x9E3779B97F4A7C15) | 1 };

        for (int i = 0; i < 8; i++)
                roll(&l, 1);
        return l;
}

unsigned roll(struct luck *l, unsigned below)
{
        l->state ^= l->state << 13;
        l->state ^= l->state >> 7;
        l->state ^= l->state << 17;
        return (unsigned)((l->state >> 20) % below);
}

resha_duration stress_moment(struct luck *l)
{
        return RESHA_US(roll(l, roll(l, 8) ? 200 : 3000));
}

/* ---- planted bugs ---- */

bool __real_rs_inbox_try_post(struct rs_inbox *i, struct rs_post *p);
bool __wrap_rs_inbox_try_post(struct rs_inbox *i, struct rs_post *p);
bool __real_rs_workers_remove(struct rs_workers *c, struct rs_work *w);
bool __wrap_rs_workers_remove(struct rs_workers *c, struct rs_work *w);

bool __wrap_rs_inbox_try_post(struct rs_inbox *i, struct rs_post *p)
{
        static atomic_uint n;

        if (stress_plant == PLANT_POST_LOST && atomic_fetch_add(&n, 1) == 100)
                return true;
        return __real_rs_inbox_try_post(i, p);
}

bool __wrap_rs_workers_remove(struct rs_workers *c, struct rs_work *w)
{
        return __real_rs_workers_remove(c, w) || stress_plant == PLANT_CANCEL_LIES;
}

static void *outstays(void *arg)
{
        pause();
        return arg;
}

static void plant_left_over(void)
{
        pthread_t thread;

        if (stress_plant == PLANT_FD)
                ASSERT_TRUE(dup(2) > 0);
        if (stress_plant == PLANT_THREAD)
                ASSERT_EQ(pthread_create(&thread, NULL, outstays, NULL), 0);
        if (stress_plant == PLANT_MEMORY)
                ASSERT_TRUE(resha_malloc(10) != NULL);
        if (stress_plant == PLANT_PROCESS && fork() == 0)
                _exit(0);
}

/* ---- clients ---- */

static int sleeps(struct stress_loop *l, struct luck *luck)
{
        (void)l;
        return resha_sleep(stress_moment(luck));
}

static int yields(struct stress_loop *l, struct luck *luck)
{
        (void)l, (void)luck;
        return resha_yield();
}

static const struct stress_op ops[] = {
        { "sleep", sleeps, 2 },
        { "yield", yields, 2 },
        { "job", stress_job, 10 },
        { "own pool", stress_own_pool, 1 },
        { "abandoned job", stress_owned, 3 },
        { "map over threads", stress_pool_map, 1 },
        { "channel", stress_channel_use, 4 },
        { "map over processes", stress_workers_map, 1 },
};
enum { OPS = sizeof ops / sizeof ops[0] };

static const struct stress_op *any_op(struct luck *luck)
{
        unsigned all = 0;

        for (unsigned i = 0; i < OPS; i++)
                all += ops[i].weight;
        unsigned n = roll(luck, all), i = 0;
        while (n >= ops[i].weight)
                n -= ops[i++].weight;
        return &ops[i];
}

static int client(void *arg)
{
        struct stress_loop *l = arg;
        unsigned me = l->client++;
        struct luck luck = luck_of(l->round->seed, 1000 + l->index * 100 + me);
        unsigned last = me == 0 ? roll(&luck, STRESS_OPS) : STRESS_OPS;
        int rc = 0;

        for (unsigned i = 0; i < STRESS_OPS && rc == 0; i++) {
                rc = any_op(&luck)->fn(l, &luck);
                ASSERT_TRUE(rc == 0 || rc == -ECANCELED);
                if (rc < 0 || i != last || l->index != l->round->chosen)
                        continue;
                if (l->round->end == STRESS_FAILS)
                        return resha_fail(-EPROTO, "the client that fails");
                if (l->round->end == STRESS_CTRL_C)
                        ASSERT_EQ(raise(SIGINT), 0);
        }
        return rc;
}

/* ---- a loop ---- */

static int serve_portal(void *arg)
{
        return resha_portal_serve(((struct stress_loop *)arg)->portal);
}

static int clients(void *arg)
{
        struct stress_loop *l = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < STRESS_CLIENTS; i++)
                resha_spawn(&g, client, l);
        int rc = resha_group_end(&g, 0);
        resha_portal_shutdown(l->portal);
        return rc;
}

static int everything(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve_portal, arg);
        resha_spawn(&g, clients, arg);
        return resha_group_end(&g, 0);
}

static int loop_main(void *arg)
{
        struct stress_loop *l = arg;

        for (unsigned i = 0; i < STRESS_THREADS; i++)
                l->refs[i] = resha_loop_ref();
        l->killers = resha_loop_ref();
        atomic_fetch_add(&l->round->begun, 1);
        if (l->round->end != STRESS_LATE)
                return everything(l);
        return resha_timeout(RESHA_US(roll(&l->luck, 20000)), everything, l);
}

/* ---- a round ---- */

static void no_reports(const resha_report *r, __attribute__((unused)) void *arg)
{
        FAIL("report %d: %s", r->kind, r->text);
}

static void check_result(const struct stress_round *r, int rc, bool interrupted)
{
        switch (rc) {
        case 0: break;
        case -ECANCELED: ASSERT_TRUE(r->end == STRESS_CANCELLED || interrupted); break;
        case -EPROTO: ASSERT_EQ(r->end, STRESS_FAILS); break;
        case -ETIME: ASSERT_EQ(r->end, STRESS_LATE); break;
        default: FAIL("a run ended with %d: %s", rc, resha_error_of(rc)->text);
        }
}

static void *run_loop(void *arg)
{
        struct stress_loop *l = arg;
        bool interrupted;

        int rc = test_run_opts(
                loop_main, l, &(resha_run_opts){ .report = no_reports, .threads = 3, .ret_interrupted = &interrupted });
        check_result(l->round, rc, interrupted);
        return NULL;
}

/* Whichever ends first with a failure has cancelled the others. */
static void run_together(struct stress_round *r)
{
        bool interrupted;
        resha_run_opts o = {
                .backend = test_backend(), .report = no_reports, .threads = 3, .ret_interrupted = &interrupted
        };

        int rc = resha_run_loops(loop_main, r->loops, r->count, sizeof r->loops[0], &o);
        check_result(r, rc, interrupted);
}

static void run_loops(struct stress_round *r)
{
        if (r->together) {
                run_together(r);
                return;
        }
        for (unsigned i = 1; i < r->count; i++)
                ASSERT_EQ(pthread_create(&r->loops[i].thread, NULL, run_loop, &r->loops[i]), 0);
        run_loop(&r->loops[0]);
        for (unsigned i = 1; i < r->count; i++)
                ASSERT_EQ(pthread_join(r->loops[i].thread, NULL), 0);
}

struct books {
        int64_t memory;
        unsigned threads, fds;
};

static struct books open_books(void)
{
        return (struct books){ rs_alloc_live(), real_threads(), real_fds() };
}

static void close_books(const struct books *b)
{
        real_threads_left(b->threads);
        ASSERT_EQ(real_fds(), b->fds);
        ASSERT_EQ(rs_alloc_live(), b->memory);
        ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1);
        ASSERT_EQ(errno, ECHILD);
}

static void begin_round(struct stress_round *r, unsigned seed)
{
        struct luck luck = luck_of(seed, 0);

        *r = (struct stress_round){ .seed = seed, .count = 1 + seed % STRESS_LOOPS, .end = roll(&luck, STRESS_ENDS) };
        r->together = roll(&luck, 2);
        r->chosen = roll(&luck, r->count);
        for (unsigned i = 0; i < r->count; i++) {
                struct stress_loop *l = &r->loops[i];
                l->round = r;
                l->index = i;
                l->luck = luck_of(seed, 1 + i);
                ASSERT_OK(resha_portal_new(
                        &(resha_portal_opts){ .limit = 1 + roll(&luck, 4), .queue = 1 + roll(&luck, 8) }, &l->portal));
        }
}

static void play_round(unsigned seed)
{
        static struct stress_round round;
        static char text[64];
        struct books books = open_books();

        snprintf(text, sizeof text, " (RESHA_STRESS=1 RESHA_STRESS_SEED=%u)", seed);
        test_context(text);
        begin_round(&round, seed);
        stress_workers_begin(&round);
        stress_jobs_begin();
        stress_owned_begin();
        stress_channel_begin(&round);
        stress_threads_begin(&round);
        run_loops(&round);
        stress_threads_join(&round);
        stress_workers_end();
        for (unsigned i = 0; i < round.count; i++)
                resha_portal_unref(round.loops[i].portal);
        plant_left_over();
        stress_jobs_check();
        stress_owned_check();
        stress_channel_check();
        stress_threads_check(&round);
        close_books(&books);
        test_context("");
}

static unsigned number(const char *variable, unsigned other)
{
        const char *text = getenv(variable);

        return text ? (unsigned)strtoul(text, NULL, 10) : other;
}

TEST(everything_at_once_ends_once_and_leaves_nothing)
{
        unsigned first = number("RESHA_STRESS_SEED", 1), rounds = number("RESHA_STRESS", 12);

        for (unsigned i = 0; i < rounds; i++)
                play_round(first + i);
        unsigned must = 1U << SEEN_JOB_RAN | 1U << SEEN_CALL_RAN | 1U << SEEN_ITEM_RAN;
        if (rounds >= 100) /* on a busy machine a few rounds may miss some */
                must = ((1U << SEEN_COUNT) - 1) & ~(1U << SEEN_MISSED);
        ASSERT_EQ(atomic_load(&seen) & must, rounds ? must : 0);
}

/* ---- that it can fail ---- */

static int planted_rounds(void *arg)
{
        stress_plant = *(enum stress_plant *)arg;
        for (unsigned seed = 1; seed <= 6; seed++)
                play_round(seed);
        return 0;
}

TEST(planted_bugs_are_found)
{
        if (real_under_tsan())
                test_skip("TSan finds some of them itself, and waits at the end");
        for (enum stress_plant plant = PLANT_NONE + 1; plant < PLANTS; plant++) {
                static struct test_child c;
                test_child(planted_rounds, &plant, &c);
                if (c.status == 0)
                        FAIL("planted bug %d was not found", plant);
        }
}
