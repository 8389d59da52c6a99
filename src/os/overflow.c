/* SPDX-License-Identifier: MIT */
/* The report of a stack overflow: a task that runs into its guard gets SIGSEGV, and this handler says which task it was
 * and where it was spawned, before the former handling takes its course. Off unless asked for, since SIGSEGV may belong
 * to a crash reporter: whatever was installed before is put back, and the fault happens again.
 *
 * The handler runs on a signal stack of the loop's thread. It tells by the address, not by si_code, which differs
 * between the two kinds of guard. Of the process there is one former action; loops that run at the same time share it
 * by a count. */

#include "os/overflow.h"

#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "sys/sys.h"
#include "sys/thread.h"

static struct rs_lock lock = RS_LOCK_INIT;
static unsigned installed; /* by how many loops */
static struct sigaction former;

static size_t add(char *line, size_t at, size_t size, const char *text)
{
        while (*text && at + 1 < size)
                line[at++] = *text++;
        return at;
}

static size_t add_number(char *line, size_t at, size_t size, size_t n)
{
        char digits[24], *p = digits + sizeof digits;

        *--p = 0;
        do
                *--p = (char)('0' + n % 10);
        while (n /= 10);
        return add(line, at, size, p);
}

/* Only what is async-signal-safe. */
static void report(const struct rs_task *t)
{
        char line[512];
        size_t at = 0;

        at = add(line, at, sizeof line, "resha: stack overflow in task \"");
        at = add(line, at, sizeof line, t->name ? t->name : "?");
        at = add(line, at, sizeof line, "\" spawned at ");
        at = add(line, at, sizeof line, t->site ? t->site : "?");
        at = add(line, at, sizeof line, ": more than ");
        at = add_number(line, at, sizeof line, (t->stack->size - RS_STACK_GUARD) / 1024);
        at = add(line, at, sizeof line, " KiB; give it more by the stack option of its spawn or the run\n");
        (void)rs_sys_write(2, line, at);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
        struct rs_loop *l = rs_loop_current;
        const struct rs_task *t = l ? l->current : NULL;

        (void)context;
        if (t && t->stack && (uintptr_t)info->si_addr - (uintptr_t)t->stack->base < l->stacks.guard)
                report(t);
        rs_sys_signal_put(sig, &former); /* the fault happens again, under the former handling */
}

int rs_overflow_install(struct rs_overflow *o)
{
        size_t size = rs_sys_signal_stack_size();

        o->stack = resha_malloc(size);
        if (!o->stack)
                return -ENOMEM;
        int rc = rs_sys_signal_stack(o->stack, size, &o->old_stack);
        if (rc == 0) {
                rs_lock(&lock);
                if (installed == 0)
                        rc = rs_sys_signal_catch_fault(SIGSEGV, on_fault, &former);
                installed += rc == 0;
                rs_unlock(&lock);
        }
        if (rc < 0) {
                resha_free(o->stack);
                o->stack = NULL;
        }
        return rc;
}

void rs_overflow_remove(struct rs_overflow *o)
{
        if (!o->stack)
                return;
        rs_lock(&lock);
        if (--installed == 0)
                rs_sys_signal_put(SIGSEGV, &former);
        rs_unlock(&lock);
        rs_sys_signal_stack_put(&o->old_stack);
        resha_free(o->stack);
        o->stack = NULL;
}

/* Another thread may have held the lock. The signal stack is the parent's copy of the thread, and stays. */
void rs_overflow_forked(void)
{
        lock = (struct rs_lock)RS_LOCK_INIT;
        if (installed)
                rs_sys_signal_put(SIGSEGV, &former);
        installed = 0;
}
