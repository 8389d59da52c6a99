/* SPDX-License-Identifier: MIT */
/* Worker processes of the stress: maps of several tasks and loops over the same workers, of which some crash and others
 * are killed from outside, cancelled at random moments.
 *
 * The books are in memory that all processes share: how often each item was begun. No item begins twice. One that
 * succeeded was begun once, and its bytes are what was asked for; one that failed is as it was, and its record says
 * what became of its worker; and those whose worker did not die are not hurt by those whose did. */

#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "sanitized.h"

enum { ITEMS = 12, MAPS = STRESS_LOOPS * STRESS_CLIENTS * STRESS_OPS, PIDS = 8 };

enum fate { WELL, FAILS, IS_KILLED, SEGFAULTS, EXITS, HANGS, EATS, FATES };

enum { LIMIT = 32 << 20 };

struct item {
        unsigned number; /* in the books */
        enum fate fate;
        unsigned us, answer;
        char rest[32];
};

struct books {
        atomic_uint begun[MAPS * ITEMS];
        atomic_int pids[PIDS]; /* workers that have run something */
};

static struct books *books;
static atomic_uint taken;
static atomic_bool shots; /* workers are killed from outside: any item may die */
static bool limited;      /* in time and memory: any item may take too long on a busy machine */
static resha_workers *workers;

