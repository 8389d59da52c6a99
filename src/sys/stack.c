/* SPDX-License-Identifier: MIT */
/* Stacks of tasks.
 *
 * Address space comes in arenas, mappings of many slices; a slice is one stack, its lowest 64 KiB a guard. 64 and not 4
 * KiB, because code that was built without stack probes jumps over a small guard with one large local and lands in the
 * neighbour. The guard is a marker in the page table where the kernel can do it (MADV_GUARD_INSTALL, Linux 6.13): no
 * mapping is split, so a million stacks work. Elsewhere mprotect() costs two mappings a stack and vm.max_map_count is
 * the limit.
 *
 * Invariants
 *  1. credit <= hot_count + fresh_count: a promise can always be kept. A promise is made at spawn, so that a spawn
 *  fails
 *     and not the start of a task; it is redeemed at the first run, by the stack that was used last: a batch of tasks
 *     that never wait shares one.
 *  2. With mprotect, guards are set when the promise is made: that is what can fail. Light guards are set at first use.
 *  3. A stack in the hot list has its guard. Its header lies in its top page, which stays resident.
 *  4. Tops are coloured within the first half page: equal tops would share the same cache sets, and an offset over more
 *     than half a page would cost a second page for small tasks. */

#include "sys/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"
#include "sys/sanitize.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

enum {
        ARENA_SLICES_FIRST = 16,
        ARENA_SLICES_MAX = 1024,
        COLOURS = 32,
        COLOUR_STEP = 64,
};

static bool light_guards_work(void)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        if (p == MAP_FAILED)
                return false;
        /* Emulators say yes to any advice: the kernel must refuse to write there. */
        bool ok = madvise(p, page, MADV_GUARD_INSTALL) == 0 && getrandom(p, 1, GRND_NONBLOCK) < 0 && errno == EFAULT;
        munmap(p, page);
        return ok;
}

static int guard_install(const struct rs_stacks *s, char *base)
{
        int rc = s->light_guards ? madvise(base, s->guard, MADV_GUARD_INSTALL) : mprotect(base, s->guard, PROT_NONE);

        return rc < 0 ? -errno : 0;
}

/* A mapping that takes part in no accounting and no huge pages: one touched page must cost one page. */
static char *map_stacks(size_t size)
{
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1,
                       0);

        if (p == MAP_FAILED)
                return NULL;
        (void)madvise(p, size, MADV_NOHUGEPAGE); /* a hint: EINVAL where the kernel has none */
        return p;
}

int rs_stacks_init(struct rs_stacks *s, size_t slice)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);

        *s = (struct rs_stacks){ .slice = slice ? slice : RS_STACK_DEFAULT, .guard = RS_STACK_GUARD };
        if (!rs_stack_size_valid(s->slice))
                return -EINVAL;
        s->slice = (s->slice + page - 1) & ~(page - 1);
        s->light_guards = light_guards_work();
        const char *forced = getenv("RESHA_GUARDS");
        if (forced && strcmp(forced, "mprotect") == 0)
                s->light_guards = false;
        return 0;
}

/* An arena that cannot be had in full is asked for smaller, so that the last stacks before a limit are found. */
static int arena_add(struct rs_stacks *s)
{
        size_t slices = s->newest ? s->newest->size / s->slice * 2 : ARENA_SLICES_FIRST;
        struct rs_arena *a = resha_calloc(1, sizeof *a);

        if (!a)
                return -ENOMEM;
        if (slices > ARENA_SLICES_MAX)
                slices = ARENA_SLICES_MAX;
        for (; slices; slices /= 2) {
                a->size = slices * s->slice;
                a->base = map_stacks(a->size);
                if (a->base)
                        break;
        }
        if (!slices) {
                resha_free(a);
                return -EAGAIN;
        }
        *(s->newest ? &s->newest->next : &s->arenas) = a;
        s->newest = a;
        if (!s->open)
                s->open = a;
        if (s->light_guards)
                s->fresh_count += slices;
        return 0;
}

static struct rs_stack *stack_make(char *base, size_t size, size_t guard, size_t colour)
{
        struct rs_stack *k = (struct rs_stack *)(void *)(base + size - sizeof *k);
        char *top = (char *)k - colour * COLOUR_STEP;

        *k = (struct rs_stack){ .base = base, .size = size };
        k->top = top - ((uintptr_t)top & 15);
        k->tsan_fiber = rs_tsan_new();
        k->valgrind_id = VALGRIND_STACK_REGISTER(base + guard, k->top);
        return k;
}

static void stack_forget(struct rs_stack *k)
{
        rs_tsan_free(k->tsan_fiber);
        VALGRIND_STACK_DEREGISTER(k->valgrind_id);
}

static char *fresh_base(const struct rs_stacks *s)
{
        return s->open->base + s->open->fresh;
}

static struct rs_stack *fresh_bind(struct rs_stacks *s)
{
        char *base = fresh_base(s);

        s->open->fresh += s->slice;
        if (s->open->fresh == s->open->size)
                s->open = s->open->next;
        return stack_make(base, s->slice, s->guard, s->made++ % COLOURS);
}

/* With mprotect the next fresh slice is made usable now, and put on the hot list. */
static int reserve_heavy(struct rs_stacks *s)
{
        int rc = s->open ? 0 : arena_add(s);

        if (rc == 0)
                rc = guard_install(s, fresh_base(s));
        if (rc < 0)
                return rc == -ENOMEM ? -EAGAIN : rc;
        rs_stack_give(s, fresh_bind(s));
        return 0;
}

int rs_stacks_grow(struct rs_stacks *s)
{
        return s->light_guards ? arena_add(s) : reserve_heavy(s);
}

struct rs_stack *rs_stack_bind_fresh(struct rs_stacks *s)
{
        int rc = guard_install(s, fresh_base(s));
        struct rs_stack *k = fresh_bind(s);

        s->fresh_count--;
        /* The kernel has no page for its page table: the slice is lost, the task cannot start. */
        return rc < 0 ? NULL : k;
}

int rs_stack_map(struct rs_stacks *s, size_t size, struct rs_stack **ret_stack)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t bytes = (size + page - 1) & ~(page - 1);

        if (!rs_stack_size_valid(size))
                return -EINVAL;
        char *base = map_stacks(bytes);
        if (!base)
                return -EAGAIN;
        int rc = guard_install(s, base);
        if (rc < 0) {
                munmap(base, bytes);
                return rc == -ENOMEM ? -EAGAIN : rc;
        }
        *ret_stack = stack_make(base, bytes, s->guard, s->made++ % COLOURS);
        (*ret_stack)->class = 1;
        return 0;
}

void rs_stacks_bury(struct rs_stacks *s)
{
        while (s->doomed) {
                struct rs_stack *k = s->doomed;

                s->doomed = k->next;
                stack_forget(k);
                munmap(k->base, k->size);
        }
}

void rs_stacks_done(struct rs_stacks *s, bool leak)
{
        rs_stacks_bury(s);
        for (struct rs_stack *k = s->hot; k; k = k->next)
                stack_forget(k);
        while (s->arenas) {
                struct rs_arena *a = s->arenas;

                s->arenas = a->next;
                if (!leak)
                        munmap(a->base, a->size);
                resha_free(a);
        }
}
