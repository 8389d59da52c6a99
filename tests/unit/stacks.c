/* SPDX-License-Identifier: MIT */
/* Stacks for who looks at a loop: in place and from a copy, texts, and how much is used. */

#include <pthread.h>
#include <resha/alloc.h>
#include <string.h>

#include "core/marks.h"
#include "inspect/stacks.h"
#include "job.h"
#include "sys/observe.h"
#include "sys/unwind.h"

#if defined(__clang__)
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noinline, noclone))
#endif

static volatile int after_call;

static FRAME int inner(resha_event *e)
{
        int rc = resha_event_wait(e);

        after_call++;
        return rc;
}

static FRAME int outer(void *arg)
{
        int rc = inner(arg);

        after_call++;
        return rc;
}

#ifdef RS_HAVE_UNWIND
static const bool can_unwind = true;
#else
static const bool can_unwind = false;
#endif

/* The functions of a stack, "a b c". */
static const char *names_of(const void *const *addresses, size_t n)
{
        static char names[1024];
        const char *texts[RS_STACKS_DEPTH];
        struct rs_texts *t = rs_texts_new();

        ASSERT_TRUE(t != NULL);
        names[0] = 0;
        n = rs_texts_stack(t, addresses, n, texts);
        for (size_t i = 0; i < n; i++) {
                size_t at = strlen(names);
                snprintf(names + at, sizeof names - at, "%s%.*s", i ? " " : "", (int)strcspn(texts[i], "+."), texts[i]);
        }
        rs_texts_free(t);
        return names;
}

/* The task of the handle, which has begun: others may come first. */
static const struct rs_task *begun(const resha_task *t)
{
        const struct rs_task *task = t->_task;

        for (int i = 0; i < 10 && task && !task->stack; i++) {
                ASSERT_OK(resha_yield());
                task = t->_task;
        }
        ASSERT_TRUE(task && task->stack);
        return task;
}

struct parked {
        const void *sp, *top;
        const void *addresses[RS_STACKS_DEPTH];
        size_t n;
};

static void *look_by_copy(void *arg)
{
        struct parked *p = arg;
        void *room = resha_malloc(RS_STACKS_ROOM);

        p->n = rs_stacks_parked(p->sp, p->top, room, p->addresses, RS_STACKS_DEPTH);
        resha_free(room);
        return NULL;
}

static int with_parked(void (*look)(struct parked *p))
{
        resha_event e = { { 0 } };
        resha_task t = { 0 };

        if (!can_unwind)
                test_skip("no unwinder for this processor");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, outer, &e, &t));
        ASSERT_OK(resha_yield());
        const struct rs_task *task = begun(&t);
        look(&(struct parked){ .sp = task->sp, .top = task->stack->top });
        resha_event_set(&e);
        return resha_group_end(&g, 0);
}

static void in_place(struct parked *p)
{
        p->n = rs_stacks_parked(p->sp, p->top, NULL, p->addresses, RS_STACKS_DEPTH);
        ASSERT_STR(names_of(p->addresses, p->n), "resha_event_wait inner outer");
}

TASK(stacks_parked_is_read_where_it_lies)
{
        return with_parked(in_place);
}

static void by_copy(struct parked *p)
{
        pthread_t thread;
        char c;

        if (!rs_observe_read(&c, "x", 1))
                test_skip("the kernel copies no memory here");
        ASSERT_EQ(pthread_create(&thread, NULL, look_by_copy, p), 0);
        pthread_join(thread, NULL);
        ASSERT_STR(names_of(p->addresses, p->n), "resha_event_wait inner outer");
}

TASK(stacks_parked_is_read_by_another_thread_from_a_copy)
{
        return with_parked(by_copy);
}

static void garbage(struct parked *p)
{
        static char room[RS_STACKS_ROOM] __attribute__((aligned(8)));
        const char *sp = p->sp;

        for (ptrdiff_t i = -64; i < 2048; i += 4) {
                p->n = rs_stacks_parked(sp + i, p->top, room, p->addresses, RS_STACKS_DEPTH);
                ASSERT_TRUE(p->n <= RS_STACKS_DEPTH);
        }
        ASSERT_EQ(rs_stacks_parked(NULL, NULL, room, p->addresses, 4), 0);
        ASSERT_EQ(rs_stacks_parked((void *)8, p->top, room, p->addresses, 4), 0);
        ASSERT_EQ(rs_stacks_parked(p->top, p->sp, room, p->addresses, 4), 0);
}

TASK(stacks_garbage_faults_nowhere)
{
        return with_parked(garbage);
}

/* ---- texts ---- */

static void texts_freep(struct rs_texts **t)
{
        rs_texts_free(*t);
}