void stress_workers_begin(const struct stress_round *r)
{
        books = mmap(NULL, sizeof *books, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_TRUE(books != MAP_FAILED);
        atomic_store(&taken, 0);
        atomic_store(&shots, r->seed % 3 == 0);
        limited = r->seed % 4 == 1 && !TEST_ASAN && !TEST_TSAN; /* sanitizers have memory of their own */
        resha_workers_opts o = { .processes = 1 + r->seed % 3 };
        if (limited) {
                o.time = RESHA_MS(20);
                o.memory = LIMIT;
        }
        ASSERT_OK(resha_workers_start(&o, &workers));
}

/* ---- in a worker ---- */

static void dies(enum fate fate)
{
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would exit */
        if (fate == IS_KILLED)
                raise(SIGKILL);
        if (fate == SEGFAULTS)
                raise(SIGSEGV);
        if (fate == EXITS)
                _exit(3);
        if (fate == HANGS)
                pause();
}

static int work(void *arg)
{
        struct item *i = arg;

        if (stress_plant != PLANT_ITEM_LOST)
                atomic_fetch_add(&books->begun[i->number], 1);
        atomic_store(&books->pids[getpid() % PIDS], getpid());
        i->answer = ~i->number;
        usleep(i->us);
        dies(i->fate);
        if (i->fate == EATS) {
                void *p = resha_malloc(2 * LIMIT);
                resha_free(p);
                return p ? (int)i->number + 1 : resha_fail(-ENOMEM, "item %u", i->number);
        }
        return i->fate == FAILS ? resha_fail(-EBADMSG, "item %u", i->number) : (int)i->number + 1;
}

/* ---- on the loop ---- */

struct map {
        struct item items[ITEMS];
        int status[ITEMS];
        resha_error errors[ITEMS];
        size_t n, failed;
        bool keep_going;
        unsigned limit;
        bool returned;
};

static bool died(const struct map *m, size_t i)
{
        static const char *const texts[FATES] = { "", "", "signal 9 ", "signal 11 ", "exit status 3", "none", "none" };
        enum fate fate = m->items[i].fate;

        if (m->status[i] != RESHA_EPROCESS)
                return false;
        if (!atomic_load(&shots)) {
                ASSERT_TRUE(fate >= IS_KILLED);
                ASSERT_HAS(m->errors[i].text, texts[fate]);
        }
        stress_saw(SEEN_ITEM_DIED);
        return true;
}

static void check_item(const struct map *m, size_t i, bool whole)
{
        const struct item *it = &m->items[i];
        unsigned begun = atomic_load(&books->begun[it->number]);
        int status = m->status[i];
        char text[32];

        ASSERT_TRUE(begun <= 1);
        if (status >= 0) {
                ASSERT_EQ(it->fate, WELL);
                ASSERT_EQ(status, it->number + 1);
                ASSERT_EQ(it->answer, ~it->number);
                ASSERT_EQ(begun, 1);
                stress_saw(SEEN_ITEM_RAN);
                return;
        }
        ASSERT_EQ(it->answer, 0);
        if (status == -EBADMSG) {
                snprintf(text, sizeof text, "item %u", it->number);
                ASSERT_STR(m->errors[i].text, text);
                ASSERT_EQ(it->fate, FAILS);
        } else if (status == -ENOMEM) {
                ASSERT_EQ(it->fate, EATS);
        } else if (status == -ETIMEDOUT) {
                ASSERT_TRUE(limited);
                ASSERT_HAS(m->errors[i].text, "longer than 0.020 s");
                stress_saw(SEEN_ITEM_LATE);
        } else if (!died(m, i)) {
                ASSERT_EQ(status, -ECANCELED);
                ASSERT_FALSE(whole);
                stress_saw(SEEN_ITEM_CANCELLED);
        }
        /* shot three times before it had begun, an item is taken for what the workers die of */
        ASSERT_TRUE(status == -ECANCELED || status == -ETIMEDOUT || begun == 1 ||
                    (status == RESHA_EPROCESS && atomic_load(&shots)));
}

static int map(void *arg)
{
        struct map *m = arg;
        int rc = resha_workers_map(workers, work, m->items, m->n, sizeof m->items[0],
                                   &(resha_gather_opts){ .limit = m->limit,
                                                         .keep_going = m->keep_going,
                                                         .ret_status = m->status,
                                                         .ret_errors = m->errors,
                                                         .ret_failed = &m->failed });
        size_t failed = 0;

        for (size_t i = 0; i < m->n; i++) {
                check_item(m, i, m->keep_going && rc == 0);
                failed += m->status[i] < 0;
        }
        ASSERT_EQ(m->failed, failed);
        ASSERT_TRUE(rc == 0 || rc == -ECANCELED ||
                    (!m->keep_going && (rc == -EBADMSG || rc == RESHA_EPROCESS || rc == -ETIMEDOUT || rc == -ENOMEM)));
        m->returned = true;
        return rc == -ECANCELED ? rc : 0;
}

/* One of them, whatever it does just now, if it is still there: workers are in groups of their own. */
static void shoot(struct luck *luck)
{
        int pid = 0;

        for (unsigned i = roll(luck, PIDS), tries = 0; tries < PIDS && pid == 0; tries++)
                pid = atomic_load(&books->pids[(i + tries) % PIDS]);

        if (atomic_load(&shots) && pid > 0 && getpgid(pid) == pid && getpgrp() != pid)
                stress_saw(kill(pid, SIGKILL) == 0 ? SEEN_SHOT : SEEN_MISSED);
}

int stress_workers_map(struct stress_loop *l, struct luck *luck)
{
        struct map m = { .n = 1 + roll(luck, ITEMS), .keep_going = roll(luck, 2), .limit = roll(luck, 3) };
        unsigned first = atomic_fetch_add(&taken, ITEMS);

        (void)l;
        ASSERT_TRUE(first + ITEMS <= MAPS * ITEMS);
        for (unsigned i = 0; i < m.n; i++)
                m.items[i] = (struct item){
                        .number = first + i,
                        .fate = roll(luck, 6) ? WELL : roll(luck, limited ? FATES : HANGS),
                        .us = roll(luck, 4) ? 0 : roll(luck, 300),
                };
        shoot(luck);
        int rc = roll(luck, 3) ? map(&m) : resha_timeout(stress_moment(luck), map, &m);
        ASSERT_TRUE(m.returned || rc < 0);
        return rc == -ETIME ? 0 : rc;
}

void stress_workers_end(void)
{
        resha_workers_stop(workers);
        for (unsigned i = 0; i < atomic_load(&taken); i++)
                ASSERT_TRUE(atomic_load(&books->begun[i]) <= 1);
        ASSERT_EQ(munmap(books, sizeof *books), 0);
}
