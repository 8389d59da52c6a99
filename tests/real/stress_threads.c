/* SPDX-License-Identifier: MIT */
/* Threads of the stress that have no loop. Each has a reference to every loop, and posts to one or the other, calls
 * through its portal, starts calls and cancels them, until the loops have ended or it has done enough. One more thread
 * cancels a loop at a random moment, in the rounds that end so.
 *
 * The books: of what a thread has posted to a loop with success, all has run there, in order and before the end. A call
 * has one result: that of its task, which ran to its end, or why it never began. */

#include "stress.h"

#include <errno.h>
#include <unistd.h>

enum { OPS = 150 };

struct thread {
        struct stress_round *round;
        struct luck luck;
        unsigned index;
        unsigned posted[STRESS_LOOPS]; /* with success */
        bool ended[STRESS_LOOPS];      /* it said so */
        resha_portal_handle handle;    /* others cancel it, too */
        pthread_t id;
};

static struct thread threads[STRESS_THREADS];
static pthread_t killer;
static atomic_uint calls_begun, calls_over;

/* ---- what is called ---- */

int stress_called(void *arg)
{
        unsigned kind = *(const unsigned *)arg;
        resha_event never = { { 0 } };
        int rc = 0;

        atomic_fetch_add(&calls_begun, 1);
        if (kind == 1)
                rc = resha_sleep(RESHA_US(50));
        else if (kind == 2)
                rc = resha_yield() < 0 ? -ECANCELED : resha_fail(-EBADMSG, "called with 2");
        else if (kind == 3)
                rc = resha_event_wait(&never);
        atomic_fetch_add(&calls_over, 1);
        return rc < 0 ? rc : (int)kind + 10;
}

static void told(unsigned kind, int rc)
{
        switch (rc) {
        case -EBADMSG:
                ASSERT_EQ(kind, 2);
                ASSERT_STR(resha_error_of(rc)->text, "called with 2");
                break;
        case -ECANCELED: stress_saw(SEEN_CALL_CANCELLED); return;
        case RESHA_ESHUT:
        case RESHA_EFULL: stress_saw(SEEN_CALL_REFUSED); return;
        default: ASSERT_EQ(rc, kind + 10);
        }
        stress_saw(SEEN_CALL_RAN);
}

static void start_and_wait(struct thread *t, resha_portal *p)
{
        unsigned kind = roll(&t->luck, 4);
        int result, rc = resha_portal_start(p, &t->handle, stress_called, &kind);

        if (rc < 0) {
                told(kind, rc);
                return;
        }
        if (roll(&t->luck, 2))
                usleep(roll(&t->luck, 100));
        if (kind == 3 || roll(&t->luck, 4) == 0)
                resha_portal_cancel(&t->handle);
        while ((rc = resha_portal_wait(&t->handle, RESHA_US(roll(&t->luck, 300)), &result)) == -ETIME) {}
        ASSERT_OK(rc);
        told(kind, result);
}

/* ---- posts ---- */

/* Of one thread they come in order. The argument is all they need: loop, thread and number. */
static struct stress_round *current_round;

static void posted(void *arg)
{
        uintptr_t word = (uintptr_t)arg;
        struct stress_loop *l = &current_round->loops[word & 3];
        unsigned *count = &l->posts[word >> 2 & 7];

        ASSERT_FALSE(resha_in_task());
        ASSERT_EQ(*count, word >> 5);
        ++*count;
}

static void post(struct thread *t, unsigned loop)
{
        uintptr_t word = loop | t->index << 2 | (uintptr_t)t->posted[loop] << 5;
        int rc = resha_loop_post(t->round->loops[loop].refs[t->index], posted, (void *)word);

        if (rc == 0) {
                ASSERT_FALSE(t->ended[loop]);
                t->posted[loop]++;
                return;
        }
        ASSERT_EQ(rc, RESHA_ESHUT);
        stress_saw(SEEN_POST_REFUSED);
        t->ended[loop] = true;
}

/* ---- threads ---- */

static void until_all_have_begun(struct stress_round *r)
{
        while (atomic_load(&r->begun) < r->count)
                usleep(100);
}

static bool some_run(const struct thread *t)
{
        for (unsigned i = 0; i < t->round->count; i++)
                if (!t->ended[i])
                        return true;
        return false;
}

static void *thread(void *arg)
{
        struct thread *t = arg;
        struct stress_round *r = t->round;

        until_all_have_begun(r);
        for (unsigned i = 0; i < OPS && some_run(t); i++) {
                unsigned loop = roll(&t->luck, r->count);
                unsigned kind = roll(&t->luck, 3);
                switch (roll(&t->luck, 8)) {
                case 0: told(kind, resha_portal_call(r->loops[loop].portal, stress_called, &kind)); break;
                case 1: start_and_wait(t, r->loops[loop].portal); break;
                case 2: usleep(roll(&t->luck, 200)); break;
                case 3: resha_portal_cancel(&threads[roll(&t->luck, STRESS_THREADS)].handle); break;
                case 4: stress_channel_thread(&t->luck); break;
                default: post(t, loop);
                }
        }
        for (unsigned i = 0; i < r->count; i++)
                resha_loop_unref(r->loops[i].refs[t->index]);
        return NULL;
}

static void *kills(void *arg)
{
        struct stress_round *r = arg;
        struct luck luck = luck_of(r->seed, 99);

        until_all_have_begun(r);
        if (r->end == STRESS_CANCELLED) {
                usleep(roll(&luck, 20000));
                for (unsigned i = 0; i < r->count; i++)
                        resha_loop_cancel(r->loops[i].killers);
        }
        for (unsigned i = 0; i < r->count; i++)
                resha_loop_unref(r->loops[i].killers);
        return NULL;
}

void stress_threads_begin(struct stress_round *r)
{
        current_round = r;
        for (unsigned i = 0; i < STRESS_THREADS; i++) {
                threads[i] = (struct thread){ .round = r, .index = i, .luck = luck_of(r->seed, 100 + i) };
                ASSERT_EQ(pthread_create(&threads[i].id, NULL, thread, &threads[i]), 0);
        }
        ASSERT_EQ(pthread_create(&killer, NULL, kills, r), 0);
}

void stress_threads_join(struct stress_round *r)
{
        for (unsigned i = 0; i < r->count; i++)
                resha_portal_shutdown(r->loops[i].portal); /* whoever of them did not come to serve it */
        for (unsigned i = 0; i < STRESS_THREADS; i++)
                ASSERT_EQ(pthread_join(threads[i].id, NULL), 0);
        ASSERT_EQ(pthread_join(killer, NULL), 0);
}

void stress_threads_check(struct stress_round *r)
{
        for (unsigned i = 0; i < r->count; i++)
                for (unsigned k = 0; k < STRESS_THREADS; k++)
                        ASSERT_EQ(r->loops[i].posts[k], threads[k].posted[i]);
        ASSERT_EQ(atomic_load(&calls_begun), atomic_load(&calls_over));
}
