/* SPDX-License-Identifier: MIT */
/* Signals: one dispatcher for the process, because handlers belong to the process and not to a loop.
 *
 * The handler only marks: it sets the signal's bit in each loop that wants it, and wakes that loop, which calls
 * dispatch() on its own thread. So a signal is a flag, not a count: what comes twice before it is taken is one, as
 * the kernel has it for standard signals. A bit that nobody waits for stays until somebody does, or the run ends.
 *
 * Invariants
 *  1. A loop's subscriber lives from its first wish to the end of its run. The handler walks the list without a lock,
 *     on any thread: who takes a subscriber out waits until no handler is running before it frees it.
 *  2. A signal has our handler exactly while some loop wants it; `before` is what it had.
 *  3. A child process that was forked without exec starts without subscribers and with the former dispositions. One
 *     that came into being in another way has the handler still: there it does as the default does. */

#include "os/signals.h"

#include <errno.h>
#include <stdatomic.h>

#include <resha/alloc.h>
#include <resha/signal.h>

#include "core/core.h"
#include "sys/sys.h"
#include "sys/thread.h"

enum { SIGNALS = 64 };

struct subscriber {
        _Atomic(struct subscriber *) next;
        struct rs_loop *loop;
        struct rs_inbox *inbox;
        atomic_uint_fast64_t wanted;  /* bit sig - 1 */
        atomic_uint_fast64_t pending; /* came, and is not taken yet */
        void (*interrupt)(struct rs_loop *l);
        struct rs_list waiters; /* of struct waiter, in order of their coming */
};

struct waiter {
        struct rs_wait wait;
        struct subscriber *subscriber;
        uint64_t mask;
};

static struct {
        struct rs_lock lock; /* all but what the handler uses */
        unsigned users[SIGNALS + 1];
        struct sigaction before[SIGNALS + 1];
        unsigned ctrl_c_users;
        _Atomic(struct subscriber *) first;
        atomic_int owner; /* the process */
        atomic_uint handling;
        atomic_bool ctrl_c; /* the second SIGINT ends the process */
        atomic_bool interrupted;
} dispatcher = { .lock = RS_LOCK_INIT };

static uint64_t bit_of(int sig)
{
        return UINT64_C(1) << (sig - 1);
}

static int lowest(uint64_t bits)
{
        return __builtin_ctzll(bits) + 1;
}

/* ---- the handler ---- */

static void die(int sig)
{
        rs_sys_signal_default(sig);
        rs_sys_raise(sig); /* takes effect when the handler returns */
}

static void mark(int sig)
{
        struct subscriber *s = atomic_load(&dispatcher.first);

        for (; s; s = atomic_load(&s->next)) {
                if (!(atomic_load(&s->wanted) & bit_of(sig)))
                        continue;
                atomic_fetch_or(&s->pending, bit_of(sig));
                rs_inbox_wake(s->inbox);
        }
}

static void handler(int sig)
{
        int saved = errno;

        atomic_fetch_add(&dispatcher.handling, 1);
        if (rs_sys_pid() != atomic_load(&dispatcher.owner))
                die(sig);
        else if (sig == SIGINT && atomic_load(&dispatcher.ctrl_c) && atomic_exchange(&dispatcher.interrupted, true))
                die(sig);
        else
                mark(sig);
        atomic_fetch_sub(&dispatcher.handling, 1);
        errno = saved;
}

/* ---- on the loop ---- */

static struct subscriber *find(const struct rs_loop *l)
{
        struct subscriber *s = atomic_load(&dispatcher.first);

        while (s && s->loop != l)
                s = atomic_load(&s->next);
        return s;
}

/* Wakes everybody who waits for one of the signals that came; one that nobody waits for is kept. */
static void dispatch(struct rs_loop *l)
{
        rs_lock(&dispatcher.lock);
        struct subscriber *s = find(l);
        rs_unlock(&dispatcher.lock);
        uint64_t came = s ? atomic_exchange(&s->pending, 0) : 0, taken = 0;

        if (!came)
                return;
        if (s->interrupt && (came & bit_of(SIGINT))) {
                s->interrupt(l);
                came &= ~bit_of(SIGINT);
        }
        for (struct rs_node *n = s->waiters.first, *next; n; n = next) {
                struct waiter *w = RS_CONTAINER(n, struct waiter, wait.node);
                next = n->next;
                if (!(w->mask & came))
                        continue;
                int sig = lowest(w->mask & came);
                taken |= bit_of(sig);
                rs_list_remove(&s->waiters, n);
                rs_wake(&w->wait, sig);
        }
        atomic_fetch_or(&s->pending, came & ~taken);
}

/* The loop's subscriber, made when there is none. With the lock. */
static struct subscriber *subscribe(struct rs_loop *l)
{
        struct subscriber *s = find(l);

        if (s)
                return s;
        s = resha_calloc(1, sizeof *s);
        if (!s)
                return NULL;
        s->loop = l;
        s->inbox = rs_inbox_ref(l->inbox);
        l->on_wake = dispatch;
        atomic_store(&dispatcher.owner, rs_sys_pid());
        atomic_store(&s->next, atomic_load(&dispatcher.first));
        atomic_store(&dispatcher.first, s);
        return s;
}

/* From now on s gets `sig`. With the lock. */
static int want(struct subscriber *s, int sig)
{
        if (atomic_load(&s->wanted) & bit_of(sig))
                return 0;
        atomic_fetch_or(&s->wanted, bit_of(sig)); /* before the handler is there, so that it loses nothing */
        int rc = dispatcher.users[sig] ? 0 : rs_sys_signal_catch(sig, handler, &dispatcher.before[sig]);
        if (rc < 0)
                atomic_fetch_and(&s->wanted, ~bit_of(sig));
        else
                dispatcher.users[sig]++;
        return rc;
}

