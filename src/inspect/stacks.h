/* SPDX-License-Identifier: MIT */
#ifndef RS_STACKS_H
#define RS_STACKS_H

/* Stacks of tasks for who looks at a loop: return addresses, from any thread; their texts; how much is used. See
 * stacks.c, texts.c. Nothing here faults, whatever the pointers are that are passed as `sp`, `base` and `top`. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/core.h"

enum { RS_STACKS_DEPTH = 64, RS_STACKS_ROOM = 64 * 1024 };

/* Of a task that does not run: sp is its rs_task.sp, top its rs_stack.top. Without a room the stack is read where it
 * lies: on the loop's own thread. room: RS_STACKS_ROOM bytes, 8-aligned, for a copy of its innermost part: on any other
 * thread; if the loop goes on meanwhile, something else may come out. At most max (RS_STACKS_DEPTH is plenty); how
 * many. Allocates nothing; some 10 KiB of the caller's stack. */
size_t rs_stacks_parked(const void *sp, const void *top, void *room, const void **ret_addresses, size_t max);

/* Of what runs on the loop's thread now, from another thread, while the loop cannot go away; the loop's thread has
 * called rs_observe_allow(). t: the loop's current task, or NULL; stack: where its rs_stack lies. 0: it cannot be
 * told. */
size_t rs_stacks_running(pid_t tid, const struct rs_loop *l, const struct rs_task *t, const void **ret_addresses,
                         size_t max);

/* ---- texts ---- */

/* Texts of addresses, each looked up once: of one thread, as long as an answer takes. A look-up reads the program's
 * file: not on a loop's thread, if that can be avoided. */
struct rs_texts;
enum { RS_TEXTS_MAX = 256 };         /* bytes of one, its end counted */
struct rs_texts *rs_texts_new(void); /* NULL: no memory */
void rs_texts_free(struct rs_texts *t);

/* "parse+0x37 (demo.c:88)", as resha_frame_format(); NULL: of no use to a reader. Valid as long as t. */
const char *rs_texts_get(struct rs_texts *t, const void *return_address);

/* What to show of a stack, from the call that waits outwards. Room for n texts. How many. */
size_t rs_texts_stack(struct rs_texts *t, const void *const *addresses, size_t n, const char **ret_texts);

/* ---- how much is used ---- */

struct rs_stack_use {
        size_t size; /* usable bytes */
        size_t used; /* now; 0: it has not started, or runs */
        size_t high; /* at most, so far; 0: that is not known */
        bool exact;  /* high is this task's own, to some hundred bytes; else of all that ran there, in whole pages */
};

/* k: a copy of the task's rs_stack; sp: its rs_task.sp; NULL: it runs. exact: the loop keeps marks (core/marks.h). Any
 * thread. One system call. */
void rs_stacks_use(const struct rs_stack *k, size_t guard, const void *sp, bool exact, struct rs_stack_use *ret);

/* Worth a warning. */
static inline bool rs_stack_nearly_full(const struct rs_stack_use *u)
{
        size_t most = u->high > u->used ? u->high : u->used;

        return most > u->size / 5 * 4;
}

#endif
