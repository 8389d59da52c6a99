/* SPDX-License-Identifier: MIT */
#ifndef RS_CHANNEL_H
#define RS_CHANNEL_H

/* Between the files of channels, and select. */

#include <resha/channel.h>

#include "core/core.h"
#include "sys/thread.h"

struct rs_channel_side {
        /* Of this side's own calls, with the lock. */
        uint32_t lock; /* atomic */
        uint32_t turn; /* that the place at `at` has once it is this side's */
        char *at;
        uint64_t passed; /* items; atomic */
        char apart[64];  /* in other cache lines: the memory is not aligned to them */
        /* What a wait learns (channel_wait.c), atomic. */
        uint64_t patience;
        unsigned spins;
        char apart_too[64];
        /* Looked at by each call of the other side, seldom written. */
        unsigned waiting;    /* waiters in line; written with the lock of the lines, atomic */
        bool closed;         /* atomic */
        unsigned users;      /* references, atomic */
        struct rs_list line; /* of rs_channel_waiter.wait.node */
        char apart_last[64];
};

struct rs_channel {
        size_t item_size, capacity;
        size_t turn_at, stride; /* in bytes: a place is an item, and whose turn it is there */
        char *places, *end;
        resha_drop_fn *drop;
        bool spins;          /* who waits: two sides can run at once */
        unsigned forks;      /* rs_forks, of the process that made it */
        unsigned ends;       /* that are open; atomic */
        struct rs_lock lock; /* of the lines */
        struct rs_channel_side tx, rx;
};

/* Whom to tell that something can be done: a thread, or by a post its loop. */
struct rs_channel_caller {
        struct rs_post post;
        struct rs_inbox *inbox; /* NULL: the thread at the gate */
        struct rs_loop *loop;   /* NULL: the post is needed there, too */
        struct rs_gate gate;
        bool posted; /* and has not run; atomic */
};

/* One who waits: for one thing, or with one case of a select. */
struct rs_channel_waiter {
        struct rs_wait wait;
        struct rs_channel_side *side; /* in whose line it stands; NULL: in none. With the lock of the lines */
        struct rs_channel_caller *caller;
};

/* The other processor thread gets on. */
static inline void rs_pause(void)
{
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        __asm__ volatile("yield");
#endif
}

/* A task begins (1), or ends (-1), to wait: it may be woken from outside. Not in the simulated world, which waits for
 * no threads: there, nothing hides a deadlock. */
static inline void rs_channel_outside(struct rs_loop *l, int by)
{
        l->jobs += l->simulated ? 0 : (size_t)by;
}

static inline struct rs_channel_side *rs_channel_side(struct rs_channel *c, bool send)
{
        return send ? &c->tx : &c->rx;
}

/* As resha_try_send() and resha_try_recv(). */
int rs_channel_try(struct rs_channel *c, bool send, void *item);

/* Whether a try would not give -EAGAIN; without locks, for one who then tries. */
bool rs_channel_looks_ready(struct rs_channel *c, bool send);

/* A record for the task, the job or the thread. Returns `code`. */
int rs_channel_refuse(int code, const char *text);

/* ---- the lines: channel_wait.c ---- */

void rs_channel_wake_one(struct rs_channel *c, struct rs_channel_side *s);
void rs_channel_wake_all(struct rs_channel *c, struct rs_channel_side *s);

/* To the end of the line; false: there is something to do instead, and it stands in none. */
bool rs_channel_stand(struct rs_channel_waiter *w, struct rs_channel *c, bool send);

/* Whether it is in the line. */
bool rs_channel_stands(struct rs_channel_waiter *w, struct rs_channel *c);

/* Out of the line. False: it had been told already. */
bool rs_channel_leave(struct rs_channel_waiter *w, struct rs_channel *c);

/* The same for one who will not try any more: what it was told is for the next in line. */
void rs_channel_quit(struct rs_channel_waiter *w, struct rs_channel *c, bool send);

/* Until it is done: as resha_send() and resha_recv(), after a try that gave -EAGAIN. */
int rs_channel_wait(struct rs_loop *l, struct rs_channel *c, bool send, void *item);

#endif
