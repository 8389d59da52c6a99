/* SPDX-License-Identifier: MIT */
/* Thread jobs of the stress: cancelled in line, in the queue and while they run, interrupted, failing, on pools that
 * are freed meanwhile.
 *
 * The books have an entry for each job that was asked for. Its thread writes that it begins and ends, its task what it
 * was told. Both must be the same: told of a result, the job has run once and to its end; told that it was cancelled or
 * refused, it has not begun and never will. */

#include "stress.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>

enum { JOBS = STRESS_LOOPS * STRESS_CLIENTS * STRESS_OPS * 4 };

enum kind { QUICK, SLOW, FAILS, UNTIL_STOPPED, CALLS, KINDS };

struct entry {
        atomic_uint begun, ended;
        atomic_bool told;
};

static struct entry *entries;
static atomic_uint asked;

struct job {
        struct stress_loop *loop;
        resha_pool *pool;
        struct entry *entry;
        enum kind kind;
        unsigned number, us;
        bool interruptible;
        atomic_bool stop;
};

void stress_jobs_begin(void)
{
        entries = resha_calloc(JOBS, sizeof *entries);
        ASSERT_TRUE(entries != NULL);
        atomic_store(&asked, 0);
}

/* ---- on the thread ---- */

static int call_back(const struct job *j)
{
        unsigned kind = j->number % 3;
        int rc = resha_portal_call(j->loop->portal, stress_called, &kind);

        ASSERT_TRUE(rc == (int)kind + 10 || rc == -EBADMSG || rc == -ECANCELED || rc == RESHA_ESHUT ||
                    rc == RESHA_EFULL);
        return (int)j->number;
}

static int work(struct job *j)
{
        switch (j->kind) {
        case SLOW: usleep(j->us); return (int)j->number;
        case FAILS: return resha_fail(-EBADMSG, "job %u", j->number);
        case UNTIL_STOPPED:
                for (unsigned us = 0; us < 2000 && !atomic_load(&j->stop); us += 50)
                        usleep(50);
                return (int)j->number;
        case CALLS: return call_back(j);
        default: return (int)j->number;
        }
}

static int job(void *arg)
{
        struct job *j = arg;
        struct entry *e = j->entry; /* j is gone when a cancel lies */

        ASSERT_FALSE(atomic_load(&e->told));
        ASSERT_EQ(atomic_fetch_add(&e->begun, 1), 0);
        int rc = work(j);
        ASSERT_EQ(atomic_fetch_add(&e->ended, 1), 0);
        ASSERT_FALSE(atomic_load(&e->told));
        return stress_plant == PLANT_RESULT_SWAPPED && j->number % 64 == 63 && rc > 0 ? rc - 1 : rc;
}

static void interrupt(void *arg)
{
        struct job *j = arg;

        ASSERT_EQ(atomic_load(&j->entry->begun), atomic_load(&j->entry->begun));
        stress_saw(SEEN_JOB_INTERRUPTED);
        atomic_store(&j->stop, true);
}

/* ---- on the loop ---- */

static void tell(const struct job *j, int rc)
{
        bool ran = rc > 0 || rc == -EBADMSG;

        atomic_store(&j->entry->told, true);
        ASSERT_TRUE(ran || rc == -ECANCELED || rc == -EBADF);
        ASSERT_EQ(atomic_load(&j->entry->begun), ran);
        ASSERT_EQ(atomic_load(&j->entry->ended), ran);
        if (rc > 0)
                ASSERT_EQ(rc, j->number);
        if (rc == -EBADMSG) {
                char text[32];
                snprintf(text, sizeof text, "job %u", j->number);
                ASSERT_STR(resha_error_of(rc)->text, text);
        }
        stress_saw(rc > 0 ? SEEN_JOB_RAN : rc == -EBADMSG ? SEEN_JOB_FAILED : SEEN_JOB_CANCELLED);
        if (rc == -EBADF)
                stress_saw(SEEN_POOL_CLOSED);
}

/* A task of its own, or part of a client: what the job needs lies on its stack. */
static int ask(void *arg)
{
        struct job j = *(const struct job *)arg;

        j.number = atomic_fetch_add(&asked, 1) + 1;
        ASSERT_TRUE(j.number <= JOBS);
        j.entry = &entries[j.number - 1];
        int rc = resha_pool_run(j.pool, job, &j, &(resha_job_opts){ .interrupt = j.interruptible ? interrupt : NULL });
        tell(&j, rc);
        return rc == -ECANCELED ? rc : 0;
}

static struct job any_job(struct stress_loop *l, struct luck *luck)
{
        return (struct job){
                .loop = l,
                .kind = roll(luck, KINDS),
                .us = roll(luck, 300),
                .interruptible = roll(luck, 2),
        };
}

int stress_job(struct stress_loop *l, struct luck *luck)
{
        struct job j = any_job(l, luck);

        if (roll(luck, 3))
                return ask(&j);
        int rc = resha_timeout(stress_moment(luck), ask, &j);
        return rc == -ETIME ? 0 : rc;
}

/* Its pool may be closed already, before it begins. */
static int ask_if_open(void *arg)
{
        struct job *j = arg;

        return j->pool ? ask(j) : 0;
}

int stress_own_pool(struct stress_loop *l, struct luck *luck)
{
        struct job j[4];
        resha_task tasks[4] = { 0 };
        resha_pool *pool;
        RESHA_GROUP(g);

        ASSERT_OK(resha_pool_new(&(resha_pool_opts){ .threads = 1 + roll(luck, 2), .queue = 1 }, &pool));
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        for (int i = 0; i < 4; i++) {
                j[i] = any_job(l, luck);
                j[i].pool = pool;
                resha_spawn_task(&g, ask_if_open, &j[i], &tasks[i]);
        }
        int rc = resha_sleep(stress_moment(luck));
        if (roll(luck, 2))
                resha_task_cancel(&tasks[roll(luck, 4)]);
        if (roll(luck, 2))
                rc = resha_sleep(stress_moment(luck));
        for (int i = 0; i < 4; i++)
                j[i].pool = NULL;
        resha_pool_free(pool);
        return resha_group_end(&g, rc);
}

void stress_jobs_check(void)
{
        for (unsigned i = 0; i < atomic_load(&asked); i++) {
                ASSERT_TRUE(atomic_load(&entries[i].told));
                ASSERT_EQ(atomic_load(&entries[i].begun), atomic_load(&entries[i].ended));
        }
        resha_free(entries);
}
