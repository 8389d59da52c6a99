/* SPDX-License-Identifier: MIT */
/* Calls that need more stack than a task has.
 *
 * While a task runs, the loop is parked, and all of the thread's own stack below it is free. What runs there must not
 * suspend: the next task would find it occupied. So the task is in a no-suspend region (rs_loop.deep, to which
 * rs_task_attend() looks), without a scope of its own: this is on the way of each record of TLS. */

#include "core/core.h"
#include "sys/sanitize.h"
#include "sys/switch.h"

struct deep {
        struct rs_loop *loop;
        resha_fn *fn;
        void *arg;
};

/* Of the running task, for those who must know the stack that the thread goes to. */
static struct rs_context own_stack(const struct rs_loop *l)
{
        const struct rs_stack *k = l->current->stack;
        const char *bottom = k->base + l->stacks.guard;

        return (struct rs_context){ .bottom = bottom, .size = (size_t)(k->top - bottom), .tsan_fiber = k->tsan_fiber };
}

/* On the thread's stack. */
static int arrive(void *arg)
{
        const struct deep *d = arg;
        struct rs_context back = own_stack(d->loop);
        void *fake = NULL;

        rs_asan_arrive(NULL);
        int rc = d->fn(d->arg);
        rs_asan_leave(&fake, back.bottom, back.size);
        return rc;
}

/* There and back, from the task that runs. */
static inline __attribute__((always_inline)) int go(struct rs_loop *l, resha_fn *fn, void *arg)
{
        struct deep d = { .loop = l, .fn = fn, .arg = arg };
        void *fake = NULL;

        rs_asan_leave(&fake, l->native.bottom, l->native.size);
        RS_TSAN_SWITCH(l->native.tsan_fiber);
        int rc = rs_switch_call(l->sp, arrive, &d);
        RS_TSAN_SWITCH(own_stack(l).tsan_fiber);
        rs_asan_arrive(fake);
        return rc;
}

int rs_deep(struct rs_loop *l, resha_fn *fn, void *arg)
{
        return l->current && !l->deep && l == rs_loop_current ? go(l, fn, arg) : fn(arg);
}

int resha_deep_call(resha_fn *fn, void *arg)
{
        struct rs_loop *l = rs_loop_current;

        if (!l || !l->current || l->deep)
                return fn(arg);
        struct rs_task *t = l->current;
        bool quiet = !t->attention;
        uintptr_t low = t->frame_low;
        l->deep = true;
        t->attention |= RS_NOSUSPEND;
        t->frame_low = UINTPTR_MAX;
        int rc = go(l, fn, arg);
        l->deep = false;
        if (RS_LIKELY(quiet && t->attention == RS_NOSUSPEND)) { /* as before: nothing else asks for attention */
                t->attention = 0;
                t->frame_low = low;
        } else {
                rs_task_attend(t);
        }
        return rc;
}
