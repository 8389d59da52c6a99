/* SPDX-License-Identifier: MIT */
#ifndef RS_STACK_H
#define RS_STACK_H

/* Stacks of tasks: slices of large mappings, each with a guard below; see stack.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lies at the top of its slice, in the page that the first frames touch anyway. */
struct rs_stack {
        struct rs_stack *next; /* hot list */
        char *base;            /* lowest address of the slice, guard included */
        char *top;             /* where the first frame begins; 16-aligned, coloured */
        size_t size;           /* of the slice */
        void *tsan_fiber;
        void *asan_fake;
        unsigned valgrind_id;
        uint32_t class; /* 0: default size; 1: mapping of its own */
};

struct rs_arena {
        struct rs_arena *next;
        char *base;
        size_t size;  /* bytes */
        size_t fresh; /* offset of the first slice that was never used */
};

struct rs_stacks {
        struct rs_stack *hot;             /* used before, last in first out */
        struct rs_stack *doomed;          /* own mappings to unmap once nobody runs on them */
        struct rs_arena *arenas, *newest; /* in order of their making */
        struct rs_arena *open;            /* the oldest with fresh slices; NULL: none */
        size_t hot_count, fresh_count;
        size_t credit;       /* promised to tasks that have not run yet */
        size_t slice, guard; /* bytes */
        size_t made;         /* slices bound ever: the colour */
        bool light_guards;   /* MADV_GUARD_INSTALL works */
};

enum { RS_STACK_GUARD = 64 * 1024, RS_STACK_MIN = 128 * 1024, RS_STACK_DEFAULT = 256 * 1024 };

static inline bool rs_stack_size_valid(size_t bytes)
{
        return bytes >= RS_STACK_MIN && bytes <= (size_t)1 << 32;
}

int rs_stacks_init(struct rs_stacks *s, size_t slice);
void rs_stacks_done(struct rs_stacks *s, bool leak);

int rs_stacks_grow(struct rs_stacks *s);
struct rs_stack *rs_stack_bind_fresh(struct rs_stacks *s);

/* Promises one stack: 0, -EAGAIN (a limit of the system), -ENOMEM. */
static inline int rs_stack_reserve(struct rs_stacks *s)
{
        int rc = __builtin_expect(s->credit >= s->hot_count + s->fresh_count, 0) ? rs_stacks_grow(s) : 0;

        s->credit += rc == 0;
        return rc;
}
static inline void rs_stack_unreserve(struct rs_stacks *s)
{
        s->credit--;
}
/* Redeems a promise: the hottest stack. NULL only if the kernel refuses a guard. */
static inline struct rs_stack *rs_stack_take(struct rs_stacks *s)
{
        struct rs_stack *k = s->hot;

        s->credit--;
        if (__builtin_expect(!k, 0))
                return rs_stack_bind_fresh(s);
        s->hot = k->next;
        s->hot_count--;
        return k;
}
/* Back on the hot list; may still be running on it until the next switch. */
static inline void rs_stack_give(struct rs_stacks *s, struct rs_stack *k)
{
        struct rs_stack **list = k->class ? &s->doomed : &s->hot;

        k->next = *list;
        *list = k;
        s->hot_count += k->class == 0;
}

/* A mapping of its own for a task with a size of its own. */
int rs_stack_map(struct rs_stacks *s, size_t size, struct rs_stack **ret_stack);
void rs_stacks_bury(struct rs_stacks *s); /* unmaps doomed ones */

#endif