/* As it was before, once nobody wants it. With the lock. */
static void unwant(int sig)
{
        if (--dispatcher.users[sig] == 0)
                rs_sys_signal_put(sig, &dispatcher.before[sig]);
}

static int install_ctrl_c(struct rs_loop *l, void (*fn)(struct rs_loop *l))
{
        struct sigaction now;
        int rc = dispatcher.users[SIGINT] ? 0 : rs_sys_signal_get(SIGINT, &now);

        if (rc < 0)
                return rc;
        if (!dispatcher.users[SIGINT] && now.sa_handler != SIG_DFL)
                return 0;
        struct subscriber *s = subscribe(l);
        if (!s)
                return -ENOMEM;
        s->interrupt = fn;
        if (dispatcher.ctrl_c_users++ == 0) {
                atomic_store(&dispatcher.interrupted, false);
                atomic_store(&dispatcher.ctrl_c, true);
        }
        return want(s, SIGINT);
}

int rs_signals_sigint_install(struct rs_loop *l, void (*fn)(struct rs_loop *l))
{
        rs_lock(&dispatcher.lock);
        int rc = install_ctrl_c(l, fn);
        rs_unlock(&dispatcher.lock);
        return rc;
}

static void unlink_subscriber(struct subscriber *s)
{
        _Atomic(struct subscriber *) *link = &dispatcher.first;

        while (atomic_load(link) != s)
                link = &atomic_load(link)->next;
        atomic_store(link, atomic_load(&s->next));
}

void rs_signals_end(struct rs_loop *l)
{
        rs_lock(&dispatcher.lock);
        struct subscriber *s = find(l);
        if (s) {
                for (uint64_t left = atomic_load(&s->wanted); left; left &= left - 1)
                        unwant(lowest(left));
                if (s->interrupt && --dispatcher.ctrl_c_users == 0)
                        atomic_store(&dispatcher.ctrl_c, false);
                unlink_subscriber(s);
                while (atomic_load(&dispatcher.handling))
                        rs_sys_yield();
        }
        rs_unlock(&dispatcher.lock);
        if (!s)
                return;
        l->on_wake = NULL;
        rs_inbox_unref(s->inbox);
        resha_free(s);
}

/* Another thread of the parent may have held the lock, or been in the handler; here there is none. The subscribers stay
 * behind as the parent's loops do. */
void rs_signals_forked(void)
{
        dispatcher.lock = (struct rs_lock)RS_LOCK_INIT;
        atomic_store(&dispatcher.first, NULL);
        atomic_store(&dispatcher.handling, 0);
        atomic_store(&dispatcher.ctrl_c, false);
        dispatcher.ctrl_c_users = 0;
        for (int sig = 1; sig <= SIGNALS; sig++) {
                if (dispatcher.users[sig])
                        rs_sys_signal_put(sig, &dispatcher.before[sig]);
                dispatcher.users[sig] = 0;
        }
}

/* ---- waiting ---- */

static bool can_wait_for(int sig)
{
        switch (sig) {
        case SIGKILL:
        case SIGSTOP: /* cannot be caught */
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE: return false; /* what the thread itself did: going on would do it again */
        default: return sig > 0 && sig <= SIGNALS;
        }
}

static int mask_of(const int *signals, size_t n, uint64_t *ret_mask)
{
        if (n == 0)
                return resha_fail_at(-EINVAL, NULL, "no signal to wait for");
        for (size_t i = 0; i < n; i++) {
                if (!can_wait_for(signals[i]))
                        return resha_fail_at(-EINVAL, NULL, "signal %d cannot be waited for", signals[i]);
                *ret_mask |= bit_of(signals[i]);
        }
        return 0;
}

/* *ret_subscriber wants all of the mask. */
static int prepare(struct rs_loop *l, uint64_t mask, struct subscriber **ret_subscriber)
{
        int rc = 0;

        rs_lock(&dispatcher.lock);
        struct subscriber *s = subscribe(l);
        if (!s)
                rc = -ENOMEM;
        else if (s->interrupt && (mask & bit_of(SIGINT)))
                rc = -EBUSY;
        for (uint64_t left = mask; left && rc == 0; left &= left - 1)
                rc = want(s, lowest(left));
        rs_unlock(&dispatcher.lock);
        *ret_subscriber = s;
        return rc;
}

static void signal_cancel(struct rs_wait *wait)
{
        struct waiter *w = RS_CONTAINER(wait, struct waiter, wait);

        rs_list_remove(&w->subscriber->waiters, &wait->node);
        rs_wake(wait, -ECANCELED);
}

int resha_signal_wait(const int *signals, size_t n, int *ret_signal)
{
        struct waiter w = { .wait = { .cancel = signal_cancel, .what = "signal" } };
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = mask_of(signals, n, &w.mask);
        if (rc < 0)
                return rc;
        rc = prepare(l, w.mask, &w.subscriber);
        if (rc == -EBUSY)
                return resha_fail_at(-EINVAL, NULL, "SIGINT cancels the main task of this run: run with keep_sigint");
        if (rc < 0)
                return resha_fail_at(rc, NULL, "cannot catch the signals to wait for: %s", resha_strerror(rc));
        uint64_t came = atomic_load(&w.subscriber->pending) & w.mask;
        if (came) {
                atomic_fetch_and(&w.subscriber->pending, ~bit_of(lowest(came)));
                *ret_signal = lowest(came);
                return rs_complete(l, 0);
        }
        rs_list_push(&w.subscriber->waiters, &w.wait.node);
        l->jobs++;
        int result = (int)rs_wait(l, &w.wait);
        l->jobs--;
        if (result < 0)
                return result;
        *ret_signal = result;
        return 0;
}
