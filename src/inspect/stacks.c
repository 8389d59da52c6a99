/* SPDX-License-Identifier: MIT */
/* Stacks of tasks that somebody looks at, from the loop's own thread or from any other.
 *
 * A parked task is unwound by sys/unwind.c from what rs_switch() has saved. On the loop's thread nothing moves, so it
 * is read in place; elsewhere its innermost part is copied by the kernel first, which does not fault: tables are then
 * applied to the copy, and if the task has gone on meanwhile the worst is a stack that never was. Either way the tables
 * are all that is read beside the stack, and nothing is allocated.
 *
 * How much of a stack was ever used: the pages that were touched, as the kernel counts them. A stack has had other
 * tasks before, so that is an upper bound; in a
 * run that is debugged each task finds it zero (core/marks.c), and the lowest word that is not is exact. */

#include "inspect/stacks.h"

#include "core/marks.h"
#include "sys/observe.h"
#include "sys/unwind.h"

#ifdef RS_HAVE_UNWIND

size_t rs_stacks_parked(const void *sp, const void *top, void *room, const void **ret_addresses, size_t max)
{
        uintptr_t low = (uintptr_t)sp, high = (uintptr_t)top;
        struct rs_registers registers;

        if (low % sizeof(uintptr_t) || high <= low || high - low < RS_PARKED_WORDS * sizeof(uintptr_t))
                return 0;
        if (room && high - low > RS_STACKS_ROOM)
                high = low + RS_STACKS_ROOM;
        const uintptr_t *words = room ? room : sp;
        struct rs_memory m = { .parts = { { low, high, words } }, .n = 1 };
        if (room && !rs_observe_read(room, sp, high - low))
                return 0;
        rs_registers_parked(&registers, low, words);
        return rs_unwind(&registers, &m, (const void *)(uintptr_t)rs_task_entry, ret_addresses, max);
}

#else

size_t rs_stacks_parked(const void *sp, const void *top, void *room, const void **ret_addresses, size_t max)
{
        (void)sp, (void)top, (void)room, (void)ret_addresses, (void)max;
        return 0;
}

#endif

size_t rs_stacks_running(pid_t tid, const struct rs_loop *l, const struct rs_task *t, const void **ret_addresses,
                         size_t max)
{
        const char *native = l->native.bottom;
        const struct rs_stack *at = NULL;
        struct rs_stack k;
        struct rs_observe_stacks stacks = { .end = (const void *)(uintptr_t)rs_task_entry };

        if (native)
                stacks.own = (struct rs_observe_stack){ native, native + l->native.size };
        if (t && rs_observe_read(&at, &t->stack, sizeof at) && at &&
            rs_observe_read(&k, at, sizeof k)) /* a large one may have been unmapped meanwhile */
                stacks.task = (struct rs_observe_stack){ k.base + l->stacks.guard, k.top };
        return rs_observe_stack(tid, &stacks, ret_addresses, max);
}

void rs_stacks_use(const struct rs_stack *k, size_t guard, const void *sp, bool exact, struct rs_stack_use *ret)
{
        const char *bottom = k->base + guard;
        size_t size = (size_t)(k->top - bottom), used = (size_t)(k->top - (const char *)sp);

        *ret = (struct rs_stack_use){ .size = size };
        if (k->size < guard || size > k->size)
                return; /* nonsense: it has gone while it was copied */
        if (sp && used <= size)
                ret->used = used;
        ret->exact = exact;
        if (exact) {
                ret->high = rs_marks_high(bottom, k->top);
                return;
        }
        size_t free_bytes = rs_observe_untouched(bottom, size);
        ret->high = size > free_bytes ? size - free_bytes : 0;
}
