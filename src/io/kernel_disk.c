/* SPDX-License-Identifier: MIT */
/* The crew: threads of a backend that make the calls about files and names, RS_OP_DISK, one each.
 *
 *     submit --> fresh --wait()--> queue of the crew --> a thread: the call --> finished --wait()--> done
 *                  |                  |    |                |
 *         cancel --+--- taken back ---+    |                +-- cancel: too late, its result is the result
 *                                          +-- wait(), as a thread that must not wait: --> done, or back
 *
 * What has been submitted since the last wait() is handed over in one go, with a signal to one thread (workers.c). A
 * call that says that it can be tried without waiting (what it needs is in the kernel's memory) is tried by the loop: a
 * few calls at once, before a thread hears of them; of many, some, while the threads do the others. So the loop's core
 * works, too, instead of sleeping and being woken for each. Tries in vain make it try less often.
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

enum {
        THREADS_DEFAULT = 4,
        FEW = 3,            /* calls that are tried before a thread is called */
        HELPS = 8,          /* calls that are made by one wait() while threads are at work */
        VAIN_MAX = 6,       /* 2^6 times not tried */
        QUICK_READ = 65536, /* bytes */
};

/* In the place of a pointer. */
#define NOTHING ((uintptr_t)0)
#define AWAITED ((uintptr_t)1)
#define CLOSED ((uintptr_t)2)

enum { LINE = 64 }; /* of the processor's caches: who writes to one takes it from the others */

struct kn_crew {
        struct rs_workers workers;
        struct kn *kn; /* until CLOSED */
        char between[LINE];
        atomic_uintptr_t finished; /* of rs_disk.next, or one of the above */
        atomic_uint callers;       /* threads that have seen AWAITED, and may wake */
        char from_the_loop[LINE];
        struct rs_list fresh; /* of rs_disk.work.node */
        size_t n_fresh;
        size_t under_way;    /* calls: neither taken from `finished` nor cancelled */
        unsigned vain, skip; /* tries in a row that were; times not to try */
};

/* Nobody is there: a descriptor has no owner any more. */
static void drop(const struct rs_disk *d)
{
        if ((d->call == RS_DISK_OPEN || d->opens) && d->result >= 0)
                rs_sys_close((int)d->result);
}

/* On a thread. What lies around d may be gone once it is in the list; the loop is not, while a caller is counted. */
static void hand_back(struct kn_crew *c, struct rs_disk *d)
{
        uintptr_t head = atomic_load(&c->finished);
        bool counted = false;

        do {
                if (head == AWAITED && !counted) {
                        atomic_fetch_add(&c->callers, 1);
                        counted = true;
                }
                d->next = head == AWAITED ? NULL : (struct rs_disk *)head;
        } while (head != CLOSED && !atomic_compare_exchange_weak(&c->finished, &head, (uintptr_t)d));
        if (head == CLOSED)
                drop(d);
        else if (head == AWAITED)
                kn_wake(&c->kn->base);
        if (counted)
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
        d->work = (struct rs_work){ .run = run };
        d->tried = false;
        d->fresh = true;
        rs_list_push(&c->fresh, &d->work.node);
        c->n_fresh++;
        c->under_way++;
        return 0;
}

/* There is nobody to make it. But what is closed is closed. */
static ssize_t not_made(struct rs_disk *d, int code)
{
        return d->call == RS_DISK_CLOSE ? rs_sys_disk(d) : code;
}

bool kn_disk_submit(struct kn *k, struct rs_op *op)
{
        int rc = kn_disk_add(k, op);

        return rc < 0 ? kn_done(op, not_made(op->buf, rc)) : kn_pend(&k->base, op);
}

static void unfresh(struct kn_crew *c, struct rs_disk *d)
{
        rs_list_remove(&c->fresh, &d->work.node);
        d->fresh = false;
        c->n_fresh--;
}

bool kn_disk_cancel(struct kn *k, struct rs_op *op)
{
        struct rs_disk *d = op->buf;
        struct kn_crew *c = k->crew;

        if (d->fresh)
                unfresh(c, d);
        else if (!rs_workers_remove(&c->workers, &d->work))
                return false;
        c->under_way--;
        return true;
}

/* ---- given to the crew, or tried here ---- */

