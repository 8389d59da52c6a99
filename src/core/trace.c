/* SPDX-License-Identifier: MIT */
/* Stacks of tasks, as lists of return addresses.
 *
 * A parked task is read by the unwinder from the stack that asks: rs_switch_visit() says to it that it was called by
 * the context that the switch has saved. Nothing is switched, nothing is written to the task's stack, which may be
 * full, and the switch itself does nothing for it. Sanitizers need not be told.
 *
 * What lies inside of the wait (rs_wait() and below) is left out: the list begins with the call that waits. */

#include "core/trace.h"

#include <unwind.h>

#include <resha/inspect.h>

#include "core/core.h"
#include "sys/switch.h"

enum {
        RS_TRACE_ROOM = 16 * 1024, /* the unwinder takes some 4 KiB */
        RS_TRACE_INSIDE = 8,       /* frames below a wait, at most */
};

struct trace {
        const void **addresses;
        size_t max, depth, beyond;
};

bool rs_trace_inside(uintptr_t function)
{
        const uintptr_t inside[] = {
                (uintptr_t)rs_switch_visit,    (uintptr_t)rs_wait,
                (uintptr_t)rs_circle_check,    (uintptr_t)rs_yield,
                (uintptr_t)rs_operation_wait,  (uintptr_t)rs_budget_yield,
                (uintptr_t)rs_enter_slow,      (uintptr_t)rs_report,
                (uintptr_t)rs_task_stack,      (uintptr_t)resha_task_stack,
                (uintptr_t)resha_report_tasks, (uintptr_t)resha_dump,
        };

        for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
                if (function == inside[i])
                        return true;
        return false;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *c, void *arg)
{
        struct trace *trace = arg;
        uintptr_t address = _Unwind_GetIP(c), start = _Unwind_GetRegionStart(c);

        if (!address || start == (uintptr_t)rs_task_entry)
                return _URC_END_OF_STACK;
        if (rs_trace_inside(start))
                trace->depth = trace->beyond = 0;
        else if (trace->depth < trace->max)
                trace->addresses[trace->depth++] = (const void *)address;
        else if (++trace->beyond > RS_TRACE_INSIDE)
                return _URC_END_OF_STACK;
        return _URC_NO_REASON;
}

static size_t unwind(void *arg)
{
        struct trace *trace = arg;

        _Unwind_Backtrace(frame, trace);
        return trace->depth;
}

size_t rs_task_stack(struct rs_loop *l, const struct rs_task *t, const void **ret_addresses, size_t max)
{
        struct trace trace = { .addresses = ret_addresses, .max = max };

        if (!t->sp)
                return 0;
        if (t != l->current && t != l->reporter)
                return rs_switch_visit(t->sp, unwind, &trace);
        const char *low = t->stack->base + l->stacks.guard;
        if (!l->deep && (const char *)__builtin_frame_address(0) - low < RS_TRACE_ROOM)
                return 0;
        return unwind(&trace);
}