TEST(stacks_texts_are_looked_up_once)
{
        struct rs_texts *t RESHA_CLEANUP(texts_freep) = rs_texts_new();
        const char *code = (const char *)(uintptr_t)outer;

        ASSERT_TRUE(t != NULL);
        const char *first = rs_texts_get(t, code + 1);
        ASSERT_HAS(first, "outer+0x1 (");
        for (int i = 2; i < 300; i++)
                ASSERT_TRUE(rs_texts_get(t, (const char *)(uintptr_t)i) != NULL);
        ASSERT_PTR(rs_texts_get(t, code + 1), first);
        rs_texts_free(NULL);
}

/* ---- how much is used ---- */

static FRAME int uses(size_t kib, resha_event *e)
{
        char block[1024];

        memset(block, 1, sizeof block);
        __asm__ volatile("" : : "r"(block) : "memory");
        int rc = kib > 1 ? uses(kib - 1, e) : inner(e);
        __asm__ volatile("" : : "r"(block) : "memory");
        return rc;
}

static FRAME int deep_then_shallow(void *arg)
{
        resha_event *e = arg;
        int rc = uses(100, &e[0]);

        return rc < 0 ? rc : uses(1, &e[1]);
}

static struct rs_stack_use use_of(const resha_task *t)
{
        const struct rs_task *task = begun(t);
        struct rs_stack_use u;

        rs_stacks_use(task->stack, rs_loop_current->stacks.guard, task->sp, rs_loop_current->marks != NULL, &u);
        return u;
}

TASK(stacks_use_now_and_at_most)
{
        resha_event e[2] = { 0 };
        resha_task t = { 0 };

        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        ASSERT_OK(resha_spawn_task(&g, deep_then_shallow, e, &t));
        ASSERT_OK(resha_yield());
        struct rs_stack_use u = use_of(&t);
        ASSERT_TRUE(u.used > 100 * 1024 && u.used <= u.high && u.high <= u.size);
        ASSERT_TRUE(u.size > 180 * 1024 && u.size <= RS_STACK_DEFAULT - RS_STACK_GUARD);
        ASSERT_EQ(rs_stack_nearly_full(&u), u.high > u.size / 5 * 4);
        resha_event_set(&e[0]);
        ASSERT_OK(resha_yield());
        struct rs_stack_use then = use_of(&t);
        ASSERT_TRUE(then.used < u.used / 4 && then.high >= u.high);
        resha_event_set(&e[1]);
        return resha_group_end(&g, 0);
}

TEST(stacks_use_of_nonsense_is_none)
{
        struct rs_stack k = { .base = (char *)64, .top = (char *)32, .size = 128 };
        struct rs_stack_use u;

        rs_stacks_use(&k, 64, NULL, false, &u);
        ASSERT_EQ(u.used, 0);
        ASSERT_EQ(u.high, 0);
}

/* ---- exactly, in a run that is debugged ---- */

static int uses_and_ends(void *arg)
{
        resha_event e = { { 0 } };

        resha_event_set(&e);
        return uses(*(const size_t *)arg, &e);
}

static size_t mark_of(const char *name)
{
        const struct rs_stack_marks *m = rs_loop_current->marks;

        for (size_t i = 0; i < m->n; i++)
                if (m->mark[i].name && strcmp(m->mark[i].name, name) == 0)
                        return m->mark[i].high;
        return 0;
}

/* A large one, a small one on the same stack, and one that has it next; the large one's use is not the others'. */
static int debugged(void *arg)
{
        static const size_t large = 120, small = 4;
        (void)arg;
        if (!rs_loop_current->marks)
                test_skip("no marks are kept here");
        for (int i = 0; i < 3; i++) {
                resha_event e = { { 0 } };
                resha_task t = { 0 };
                RESHA_GROUP(g);
                resha_group_begin(&g, NULL);
                resha_spawn_opt(&g, uses_and_ends, &large, &(resha_spawn_opts){ .name = "large" });
                resha_spawn_opt(&g, uses_and_ends, &small, &(resha_spawn_opts){ .name = "small" });
                ASSERT_OK(resha_spawn_task(&g, outer, &e, &t));
                ASSERT_OK(resha_yield());
                ASSERT_OK(resha_yield());
                struct rs_stack_use u = use_of(&t);
                ASSERT_TRUE(u.exact && u.high >= u.used && u.high < u.used + 2048);
                resha_event_set(&e);
                ASSERT_OK(resha_group_end(&g, 0));
        }
        size_t l = mark_of("large"), s = mark_of("small");
        ASSERT_TRUE(l > 120 * 1024 && l < 140 * 1024);
        ASSERT_TRUE(s > 4 * 1024 && s < 8 * 1024);
        ASSERT_TRUE(mark_of("outer") > 0 && mark_of("outer") < 4096);
        return 0;
}

TEST(stacks_marks_of_a_run_that_is_debugged_are_exact)
{
        ASSERT_OK(test_run_opts(debugged, NULL, &(resha_run_opts){ .debug = true }));
}