static void done(struct kn_crew *c, struct rs_disk *d, ssize_t result)
{
        c->under_way--;
        rs_backend_done(&c->kn->base, d->op, result);
}

static bool may_be_quick(const struct rs_work *w)
{
        const struct rs_disk *d = RS_CONTAINER(w, const struct rs_disk, work);

        return !d->tried && ((d->call == RS_DISK_RUN && d->quick) || d->call == RS_DISK_OPEN ||
                             (d->call == RS_DISK_READ && d->size <= QUICK_READ));
}

static bool try(struct kn_crew *c, struct rs_disk *d)
{
        d->now = true;
        ssize_t result = rs_sys_disk(d);
        d->now = false;
        if (result != -EAGAIN) {
                c->vain = 0;
                done(c, d, result);
                return true;
        }
        d->tried = true;
        c->vain += c->vain < VAIN_MAX;
        c->skip = 1u << c->vain;
        return false;
}

/* Those of the fresh ones that the loop tries: all if they are few, else its share, the oldest. */
static void keep(struct kn_crew *c, struct rs_list *kept)
{
        size_t n = c->n_fresh <= FEW ? c->n_fresh : c->n_fresh / 2 < HELPS ? c->n_fresh / 2 : HELPS;

        for (struct rs_node *node = c->fresh.first, *next; node && n && !c->skip; node = next) {
                struct rs_disk *d = RS_CONTAINER(node, struct rs_disk, work.node);
                next = node->next;
                if (!may_be_quick(&d->work))
                        continue;
                unfresh(c, d);
                rs_list_push(kept, node);
                n--;
        }
}

static void refuse(struct kn_crew *c, struct rs_list *works, int code)
{
        for (struct rs_node *n; (n = rs_list_pop(works));) {
                struct rs_disk *d = RS_CONTAINER(n, struct rs_disk, work.node);
                done(c, d, not_made(d, code));
        }
}

/* Should there be no thread, and none that can be started, that is their result. */
static void hand_over(struct kn_crew *c)
{
        for (struct rs_node *n = c->fresh.first; n; n = n->next)
                RS_CONTAINER(n, struct rs_disk, work.node)->fresh = false;
        c->n_fresh = 0;
        int rc = rs_workers_add_all(&c->workers, &c->fresh);
        if (rc < 0)
                refuse(c, &c->fresh, rc);
}

static void try_kept(struct kn_crew *c, struct rs_list *kept)
{
        struct rs_list vain = { 0 };

        for (struct rs_node *n; (n = rs_list_pop(kept));)
                if (c->skip || !try(c, RS_CONTAINER(n, struct rs_disk, work.node)))
                        rs_list_push(&vain, n);
        int rc = rs_list_empty(&vain) ? 0 : rs_workers_add_all(&c->workers, &vain);
        if (rc < 0)
                refuse(c, &vain, rc);
}

/* The threads have more than they can do. */
static void help(struct kn_crew *c, int n)
{
        struct rs_list taken = { 0 };
        struct rs_work *w;

        while (n-- > 0 && !c->skip && (w = rs_workers_take(&c->workers, may_be_quick))) {
                rs_list_push(&taken, &w->node);
                try_kept(c, &taken);
        }
}

void kn_crew_go(struct kn_crew *c)
{
        struct rs_list kept = { 0 };

        if (!c->under_way)
                return;
        if (c->n_fresh && !c->skip)
                keep(c, &kept);
        if (c->n_fresh)
                hand_over(c);
        if (!rs_list_empty(&kept))
                try_kept(c, &kept);
        else
                help(c, HELPS);
        c->skip -= c->skip > 0;
}

/* ---- back ---- */

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
                done(c, d, d->result);
        }
}

void kn_crew_end(struct kn_crew *c)
{
        if (!c)
                return;
        c->under_way -= c->n_fresh + rs_workers_drop(&c->workers);
        for (struct rs_disk *d = take(c, CLOSED); d; d = d->next) {
                c->under_way--;
                drop(d);
        }
        for (unsigned n = 0; atomic_load(&c->callers); n++) /* a few instructions, and a write to an eventfd at most */
                rs_sys_yield(n);
        rs_workers_rest(&c->workers, c->under_way == 0);
        if (c->under_way == 0)
                resha_free(c);
}
