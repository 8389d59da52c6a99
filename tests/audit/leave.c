/* SPDX-License-Identifier: MIT */
/* Ending a task in the middle of its function, as pthread_exit() ends a thread: its stack is unwound by force, and the
 * clean-ups of each frame run on the way, those of groups and scopes among them, so that children are cancelled and
 * joined. All that the test consists of, the library included, is compiled with -fexceptions for that.
 *
 * It is done at assertions and at checkpoints only, where no frame of the library is in the middle of something. */

#include "books.h"

#include <setjmp.h>
#include <string.h>
#include <unwind.h>

enum { LEAVES = 4096 };

/* Where a leave ends: the frame below which all are unwound. On the stack that is unwound. */
struct base {
        jmp_buf env;
        uintptr_t frame;
        struct base *outer;
};

/* One that is under way; clean-ups may wait, so there may be many. */
struct leave {
        struct _Unwind_Exception exception;
        struct base *base;
        bool used;
};

static struct base *outside; /* of the test itself */

/* ---- where each task's base is ---- */

struct task {
        const struct rs_task *task;
        resha_fn *fn;
        struct base *base;
};

enum { TASKS = 1 << 18 };
static struct task *tasks; /* by address */
static struct leave *leaves;

static struct task *slot_of(const struct rs_task *t)
{
        uint64_t h = (uint64_t)(uintptr_t)t * UINT64_C(0x9e3779b97f4a7c15) >> 40;

        for (;; h++) {
                struct task *s = &tasks[h % TASKS];
                if (s->task == t)
                        return s;
                if (!s->task) {
                        s->task = t;
                        return s;
                }
        }
}

void leave_setup(void *(*take)(size_t size))
{
        tasks = take(TASKS * sizeof *tasks);
        leaves = take(LEAVES * sizeof *leaves);
}

/* ---- leaving ---- */

static void release(struct leave *l)
{
        l->used = false;
}

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *e, struct _Unwind_Context *context, void *arg)
{
        struct leave *l = arg;

        (void)version, (void)class, (void)e;
        if (!(actions & _UA_END_OF_STACK) && _Unwind_GetCFA(context) <= l->base->frame)
                return _URC_NO_REASON;
        struct base *base = l->base;
        release(l);
        _longjmp(base->env, 1);
}

static __attribute__((noinline)) bool enter(struct base *b, resha_fn *fn, void *arg, int *ret_rc)
{
        b->frame = (uintptr_t)__builtin_frame_address(0);
        if (_setjmp(b->env))
                return true;
        *ret_rc = fn(arg);
        return false;
}

bool audit_enter(resha_fn *fn, void *arg, int *ret_rc)
{
        struct base b = { .outer = outside };

        outside = &b;
        bool left = enter(&b, fn, arg, ret_rc);
        outside = b.outer;
        return left;
}

/* Every task's function: the real one, above a base. */
static int above_base(void *arg)
{
        struct task *s = slot_of(rs_loop_current->current);
        struct base b = { .outer = NULL };
        int rc = 0;

        s->base = &b;
        if (enter(&b, s->fn, arg, &rc))
                rc = resha_cancelled() ? -ECANCELED : -EBADE; /* no code of a test */
        s->base = NULL;
        return rc;
}

/* A task was made. */
static void new_task(struct rs_loop *l, struct rs_task *t)
{
        struct task *s = slot_of(t);

        (void)l;
        s->fn = t->fn;
        s->base = NULL;
        t->fn = above_base;
        audit->begun++;
}

int leave_main(struct rs_loop *l, resha_fn *fn, void *arg)
{
        struct task *s = slot_of(l->current);

        audit->begun++;
        l->watch_new = new_task;
        s->fn = fn;
        return above_base(arg);
}

void audit_leave(void)
{
        struct rs_loop *l = rs_loop_current;
        struct base *base = l && l->current ? slot_of(l->current)->base : outside;
        struct leave *leave = NULL;

        if (l && !l->current)
                audit_wrong("an assertion does not hold in a callback on the loop");
        for (size_t i = 0; i < LEAVES && !leave; i++)
                if (!leaves[i].used)
                        leave = &leaves[i];
        if (!base || !leave)
                audit_wrong("%s", base ? "too many tasks are being ended" : "no task to end");
        audit->abandoned++;
        if (l && l->current)
                books_release(l->current);
        *leave = (struct leave){ .base = base, .used = true };
        _Unwind_ForcedUnwind(&leave->exception, stop, leave);
        audit_wrong("the stack cannot be unwound");
}
