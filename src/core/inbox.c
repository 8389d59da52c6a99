/* SPDX-License-Identifier: MIT */
/* What other threads bring to a loop.
 *
 * A loop that runs looks at its inbox at each visit; only one that sleeps must be woken, once. `sleeping` says so: the
 * loop sets it and then looks at the list, a sender puts into the list and then looks at it, so that one of the two
 * sees the other, without a lock. Senders may outlive the loop: the inbox is counted, and closed when the loop ends.
 *
 * What needs no memory and no order (a signal came, cancel, the last reference was given back) is a flag, and `woken`
 * says that there is one. Flags are set without the lock, so in signal handlers too; the end of the loop waits for the
 * few instructions of those who are about to wake it (`callers`). */

#include "base/alloc.h"
#include "core/core.h"
#include "sys/sys.h"
#include "sys/thread.h"

struct rs_inbox {
        struct rs_lock lock;
        struct rs_post *first, **last;
        struct rs_backend *backend; /* NULL: the loop has ended; written with the lock, and then `callers` looked at */
        unsigned refs;
        unsigned holders; /* references that belong to the program */
        unsigned callers; /* about to wake the loop, without the lock */
        unsigned forks;   /* rs_forks, of the process that made it */
        size_t late;      /* posts after the end of the loop */
        bool sleeping;
        volatile int woken;    /* a flag was set */
        const char *cancelled; /* of which call that was; NULL: nobody asks for it */
};

struct rs_inbox *rs_inbox_new(struct rs_backend *b)
{
        struct rs_inbox *i = resha_calloc(1, sizeof *i);

        if (!i)
                return NULL;
        i->lock = (struct rs_lock)RS_LOCK_INIT;
        i->last = &i->first;
        i->backend = b;
        i->refs = 1;
        i->forks = rs_forks;
        return i;
}

struct rs_inbox *rs_inbox_ref(struct rs_inbox *i)
{
        __atomic_add_fetch(&i->refs, 1, __ATOMIC_RELAXED);
        return i;
}

