/* SPDX-License-Identifier: MIT */
/* More thread jobs of the stress: those that own their argument and are abandoned when they are cancelled, signalled or
 * not, and maps over threads.
 *
 * The books: who is told of a result has the argument back, of a job that ran once; who is told of a cancel has not,
 * and it is dropped once, after the job has ended, if it ever began. Of a map each item is run at most once, and its
 * status says so. */

#include "stress.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <resha/alloc.h>

enum { OWNED = STRESS_LOOPS * STRESS_CLIENTS * STRESS_OPS, ITEMS = 40 };

/* ---- jobs that may be abandoned ---- */

struct entry {
        atomic_uint begun, ended, dropped;
        atomic_int told; /* 0: not yet */
};

struct owned {
        struct entry *entry;
        unsigned number, kind;
};

static struct entry *entries;
static atomic_uint asked;

void stress_owned_begin(void)
{
        entries = resha_calloc(OWNED, sizeof *entries);
        ASSERT_TRUE(entries != NULL);
        atomic_store(&asked, 0);
}

/* Sleeps for long, but for the signal. */
static void sleep_until_signalled(void)
{
        while (!resha_job_stopped() && nanosleep(&(struct timespec){ .tv_nsec = 4000000 }, NULL) == 0)
                if (!resha_job_stopped())
                        return;
        stress_saw(SEEN_JOB_SIGNALLED);
}

static int job(void *arg)
{
        struct owned *o = arg;

        ASSERT_EQ(atomic_fetch_add(&o->entry->begun, 1), 0);
        if (o->kind == 1)
                sleep_until_signalled();
        else if (o->kind == 2)
                for (int i = 0; i < 40 && !resha_job_stopped(); i++)
                        usleep(50);
        ASSERT_EQ(atomic_load(&o->entry->dropped), 0); /* it is still ours */
        ASSERT_EQ(atomic_fetch_add(&o->entry->ended, 1), 0);
        return (int)o->number;
}

static void drop(void *arg)
{
        struct owned *o = arg;
        struct entry *e = o->entry;

        ASSERT_EQ(atomic_load(&e->begun), atomic_load(&e->ended));
        stress_saw(atomic_load(&e->begun) ? SEEN_DROP_LATE : SEEN_DROP_EARLY);
        if (stress_plant == PLANT_DROP_LOST && o->number % 4 == 0)
                return;
        atomic_fetch_add(&e->dropped, 1);
        resha_free(o);
}

static int ask(void *arg)
{
        struct owned *o = arg;
        struct entry *e = o->entry;
        unsigned number = o->number;
        int rc = resha_pool_run(NULL, job, o, &(resha_job_opts){ .drop = drop, .signal = number % 2 });

        ASSERT_TRUE(rc == (int)number || rc == -ECANCELED);
        atomic_store(&e->told, rc);
        if (rc == -ECANCELED)
                return rc;
        resha_free(o);
        return 0;
}

int stress_owned(__attribute__((unused)) struct stress_loop *l, struct luck *luck)
{
        struct owned *o = resha_malloc(sizeof *o);
        unsigned number = atomic_fetch_add(&asked, 1) + 1;

        ASSERT_TRUE(o && number <= OWNED);
        *o = (struct owned){ .entry = &entries[number - 1], .number = number, .kind = roll(luck, 3) };
        /* a timeout over it: its task may be cancelled before it asks, so not with the argument on its way */
        struct entry *e = o->entry;
        int rc = roll(luck, 3) ? resha_timeout(stress_moment(luck), ask, o) : ask(o);
        ASSERT_TRUE(atomic_load(&e->told) != 0);
        return rc == -ETIME ? 0 : rc;
}

void stress_owned_check(void)
{
        for (unsigned i = 0; i < atomic_load(&asked); i++) {
                struct entry *e = &entries[i];
                int told = atomic_load(&e->told);
                ASSERT_EQ(atomic_load(&e->dropped), told == -ECANCELED);
                ASSERT_EQ(atomic_load(&e->begun), atomic_load(&e->ended));
                ASSERT_TRUE(told == -ECANCELED || (told == (int)i + 1 && atomic_load(&e->ended) == 1));
        }
        resha_free(entries);
}

/* ---- maps ---- */

struct item {
        unsigned number, us;
        bool fails;
        atomic_uint ran;
};

struct map {
        struct item items[ITEMS];
        int status[ITEMS];
        size_t n, failed;
        bool keep_going;
        unsigned limit;
        atomic_uint running;
};

static int run_item(void *arg)
{
        struct item *i = arg;

        if (stress_plant != PLANT_MAP_SKIPS || i->number % 16 != 15)
                atomic_fetch_add(&i->ran, 1);
        if (i->us)
                usleep(i->us);
        return i->fails ? resha_fail(-EBADMSG, "item %u", i->number) : (int)i->number;
}

static int map(void *arg)
{
        struct map *m = arg;
        size_t failed = 0;
        int rc = resha_pool_map(NULL, run_item, m->items, m->n, sizeof m->items[0],
                                &(resha_gather_opts){ .limit = m->limit,
                                                      .keep_going = m->keep_going,
                                                      .ret_status = m->status,
                                                      .ret_failed = &m->failed });

        for (size_t i = 0; i < m->n; i++) {
                struct item *it = &m->items[i];
                ASSERT_EQ(atomic_load(&it->ran), m->status[i] != -ECANCELED);
                if (m->status[i] != -ECANCELED)
                        ASSERT_EQ(m->status[i], it->fails ? -EBADMSG : (int)it->number);
                else
                        ASSERT_TRUE(rc < 0);
                failed += m->status[i] < 0;
                stress_saw(m->status[i] == -ECANCELED ? SEEN_MAP_CANCELLED : SEEN_MAP_RAN);
        }
        ASSERT_EQ(m->failed, failed);
        ASSERT_TRUE(rc == 0 || rc == -ECANCELED || (rc == -EBADMSG && !m->keep_going));
        return rc == -ECANCELED ? rc : 0;
}

int stress_pool_map(__attribute__((unused)) struct stress_loop *l, struct luck *luck)
{
        struct map m = { .n = 1 + roll(luck, ITEMS), .keep_going = roll(luck, 2), .limit = roll(luck, 3) };

        for (unsigned i = 0; i < m.n; i++) {
                m.items[i].number = i;
                m.items[i].us = roll(luck, 4) ? 0 : roll(luck, 200);
                m.items[i].fails = roll(luck, 24) == 0;
        }
        int rc = roll(luck, 3) ? map(&m) : resha_timeout(stress_moment(luck), map, &m);
        return rc == -ETIME ? 0 : rc;
}
