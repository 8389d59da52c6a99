/* SPDX-License-Identifier: MIT */
#ifndef RS_OBSERVE_H
#define RS_OBSERVE_H

/* One thread looks at another of the same process: how long it had to wait for a processor, and its stack, without a
 * call of its being disturbed. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Of the running thread. */
pid_t rs_observe_self(void);

/* Copies what may be a text, of at most size - 1 bytes, in memory that may be given back meanwhile: then it is false,
 * or something else. */
bool rs_observe_text(const char *from, char *buf, size_t size);

/* The signal by which others look at it may reach this thread. */
void rs_observe_allow(void);
void rs_observe_forked(void); /* in a forked child */

/* Of a thread, in nanoseconds since it was made; all 0 if the kernel does not say. */
struct rs_observe_times {
        int64_t ran;
        int64_t waited; /* could have run, but got no processor; what it waits now comes in when it gets one */
};
void rs_observe_times(pid_t tid, struct rs_observe_times *t);

/* It runs, or could: it waits for nothing but a processor. */
bool rs_observe_runs(pid_t tid);

/* Copies memory of this process that may go at any moment; false: it has gone. By the kernel: neither a fault nor a
 * sanitizer comes in between. */
bool rs_observe_read(void *to, const void *from, size_t size);

/* How many of these bytes, from bottom on, lie in pages that nothing has ever been written to. bottom: of a page. */
size_t rs_observe_untouched(const char *bottom, size_t size);

/* Gives the whole pages there back: they are zero again. The first byte behind them, at most end. */
char *rs_observe_drop(char *bottom, char *end);

/* Where stacks of that thread lie, from the end of the guard to the top. */
struct rs_observe_stack {
        const char *bottom, *top;
};
struct rs_observe_stacks {
        struct rs_observe_stack own, task; /* the one that the task runs on, if one runs */
        const void *end;                   /* the function whose callers are of no interest */
};

/* Where that thread is now: its place, and the return addresses above it. How many; 0: it cannot be told. One look at a
 * time: another caller waits. */
size_t rs_observe_stack(pid_t tid, const struct rs_observe_stacks *s, const void **ret_addresses, size_t max);

#endif
