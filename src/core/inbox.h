/* SPDX-License-Identifier: MIT */
#ifndef RS_INBOX_H
#define RS_INBOX_H

/* What other threads bring to a loop. */

#include <stdbool.h>
#include <stddef.h>

struct rs_backend;
struct rs_inbox;
struct rs_loop;

/* From any thread: fn(p) will run on the loop's thread, outside of tasks. The node is the caller's until then. For use
 * by jobs and signals: never fails, never allocates. An inbox is counted, because its senders may outlive the loop:
 * what comes after the loop's end is passed to `lost` of the post instead, on the sender's thread (may be NULL). */
struct rs_post {
        struct rs_post *next;
        void (*fn)(struct rs_post *p);
        void (*lost)(struct rs_post *p);
        bool quiet; /* nobody misses it: not counted where it is lost */
};
struct rs_inbox *rs_inbox_ref(struct rs_inbox *i);
void rs_inbox_unref(struct rs_inbox *i);
void rs_inbox_post(struct rs_inbox *i, struct rs_post *p);
/* The same, but one that comes after the end is the caller's as before. False: it came after the end. */
bool rs_inbox_try_post(struct rs_inbox *i, struct rs_post *p);
/* Async-signal-safe, while the loop lives: wakes it, and it calls l->on_wake. */
void rs_inbox_wake(struct rs_inbox *i);

/* References of the program (loop.h): while there is one, something outside can wake the loop. hold: on the loop's
 * thread; release: on any. */
struct rs_inbox *rs_inbox_hold(struct rs_loop *l);
void rs_inbox_release(struct rs_inbox *i);
/* Async-signal-safe, at any time: the main task is cancelled. `site` is static. */
void rs_inbox_cancel(struct rs_inbox *i, const char *site);
/* Whether the loop is one of the parent process; then only that may be asked of it. */
bool rs_inbox_of_parent(const struct rs_inbox *i);

/* ---- the loop's own ---- */

struct rs_inbox *rs_inbox_new(struct rs_backend *b);
size_t rs_inbox_close(struct rs_inbox *i); /* posts that had come, and did not run */
size_t rs_inbox_late(struct rs_inbox *i);  /* posts that came after it was closed */
bool rs_inbox_drain(struct rs_loop *l);
bool rs_inbox_sleep(struct rs_inbox *i); /* true: nothing has come, the next post wakes */
void rs_inbox_awake(struct rs_inbox *i);

/* ---- for loops that run beside one another ---- */

/* What loops that were started together have in common, of who has started them. */
struct rs_beside {
        /* On a loop's thread, when nothing that it knows can wake anybody, and it is about to sleep. False: none of the
         * others can do anything about it either: they stand still, too, or have ended. goes: that is over. */
        bool (*stands)(struct rs_beside *b, struct rs_loop *l);
        void (*goes)(struct rs_beside *b);
        const char *because; /* of which the others are cancelled: "loop 3 failed"; static; NULL: for nothing */
};

/* Any thread: the loop sleeps, and nothing has come for it. */
bool rs_inbox_still(const struct rs_inbox *i);

/* ---- for who watches loops ---- */

/* Any thread, while the loop lives: it sleeps, or is embedded and between two steps. */
bool rs_inbox_sleeps(const struct rs_inbox *i);
/* begin: from now on a loop that wakes ends the wait(); so does end(). One thread waits. */
void rs_inbox_watch_begin(void);
void rs_inbox_watch_wait(void);
void rs_inbox_watch_end(void);

#endif
