/* SPDX-License-Identifier: MIT */
/* What other threads bring to a loop.
 *
 * A loop that runs looks at its inbox at each visit; only one that sleeps must be woken, once. `sleeping` says so,
 * under the same lock as the list, so that no wake-up is lost between the last look and the sleep. Senders may outlive
 * the loop: the inbox is counted, and closed when the loop ends. */

#include "base/alloc.h"
#include "core/core.h"
#include "sys/thread.h"

struct rs_inbox {
        struct rs_lock lock;
        struct rs_post *first, **last;
        struct rs_backend *backend; /* NULL: the loop has ended */
        unsigned refs;
        size_t late; /* posts after the end of the loop */
        bool sleeping;
        volatile int woken; /* by a signal handler */
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

void rs_inbox_post(struct rs_inbox *i, struct rs_post *p)
{
        p->next = NULL;
        rs_lock(&i->lock);
        bool open = i->backend != NULL;
        if (open) {
                __atomic_store_n(i->last, p, __ATOMIC_RELAXED); /* drain looks without the lock */
                i->last = &p->next;
                if (i->sleeping)
                        i->backend->ops->wake(i->backend);
                i->sleeping = false;
        }
        i->late += !open && !p->quiet;
        rs_unlock(&i->lock);
        if (!open && p->lost)
                p->lost(p);
}

void rs_inbox_wake(struct rs_inbox *i)
{
        __atomic_store_n(&i->woken, 1, __ATOMIC_SEQ_CST);
        i->backend->ops->wake(i->backend);
}

bool rs_inbox_sleep(struct rs_inbox *i)
{
        rs_lock(&i->lock);
        bool empty = !i->first && !__atomic_load_n(&i->woken, __ATOMIC_SEQ_CST);
        i->sleeping = empty;
        rs_unlock(&i->lock);
        return empty;
}

void rs_inbox_awake(struct rs_inbox *i)
{
        rs_lock(&i->lock);
        i->sleeping = false;
        rs_unlock(&i->lock);
}

static struct rs_post *take_all(struct rs_inbox *i, bool close)
{
        rs_lock(&i->lock);
        struct rs_post *first = i->first;
        __atomic_store_n(&i->first, NULL, __ATOMIC_RELAXED);
        i->last = &i->first;
        if (close)
                i->backend = NULL;
        rs_unlock(&i->lock);
        return first;
}

bool rs_inbox_drain(struct rs_loop *l)
{
        struct rs_inbox *i = l->inbox;

        if (RS_UNLIKELY(__atomic_load_n(&i->woken, __ATOMIC_RELAXED)) &&
            __atomic_exchange_n(&i->woken, 0, __ATOMIC_SEQ_CST) && l->on_wake)
                l->on_wake(l);
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
