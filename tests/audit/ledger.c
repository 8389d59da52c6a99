/* SPDX-License-Identifier: MIT */
/* The books of locks, permits, items and notifications: by the object's address, from what the calls said.
 *
 * Between two calls an object and its books may differ by what is on its way: handed over to a waiter that has not run
 * yet. So each sum is known up to the number of tasks that are inside of a call on the object, and exactly when there
 * are none. It is looked at after each call, when the object certainly is alive.
 *
 * Objects on stacks have no end that is seen, and another may lie at the same place later: an entry that cannot be the
 * object's any more (free, with nobody inside, though its owner never gave it back) is begun anew. */

#include "books.h"

#include <string.h>

enum { ENTRIES = 1 << 14 };
static struct entry *entries;

void ledger_setup(void *(*take)(size_t size))
{
        entries = take(ENTRIES * sizeof *entries);
}

static struct entry *slot(const void *at, enum kind kind)
{
        uint64_t h = (((uint64_t)(uintptr_t)at >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) + (uint64_t)kind;

        for (size_t i = 0; i < ENTRIES; i++) {
                struct entry *e = &entries[(h + i) % ENTRIES];
                if (e->trial != audit->number || (e->at == at && e->kind == kind))
                        return e;
        }
        audit_wrong("too many objects in one test");
}

struct entry *books_find(const void *at, enum kind kind)
{
        struct entry *e = slot(at, kind);

        return e->trial == audit->number ? e : NULL;
}

struct entry *books_fresh(const void *at, enum kind kind)
{
        struct entry *e = slot(at, kind);

        *e = (struct entry){ .at = at, .kind = kind, .trial = audit->number };
        return e;
}

struct entry *books_entry(const void *at, enum kind kind)
{
        struct entry *e = books_find(at, kind);

        return e ? e : books_fresh(at, kind);
}

size_t books_held(void)
{
        size_t n = 0;

        for (size_t i = 0; i < ENTRIES; i++)
                if (entries[i].trial == audit->number && !entries[i].freed)
                        n += entries[i].kind == QUEUE ? 3 : entries[i].kind == CHANNEL ? 2 : 0;
        return n;
}

static uint32_t me(void)
{
        struct rs_loop *l = rs_loop_current;

        return l && l->current ? l->current->id : 0;
}

/* While a call is under way; an end of the task in there is a return, too. */
static void inside_end(size_t **count)
{
        (**count)--;
}
#define INSIDE(count) \
        (count)++; \
        size_t *inside_ __attribute__((cleanup(inside_end), unused)) = &(count)

/* ---- semaphore ---- */

static struct entry *semaphore(const resha_semaphore *s)
{
        struct entry *e = books_find(s, SEMAPHORE);

        if (e)
                return e;
        e = books_fresh(s, SEMAPHORE);
        e->all = (int64_t)resha_semaphore_available(s);
        e->loose = true; /* somebody may hold some already */
        return e;
}

static int semaphore_check(struct entry *e, int rc)
{
        int64_t available = (int64_t)resha_semaphore_available(e->at);
        int64_t on_the_way = e->all - available - e->out;

        if (!e->loose && (on_the_way < 0 || on_the_way > (int64_t)e->takers))
                audit_wrong("semaphore: %lld permits, %lld free, %lld taken, %zu waiters", (long long)e->all,
                            (long long)available, (long long)e->out, e->takers);
        return rc;
}

void audit_semaphore_init(resha_semaphore *s, size_t permits)
{
        resha_semaphore_init(s, permits);
        books_fresh(s, SEMAPHORE)->all = (int64_t)permits;
}

static int semaphore_wait(struct entry *e, resha_semaphore *s)
{
        INSIDE(e->takers);

        return resha_semaphore_acquire(s);
}

int audit_semaphore_acquire(resha_semaphore *s)
{
        struct entry *e = semaphore(s);
        int rc = semaphore_wait(e, s);

        e->out += rc == 0;
        return semaphore_check(e, rc);
}

int audit_semaphore_try_acquire(resha_semaphore *s)
{
        struct entry *e = semaphore(s);
        int rc = resha_semaphore_try_acquire(s);

        e->out += rc == 0;
        return semaphore_check(e, rc);
}

int audit_semaphore_release(resha_semaphore *s)
{
        struct entry *e = semaphore(s);
        int rc = resha_semaphore_release(s);

        e->out -= rc == 0;
        return semaphore_check(e, rc);
}

/* ---- mutex ---- */

static struct entry *mutex(const resha_mutex *m)
{
        struct entry *e = books_entry(m, MUTEX);

