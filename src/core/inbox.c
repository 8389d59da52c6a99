/* SPDX-License-Identifier: MIT */
/* What other threads bring to a loop.
 *
 * Posts are a stack that senders push to and the loop takes as a whole, and turns round; CLOSED instead of it says that
 * the loop has ended. A loop that runs looks at its inbox at each visit; only one that sleeps must be woken, once.
 * `sleeping` says so: the loop sets it and then looks at the posts, a sender pushes and then looks at it, so that one
 * of the two sees the other. There is no lock: a loop that is woken would meet its waker there.
 *
 * What needs no memory and no order (a signal came, cancel, the last reference was given back) is a flag, and `woken`
 * says that there is one. Flags may be set in signal handlers, too.
 *
 * Senders may outlive the loop: the inbox is counted. The end of the loop waits for the few instructions of those who
 * are about to wake it (`callers`). */

#include "base/alloc.h"
#include "core/core.h"
#include "sys/sys.h"
#include "sys/thread.h"

struct rs_inbox {
        struct rs_post *last;       /* the one that was pushed last, or &CLOSED */
        struct rs_backend *backend; /* NULL: the loop has ended */
        unsigned refs;
        unsigned holders; /* references that belong to the program */
        unsigned callers; /* about to push or to wake the loop */
        unsigned forks;   /* rs_forks, of the process that made it */
        size_t late;      /* posts after the end of the loop */
        bool sleeping;
        volatile int woken;    /* a flag was set */
        const char *cancelled; /* of which call that was; NULL: nobody asks for it */
};

static struct rs_post CLOSED;

struct rs_inbox *rs_inbox_new(struct rs_backend *b)
{
        struct rs_inbox *i = resha_calloc(1, sizeof *i);

        if (!i)
                return NULL;
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

static void callers_add(struct rs_inbox *i, int n)
{
        __atomic_add_fetch(&i->callers, (unsigned)n, __ATOMIC_SEQ_CST);
}

static void wake_sleeping(struct rs_inbox *i)
{
        struct rs_backend *b = __atomic_load_n(&i->backend, __ATOMIC_SEQ_CST);

        if (b && __atomic_exchange_n(&i->sleeping, false, __ATOMIC_SEQ_CST))
                b->ops->wake(b);
}

/* Once p is pushed it may be gone, and with it what has kept the inbox, but for `callers`. */
bool rs_inbox_try_post(struct rs_inbox *i, struct rs_post *p)
{
        struct rs_post *last = __atomic_load_n(&i->last, __ATOMIC_RELAXED);
        bool open;

        callers_add(i, 1);
        do {
                p->next = last;
                open = last != &CLOSED;
        } while (open && !__atomic_compare_exchange_n(&i->last, &last, p, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
        if (open && __atomic_load_n(&i->sleeping, __ATOMIC_SEQ_CST))
                wake_sleeping(i);
        callers_add(i, -1);
        return open;
}

void rs_inbox_post(struct rs_inbox *i, struct rs_post *p)
{
        if (rs_inbox_try_post(i, p))
                return;
        if (!p->quiet)
                __atomic_add_fetch(&i->late, 1, __ATOMIC_RELAXED);
        if (p->lost)
                p->lost(p);
}

/* ---- flags ---- */

/* Also while the loop ends, or after. */
static void wake_if_open(struct rs_inbox *i)
{
        callers_add(i, 1);
        struct rs_backend *b = __atomic_load_n(&i->backend, __ATOMIC_SEQ_CST);
        if (b) {
                __atomic_store_n(&i->woken, 1, __ATOMIC_SEQ_CST);
                b->ops->wake(b);
        }
        callers_add(i, -1);
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
        bool beside = l->beside && __atomic_load_n(&l->beside->because, __ATOMIC_SEQ_CST);
        if (site)
                rs_loop_cancel(l, beside ? RS_CAUSE_BESIDE : RS_CAUSE_THREAD, site);
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
        if (RS_LIKELY(!__atomic_load_n(&i->last, __ATOMIC_SEQ_CST) && !__atomic_load_n(&i->woken, __ATOMIC_SEQ_CST)))
                return true;
        rs_inbox_awake(i);
        return false;
}

bool rs_inbox_still(const struct rs_inbox *i)
{
        return rs_inbox_sleeps(i) && !__atomic_load_n(&i->last, __ATOMIC_SEQ_CST) &&
               !__atomic_load_n(&i->woken, __ATOMIC_SEQ_CST);
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

/* What was pushed first comes first. */
static struct rs_post *take_all(struct rs_inbox *i, struct rs_post *instead)
{
        struct rs_post *first = NULL, *next;

        for (struct rs_post *p = __atomic_exchange_n(&i->last, instead, __ATOMIC_SEQ_CST); p; p = next) {
                next = p->next;
                p->next = first;
                first = p;
        }
        return first;
}

bool rs_inbox_drain(struct rs_loop *l)
{
        struct rs_inbox *i = l->inbox;

        if (RS_UNLIKELY(__atomic_load_n(&i->woken, __ATOMIC_RELAXED)) &&
            __atomic_exchange_n(&i->woken, 0, __ATOMIC_SEQ_CST))
                take_flags(l);
        if (RS_LIKELY(!__atomic_load_n(&i->last, __ATOMIC_RELAXED)))
                return false;
        for (struct rs_post *p = take_all(i, NULL), *next; p; p = next) {
                next = p->next;
                p->fn(p);
        }
        return true;
}

size_t rs_inbox_late(struct rs_inbox *i)
{
        return __atomic_load_n(&i->late, __ATOMIC_RELAXED);
}

size_t rs_inbox_close(struct rs_inbox *i)
{
        struct rs_post *all = take_all(i, &CLOSED);
        size_t n = 0;

        __atomic_store_n(&i->backend, NULL, __ATOMIC_SEQ_CST);
        for (unsigned tries = 0; __atomic_load_n(&i->callers, __ATOMIC_SEQ_CST); tries++)
                rs_sys_yield(tries);
        for (struct rs_post *p = all, *next; p; p = next) {
                next = p->next;
                n += !p->quiet;
                if (p->lost)
                        p->lost(p);
        }
        rs_inbox_unref(i);
        return n;
}