void rs_inbox_unref(struct rs_inbox *i)
{
        if (__atomic_sub_fetch(&i->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        resha_free(i);
}

/* With the lock. */
static bool append(struct rs_inbox *i, struct rs_post *p)
{
        if (!i->backend)
                return false;
        p->next = NULL;
        __atomic_store_n(i->last, p, __ATOMIC_SEQ_CST); /* the loop looks without the lock */
        i->last = &p->next;
        if (__atomic_exchange_n(&i->sleeping, false, __ATOMIC_SEQ_CST))
                i->backend->ops->wake(i->backend);
        return true;
}

bool rs_inbox_try_post(struct rs_inbox *i, struct rs_post *p)
{
        rs_lock(&i->lock);
        bool open = append(i, p);
        rs_unlock(&i->lock);
        return open;
}

void rs_inbox_post(struct rs_inbox *i, struct rs_post *p)
{
        rs_lock(&i->lock);
        bool open = append(i, p);
        i->late += !open && !p->quiet;
        rs_unlock(&i->lock);
        if (!open && p->lost)
                p->lost(p);
}

/* ---- flags ---- */

/* Also while the loop ends, or after. */
static void wake_if_open(struct rs_inbox *i)
{
        __atomic_add_fetch(&i->callers, 1, __ATOMIC_SEQ_CST);
        struct rs_backend *b = __atomic_load_n(&i->backend, __ATOMIC_SEQ_CST);
        if (b) {
                __atomic_store_n(&i->woken, 1, __ATOMIC_SEQ_CST);
                b->ops->wake(b);
        }
        __atomic_sub_fetch(&i->callers, 1, __ATOMIC_SEQ_CST);
}

void rs_inbox_cancel(struct rs_inbox *i, const char *site)
{
        const char *none = NULL;

        if (__atomic_compare_exchange_n(&i->cancelled, &none, site, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                wake_if_open(i);
}

struct rs_inbox *rs_inbox_hold(struct rs_loop *l)
{
        if (!l->held)
                l->jobs++;
        l->held = true;
        __atomic_add_fetch(&l->inbox->holders, 1, __ATOMIC_RELAXED);
        return rs_inbox_ref(l->inbox);
}

void rs_inbox_release(struct rs_inbox *i)
{
        if (__atomic_sub_fetch(&i->holders, 1, __ATOMIC_SEQ_CST) == 0)
                wake_if_open(i);
        rs_inbox_unref(i);
}

bool rs_inbox_of_parent(const struct rs_inbox *i)
{
        return i->forks != rs_forks;
}

/* On the loop: what flags there are. */
static void take_flags(struct rs_loop *l)
{
        struct rs_inbox *i = l->inbox;

        if (l->on_wake)
                l->on_wake(l);
        const char *site = __atomic_exchange_n(&i->cancelled, NULL, __ATOMIC_SEQ_CST);
        if (site)
                rs_loop_cancel(l, RS_CAUSE_THREAD, site);
        if (l->held && !__atomic_load_n(&i->holders, __ATOMIC_SEQ_CST)) {
                l->held = false;
                l->jobs--;
        }
}

/* ---- the loop ---- */

void rs_inbox_wake(struct rs_inbox *i)
{
        __atomic_store_n(&i->woken, 1, __ATOMIC_SEQ_CST);
        i->backend->ops->wake(i->backend);
}

bool rs_inbox_sleep(struct rs_inbox *i)
{
        __atomic_store_n(&i->sleeping, true, __ATOMIC_SEQ_CST);
        if (RS_LIKELY(!__atomic_load_n(&i->first, __ATOMIC_SEQ_CST) && !__atomic_load_n(&i->woken, __ATOMIC_SEQ_CST)))
                return true;
        rs_inbox_awake(i);
        return false;
}

/* Whether somebody waits for a loop to wake. */
static bool watched;
static struct rs_gate watcher;

/* Either who watches sees that the loop does not sleep any more, or the loop sees that it is watched. */
void rs_inbox_awake(struct rs_inbox *i)
{
        __atomic_store_n(&i->sleeping, false, __ATOMIC_SEQ_CST);
        if (RS_UNLIKELY(__atomic_load_n(&watched, __ATOMIC_SEQ_CST)))
                rs_inbox_watch_end();
}

bool rs_inbox_sleeps(const struct rs_inbox *i)
{
        return __atomic_load_n(&i->sleeping, __ATOMIC_SEQ_CST);
}

/* A gate that is opened late, by one who saw the time before, ends a wait too early, which does no harm. */
void rs_inbox_watch_begin(void)
{
        __atomic_store_n(&watcher.state, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&watched, true, __ATOMIC_SEQ_CST);
}

void rs_inbox_watch_wait(void)
{
        rs_gate_wait(&watcher, INT64_MAX);
}

void rs_inbox_watch_end(void)
{
        if (__atomic_exchange_n(&watched, false, __ATOMIC_SEQ_CST))
                rs_gate_open(&watcher);
}

static struct rs_post *take_all(struct rs_inbox *i, bool close)
{
        rs_lock(&i->lock);
        struct rs_post *first = i->first;
        __atomic_store_n(&i->first, NULL, __ATOMIC_RELAXED);
        i->last = &i->first;
        if (close)
                __atomic_store_n(&i->backend, NULL, __ATOMIC_SEQ_CST);
        rs_unlock(&i->lock);
        while (close && __atomic_load_n(&i->callers, __ATOMIC_SEQ_CST))
                rs_sys_yield();
        return first;
}

bool rs_inbox_drain(struct rs_loop *l)
{
        struct rs_inbox *i = l->inbox;

        if (RS_UNLIKELY(__atomic_load_n(&i->woken, __ATOMIC_RELAXED)) &&
            __atomic_exchange_n(&i->woken, 0, __ATOMIC_SEQ_CST))
                take_flags(l);
        if (RS_LIKELY(!__atomic_load_n(&i->first, __ATOMIC_RELAXED)))
                return false;
        for (struct rs_post *p = take_all(i, false), *next; p; p = next) {
                next = p->next;
                p->fn(p);
        }
        return true;
}

size_t rs_inbox_late(struct rs_inbox *i)
{
        rs_lock(&i->lock);
        size_t late = i->late;
        rs_unlock(&i->lock);
        return late;
}

size_t rs_inbox_close(struct rs_inbox *i)
{
        size_t n = 0;

        for (struct rs_post *p = take_all(i, true), *next; p; p = next) {
                next = p->next;
                n += !p->quiet;
                if (p->lost)
                        p->lost(p);
        }
        rs_inbox_unref(i);
        return n;
}