        if (e->owner && !e->takers && !resha_mutex_locked(m))
                e->owner = 0; /* another mutex */
        return e;
}

static int mutex_check(const struct entry *e, int rc)
{
        bool locked = resha_mutex_locked(e->at);

        if (e->owner && !locked)
                audit_wrong("mutex: free, though task %u has not given it back", e->owner);
        if (!e->owner && locked && !e->takers)
                audit_wrong("mutex: held by nobody, with nobody who waits");
        return rc;
}

static void mutex_taken(struct entry *e)
{
        if (e->owner)
                audit_wrong("mutex: taken by task %u while task %u holds it", me(), e->owner);
        e->owner = me();
}

static int mutex_wait(struct entry *e, resha_mutex *m)
{
        INSIDE(e->takers);

        return resha_mutex_lock(m);
}

int audit_mutex_lock(resha_mutex *m)
{
        struct entry *e = mutex(m);
        int rc = mutex_wait(e, m);

        if (rc == 0)
                mutex_taken(e);
        return mutex_check(e, rc);
}

int audit_mutex_try_lock(resha_mutex *m)
{
        struct entry *e = mutex(m);
        int rc = resha_mutex_try_lock(m);

        if (rc == 0)
                mutex_taken(e);
        return mutex_check(e, rc);
}

int audit_mutex_unlock(resha_mutex *m)
{
        struct entry *e = mutex(m);
        bool mine = e->owner == me();
        int rc = resha_mutex_unlock(m);

        if (rc == 0 && !mine)
                audit_wrong("mutex: given back by task %u, held by task %u", me(), e->owner);
        if (rc == 0)
                e->owner = 0;
        return mutex_check(e, rc);
}

/* A task that is ended where it stands gives nothing back, and whoever waits for its locks need not be cancellable. */
void books_release(const struct rs_task *t)
{
        for (size_t i = 0; i < ENTRIES; i++) {
                struct entry *e = &entries[i];
                if (e->trial == audit->number && e->kind == MUTEX && e->owner == t->id)
                        audit_mutex_unlock((resha_mutex *)(uintptr_t)e->at);
        }
}

/* ---- condition: `all` is its mutex, in an entry of its own; `in` notifications given, `out` delivered ---- */

struct count {
        const char *what;
        const void *object;
        size_t n;
};

static bool waits_for(const struct rs_task *t, const char *what, const void *object)
{
        return t->wait && t->wait->object == object && strcmp(t->wait->what, what) == 0;
}

static void count_one(struct rs_loop *l, struct rs_task *t, void *arg)
{
        struct count *c = arg;

        (void)l;
        c->n += waits_for(t, c->what, c->object);
}

/* Tasks that wait so at this moment. */
static size_t parked(const char *what, const void *object)
{
        struct count c = { .what = what, .object = object };
        struct rs_loop *l = rs_loop_current;

        for (struct rs_node *n = l ? l->slabs.first : NULL; n; n = n->next)
                rs_slab_each(l, n, count_one, &c);
        return c.n;
}

static const resha_mutex *mutex_of(const struct entry *e)
{
        return (const resha_mutex *)(uintptr_t)e->all;
}

void audit_condition_init(resha_condition *c, resha_mutex *m)
{
        resha_condition_init(c, m);
        books_fresh(c, CONDITION)->all = (int64_t)(uintptr_t)m;
}

struct condition_call {
        resha_condition *c;
        bool (*pred)(void *arg);
        void *arg;
};

static int condition_call(struct entry *e, struct entry *m, const struct condition_call *call)
{
        INSIDE(e->takers);
        size_t *mutex_inside __attribute__((cleanup(inside_end), unused)) = &m->takers;

        m->takers++;
        return call->pred ? resha_condition_wait_for(call->c, call->pred, call->arg) : resha_condition_wait(call->c);
}

static int condition_wait(const struct condition_call *call)
{
        struct entry *e = books_find(call->c, CONDITION);
        struct entry *m = e ? mutex(mutex_of(e)) : NULL;

        if (!m || !me() || m->owner != me()) /* misuse: refused */
                return call->pred ? resha_condition_wait_for(call->c, call->pred, call->arg)
                                  : resha_condition_wait(call->c);
        m->owner = 0;
        e->loose |= call->pred != NULL;
        int rc = condition_call(e, m, call);
        mutex_taken(m); /* whatever it gave */
        mutex_check(m, 0);
        e->out += rc == 0;
        if (!e->loose && (e->out > e->in || (!e->takers && e->out != e->in)))
                audit_wrong("condition: %lld notifications given, %lld delivered, %zu waiters", (long long)e->in,
                            (long long)e->out, e->takers);
        return rc;
}

int audit_condition_wait(resha_condition *c)
{
        return condition_wait(&(struct condition_call){ .c = c });
}

int audit_condition_wait_for(resha_condition *c, bool (*pred)(void *arg), void *arg)
{
        return condition_wait(&(struct condition_call){ .c = c, .pred = pred, .arg = arg });
}

int audit_condition_notify(resha_condition *c, size_t n)
{
        struct entry *e = books_find(c, CONDITION);
        size_t before = parked("condition", c);
        int rc = resha_condition_notify(c, n);
        size_t given = rc < 0 ? 0 : n < before ? n : before;

        if (e)
                e->in += (int64_t)given;
        if (parked("condition", c) != before - given)
                audit_wrong("condition: %zu notified of %zu, %zu still wait", given, before, parked("condition", c));
        return rc;
}

int audit_condition_notify_all(resha_condition *c)
{
        return audit_condition_notify(c, SIZE_MAX);
}

/* ---- event ---- */

/* A task inside of a wait, on its stack. */
struct waiting {
        struct waiting *next, **link;
        const struct rs_task *task;
        bool notified;
};

static void waiting_end(struct waiting *w)
{
        *w->link = w->next;
        if (w->next)
                w->next->link = w->link;
}

void audit_event_set(resha_event *event)
{
        struct entry *e = books_entry(event, EVENT);

        for (struct waiting *w = e->waiting; w; w = w->next)
                w->notified |= waits_for(w->task, "event", event);
        resha_event_set(event);
        for (struct waiting *w = e->waiting; w; w = w->next)
                if (waits_for(w->task, "event", event))
                        audit_wrong("event: task \"%s\" still waits though it is set", w->task->name);
}

int audit_event_wait(resha_event *event)
{
        struct rs_loop *l = rs_loop_current;
        struct entry *e = books_entry(event, EVENT);
        bool was_set = resha_event_is_set(event);

        if (!l || !l->current)
                return resha_event_wait(event);
        struct waiting w
                __attribute__((cleanup(waiting_end))) = { .next = e->waiting, .link = &e->waiting, .task = l->current };
        if (w.next)
                w.next->link = &w.next;
        e->waiting = &w;
        int rc = resha_event_wait(event);
        if (w.notified && rc != 0)
                audit_wrong("event: it was set for task \"%s\", whose wait gave %d", w.task->name, rc);
        if (!w.notified && !was_set && rc == 0)
                audit_wrong("event: task \"%s\" was let through, though it was not set", w.task->name);
        return rc;
}

/* ---- barrier ---- */

int audit_barrier_init(resha_barrier *b, unsigned parties)
{
        int rc = resha_barrier_init(b, parties);

        if (rc == 0)
                books_fresh(b, BARRIER)->all = parties;
        return rc;
}

static int barrier_wait(struct entry *e, resha_barrier *b)
{
        INSIDE(e->takers);

        return resha_barrier_wait(b);
}

int audit_barrier_wait(resha_barrier *b)
{
        struct entry *e = books_find(b, BARRIER);

        if (!e || e->all > STARTS)
                return resha_barrier_wait(b);
        int rc = barrier_wait(e, b);
        if (rc >= e->all)
                audit_wrong("barrier: place %d of %lld", rc, (long long)e->all);
        if (rc >= 0)
                e->starts[rc]++;
        for (int i = 1; !e->takers && i < e->all; i++)
                if (e->starts[i] != e->starts[0])
                        audit_wrong("barrier: place 0 was given %lld times, place %d %lld times",
                                    (long long)e->starts[0], i, (long long)e->starts[i]);
        return rc;
}

/* ---- limiter ---- */

int audit_limiter_init_rates(resha_limiter *l, const resha_rate *rates, size_t n)
{
        int rc = resha_limiter_init_rates(l, rates, n);

        if (rc < 0)
                return rc;
        struct entry *e = books_fresh(l, LIMITER);
        e->all = (int64_t)n;
        memcpy(e->rates, rates, n * sizeof *rates);
        return rc;
}

int audit_limiter_init(resha_limiter *l, unsigned count, resha_duration per, unsigned burst)
{
        return audit_limiter_init_rates(l, &(resha_rate){ .count = count, .per = per, .burst = burst }, 1);
}

/* A start, if rc is 0: for each rate, the count-th one before it must lie outside of the window. */
static int limiter_started(resha_limiter *l, int rc)
{
        struct entry *e = books_find(l, LIMITER);

        if (rc != 0 || !e)
                return rc;
        int64_t now = resha_now().ns;
        for (int64_t i = 0; i < e->all; i++) {
                uint64_t count = e->rates[i].count;
                if (count > STARTS || e->started < count)
                        continue;
                if (now - e->starts[(e->started - count) % STARTS] < e->rates[i].per.ns)
                        audit_wrong("limiter: more than %u starts in %lld ns", e->rates[i].count,
                                    (long long)e->rates[i].per.ns);
        }
        e->starts[e->started++ % STARTS] = now;
        return rc;
}

int audit_limiter_acquire(resha_limiter *l)
{
        return limiter_started(l, resha_limiter_acquire(l));
}

int audit_limiter_acquire_by(resha_limiter *l, resha_instant t)
{
        return limiter_started(l, resha_limiter_acquire_by(l, t));
}

int audit_limiter_try_acquire(resha_limiter *l)
{
        return limiter_started(l, resha_limiter_try_acquire(l));
}

/* ---- who waits when nobody can go on ---- */

static void check_waiter(struct rs_loop *l, struct rs_task *t, void *arg)
{
        const struct rs_wait *w = t->wait;

        (void)l, (void)arg;
        if (!w)
                audit_wrong("nobody can go on, but task \"%s\" could", t->name);
        if (strcmp(w->what, "mutex") == 0 && books_find(w->object, MUTEX) && !resha_mutex_locked(w->object))
                audit_wrong("mutex: free, and task \"%s\" waits for it for ever", t->name);
        if (strcmp(w->what, "semaphore") == 0 && books_find(w->object, SEMAPHORE) &&
            resha_semaphore_available(w->object))
                audit_wrong("semaphore: has a permit, and task \"%s\" waits for one for ever", t->name);
        if (strcmp(w->what, "event") == 0 && books_find(w->object, EVENT) && resha_event_is_set(w->object))
                audit_wrong("event: set, and task \"%s\" waits for it for ever", t->name);
        if (strcmp(w->what, "limiter") == 0 && books_find(w->object, LIMITER))
                audit_wrong("limiter: task \"%s\" waits for a turn for ever", t->name);
        if (strcmp(w->what, "item of queue") == 0 && resha_queue_count(w->object))
                audit_wrong("queue: has an item, and task \"%s\" waits for one for ever", t->name);
        channel_check_waiter(w, t->name);
        if (strcmp(w->what, "children") == 0 && ((const struct rs_group *)w->object)->running == 0)
                audit_wrong("group: has no child left, and task \"%s\" waits for its end for ever", t->name);
}

void books_check_waiters(struct rs_loop *l)
{
        for (struct rs_node *n = l->slabs.first; n; n = n->next)
                rs_slab_each(l, n, check_waiter, NULL);
}
