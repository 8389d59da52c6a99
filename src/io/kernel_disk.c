/* SPDX-License-Identifier: MIT */
/* The crew: threads of a backend that make the calls about files and names, RS_OP_DISK, one each.
 *
 *     submit --> queue of the crew --> a thread: the call --> finished --> wait() takes all --> done
 *                     |                      |
 *            cancel --+ taken back           +-- cancel: too late, its result is the result
 *
 * Finished calls are a stack that threads push to and the loop takes whole, without a lock. A loop that is awake looks
 * at it by itself in each wait(); one that is about to sleep puts AWAITED there in place of nothing, and who pushes
 * onto that wakes it. So there is one wake-up for each sleep, however many calls have finished.
 *
 * The crew is made at the first call, and ended with the backend. Calls that hang (a server of files that is gone) are
 * waited for as long as the run has patience; a run that gives up leaves them and the crew behind, on purpose, as their
 * tasks' stacks: CLOSED says to whoever comes back that nobody is there. What is still in the queue then never runs.
 *
 * A forked child has no threads of a crew, and no loop that would ask for them. */

#include <errno.h>

#include <resha/alloc.h>

#include "io/kernel.h"
#include "sys/disk.h"
#include "sys/sys.h"

enum { THREADS_DEFAULT = 4 };

/* In the place of a pointer. */
#define NOTHING ((uintptr_t)0)
#define AWAITED ((uintptr_t)1)
#define CLOSED ((uintptr_t)2)

struct kn_crew {
        struct rs_workers workers;
        struct kn *kn;             /* until CLOSED */
        atomic_uintptr_t finished; /* of rs_disk.next, or one of the above */
        atomic_uint callers;       /* threads that push, and may wake */
        size_t under_way;          /* calls: neither taken from `finished` nor cancelled */
};

/* On a thread. What lies around d may be gone once it is in the list. */
static void hand_back(struct kn_crew *c, struct rs_disk *d)
{
        atomic_fetch_add(&c->callers, 1);
        uintptr_t head = atomic_load(&c->finished);
        do {
                if (head == CLOSED) {
                        if (d->call == RS_DISK_OPEN && d->result >= 0)
                                rs_sys_close((int)d->result);
                        break;
                }
                d->next = head == AWAITED ? NULL : (struct rs_disk *)head;
        } while (!atomic_compare_exchange_weak(&c->finished, &head, (uintptr_t)d));
        if (head == AWAITED)
                kn_wake(&c->kn->base);
        atomic_fetch_sub(&c->callers, 1);
}

static void run(struct rs_work *work)
{
        struct rs_disk *d = RS_CONTAINER(work, struct rs_disk, work);

        d->result = rs_sys_disk(d);
        hand_back(d->crew, d);
}

static struct kn_crew *crew_of(struct kn *k)
{
        struct kn_crew *c = k->crew;

        if (c)
                return c;
        k->crew = c = resha_malloc(sizeof *c);
        if (c)
                *c = (struct kn_crew){
                        .workers = RS_WORKERS_INIT(k->base.threads ? k->base.threads : THREADS_DEFAULT, "resha-disk"),
                        .kn = k,
                };
        return c;
}

int kn_disk_add(struct kn *k, struct rs_op *op)
{
        struct rs_disk *d = op->buf;
        struct kn_crew *c = crew_of(k);

        if (!c)
                return -ENOMEM;
        d->op = op;
        d->crew = c;
        d->work.run = run;
        int rc = rs_workers_add(&c->workers, &d->work);
        c->under_way += rc == 0;
        return rc;
}

bool kn_disk_submit(struct kn *k, struct rs_op *op)
{
        int rc = kn_disk_add(k, op);

        return rc < 0 ? kn_done(op, rc) : kn_pend(&k->base, op);
}

bool kn_disk_cancel(struct kn *k, struct rs_op *op)
{
        struct rs_disk *d = op->buf;
        struct kn_crew *c = k->crew;

        if (!rs_workers_remove(&c->workers, &d->work))
                return false;
        c->under_way--;
        return true;
}

bool kn_crew_sleep(struct kn_crew *c)
{
        uintptr_t head = NOTHING;

        return atomic_compare_exchange_strong(&c->finished, &head, AWAITED) || head == AWAITED;
}

/* In the order in which they finished. */
static struct rs_disk *reversed(struct rs_disk *d)
{
        struct rs_disk *before = NULL;

        while (d) {
                struct rs_disk *next = d->next;
                d->next = before;
                before = d;
                d = next;
        }
        return before;
}

static struct rs_disk *take(struct kn_crew *c, uintptr_t instead)
{
        uintptr_t head = atomic_load(&c->finished);

        if (head != instead)
                head = atomic_exchange(&c->finished, instead);
        return head == AWAITED ? NULL : reversed((struct rs_disk *)head);
}

void kn_crew_take(struct kn_crew *c)
{
        for (struct rs_disk *d = take(c, NOTHING), *next; d; d = next) {
                next = d->next;
                c->under_way--;
                rs_backend_done(&c->kn->base, d->op, d->result);
        }
}

void kn_crew_end(struct kn_crew *c)
{
        if (!c)
                return;
        c->under_way -= rs_workers_drop(&c->workers);
        for (struct rs_disk *d = take(c, CLOSED); d; d = d->next)
                c->under_way--;
        while (atomic_load(&c->callers)) /* a few instructions, and a write to an eventfd at most */
                rs_sys_yield();
        rs_workers_rest(&c->workers, c->under_way == 0);
        if (c->under_way == 0)
                resha_free(c);
}
