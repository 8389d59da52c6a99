/* SPDX-License-Identifier: MIT */
/* How much of its stack a task has used, exactly, for runs that are debugged.
 *
 * A stack is used by one task after another, so the pages that were touched tell what any of them has used. Here each
 * task begins on a stack that is zero: when one has ended, on its stack still, its mark is taken, the pages below are
 * given back to the kernel, and the rest of the page that it stands on is cleared. What a task has used ends at the
 * lowest word that is not zero: with a return address, or with what the function that it called last has stored. So
 * what a run costs that is not debugged is nothing: this hangs on the timing of steps (sched.c), which debugging turns
 * on.
 *
 * Not under sanitizers and Valgrind, which watch what is written below a stack pointer. */

#include "core/marks.h"

#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "sys/observe.h"
#include "sys/sanitize.h"

enum { CHUNK = 512, OWN = 1024 /* bytes for the frames that clear what lies below */ };

#if defined(RS_ASAN) || defined(RS_TSAN)
static const bool works = false;
#else
static const bool works = true;
#endif

void rs_marks_begin(struct rs_loop *l)
{
        char probe;

        if (!works || RUNNING_ON_VALGRIND || !l->opts.debug || !rs_observe_read(&probe, &l->deep, sizeof probe))
                return; /* the last: an emulator, or a filter of system calls */
        l->marks = resha_calloc(1, sizeof *l->marks);
        if (l->marks && !l->step.limit)
                l->step.limit = INT64_MAX; /* steps are looked at, and none takes too long */
}

void rs_marks_end(struct rs_loop *l)
{
        resha_free(l->marks);
        l->marks = NULL;
}

/* From the first page that was touched, to the first word there that is not zero. */
size_t rs_marks_high(const char *bottom, const char *top)
{
        size_t size = (size_t)(top - bottom), at = rs_observe_untouched(bottom, size);
        uintptr_t words[CHUNK / sizeof(uintptr_t)];

        for (; at < size; at += CHUNK) {
                size_t n = size - at < CHUNK ? size - at : CHUNK;
                if (!rs_observe_read(words, bottom + at, n))
                        return 0;
                for (size_t i = 0; i < n / sizeof words[0]; i++)
                        if (words[i])
                                return size - at - i * sizeof words[0];
        }
        return 0;
}

static struct rs_stack_mark *mark_of(struct rs_stack_marks *m, const struct rs_task *t)
{
        const char *name = t->named ? NULL : t->name;

        for (size_t i = 0; i < m->n; i++)
                if (m->mark[i].site == t->site && m->mark[i].name == name)
                        return &m->mark[i];
        if (m->n == RS_MARKS)
                return NULL;
        m->mark[m->n] = (struct rs_stack_mark){ .site = t->site, .name = name };
        return &m->mark[m->n++];
}

/* All below this frame, but for some room for it and what it calls. */
static __attribute__((noinline)) void clear_below(char *bottom)
{
        char *end = (char *)__builtin_frame_address(0) - OWN;
        char *page = rs_observe_drop(bottom, end);

        if (end > page)
                memset(page, 0, (size_t)(end - page));
}

__attribute__((noinline)) void rs_marks_ended(struct rs_loop *l, const struct rs_task *t)
{
        char *bottom = t->stack->base + l->stacks.guard;
        size_t high = rs_marks_high(bottom, t->stack->top);
        struct rs_stack_mark *m = mark_of(l->marks, t);

        if (m) {
                m->tasks++;
                m->high = high > m->high ? high : m->high;
        }
        if (t->stack->class == 0) /* others are unmapped */
                clear_below(bottom);
}
