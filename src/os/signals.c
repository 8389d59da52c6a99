/* SPDX-License-Identifier: MIT */
/* Signals: one dispatcher for the process, because handlers belong to the process and not to a loop.
 *
 * The handler marks the signal at each subscriber that wants it, with atomics only, and wakes its loop, which calls
 * dispatch() on its own thread: that hands signals to the tasks that wait. What nobody waits for stays marked.
 *
 * In the simulated world signals are raised by the program: its subscribers are in the same list, but have no handler,
 * and the handler passes over them.
 *
 * Invariants
 *  1. The handler walks the list without a lock, on any thread: who takes a subscriber out waits until no handler is
 *     running before it frees it.
 *  2. A signal has our handler exactly while some subscriber wants it, unless the program has set one itself meanwhile,
 *     which stays; `before` is what it had.
 *  3. A child process that was forked without exec starts without subscribers and with the former dispositions. Until
 *     it has them, and in one that came into being in another way, the handler is there still, and does what they
 *     would.
 *  4. Of the subscribers of one loop that want a signal, one at most says that its thread blocked it. */

#include "os/signals.h"

#include <errno.h>

#include <resha/alloc.h>

#include "sys/sys.h"
#include "sys/thread.h"

static struct {
        struct rs_lock lock; /* all but what the handler uses */
        unsigned users[RS_SIGNALS + 1];
        struct sigaction before[RS_SIGNALS + 1];
        unsigned ctrl_c_users;
        _Atomic(struct rs_subscriber *) first;
        atomic_int owner; /* the process */
        atomic_uint handling;
        atomic_bool ctrl_c; /* the second SIGINT ends the process */
        atomic_bool interrupted;
} dispatcher = { .lock = RS_LOCK_INIT };

static bool wants(const struct rs_subscriber *s, int sig)
{
        return (atomic_load(&s->wanted) & rs_signal_bit(sig)) != 0;
}

/* Async-signal-safe. */
static void mark(struct rs_subscriber *s, const resha_signal_info *info)
{
        bool wake = true;

        if (s->queue)
                wake = rs_signal_queue_put(s->queue, info);
        else
                atomic_fetch_or(&s->pending, rs_signal_bit(info->signal));
        if (wake)
                rs_inbox_wake(s->inbox);
}

/* ---- the handler ---- */

static void die(int sig)
{
        rs_sys_signal_default(sig);
        rs_sys_raise(sig); /* takes effect when the handler returns */
}

/* Which of its fields are valid goes by si_code. */
static resha_signal_info describe(int sig, const siginfo_t *info)
{
        resha_signal_info r = { .signal = sig, .code = info->si_code };
        bool child = sig == SIGCHLD && info->si_code > 0;

        if (child)
                r.status = info->si_status;
        if (child || info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL ||
            info->si_code == SI_MESGQ) {
                r.pid = info->si_pid;
                r.uid = info->si_uid;
        }
        if (info->si_code == SI_QUEUE || info->si_code == SI_MESGQ || info->si_code == SI_TIMER)
                r.value = (intptr_t)info->si_value.sival_ptr;
        return r;
}

/* Whether tasks of a loop that runs beside that of `s` ask for it: the run leaves it to them. Those of its own loop are
 * asked when it comes there. */
static bool asked_beside(const struct rs_subscriber *s, int sig)
{
        const void *beside = s->loop->beside;
        const struct rs_subscriber *o = beside ? atomic_load(&dispatcher.first) : NULL;

        while (o && !(o->loop->beside == beside && !o->interrupt && wants(o, sig)))
                o = atomic_load(&o->next);
        return o != NULL;
}

static void mark_all(const resha_signal_info *info)
{
        struct rs_subscriber *s = atomic_load(&dispatcher.first);

        for (; s; s = atomic_load(&s->next))
                if (wants(s, info->signal) && !s->loop->simulated && !(s->interrupt && asked_beside(s, info->signal)))
                        mark(s, info);
}

/* In a child of the process: a signal to the group of both may be there before anything of it has run. */
static void as_before(int sig, siginfo_t *siginfo, void *context)
{
        const struct sigaction *before = &dispatcher.before[sig];

        if (before->sa_flags & SA_SIGINFO)
                before->sa_sigaction(sig, siginfo, context);
        else if (before->sa_handler == SIG_DFL)
                die(sig);
        else if (before->sa_handler != SIG_IGN)
                before->sa_handler(sig);
}

static void handler(int sig, siginfo_t *siginfo, void *context)
{
        int saved = errno;

        atomic_fetch_add(&dispatcher.handling, 1);
        if (rs_sys_pid() != atomic_load(&dispatcher.owner)) {
                as_before(sig, siginfo, context);
        } else if (sig == SIGINT && atomic_load(&dispatcher.ctrl_c) && atomic_exchange(&dispatcher.interrupted, true)) {
                die(sig);
        } else {
                resha_signal_info info = describe(sig, siginfo);
                mark_all(&info);
        }
        atomic_fetch_sub(&dispatcher.handling, 1);
        errno = saved;
}

/* ---- on the loop ---- */

/* The next subscriber of the loop behind `s`; NULL: behind none. With the lock. */
static struct rs_subscriber *next_of(const struct rs_loop *l, struct rs_subscriber *s)
{
        s = atomic_load(s ? &s->next : &dispatcher.first);
        while (s && s->loop != l)
                s = atomic_load(&s->next);
        return s;
}

static struct rs_signal_waiter *waiter_of(struct rs_node *n)
{
        return RS_CONTAINER(n, struct rs_signal_waiter, wait.node);
}

static void hand_over(struct rs_subscriber *s)
{
        resha_signal_info info;

        while (s->waiters.first && rs_signal_queue_take(s->queue, &info)) {
                struct rs_signal_waiter *w = waiter_of(rs_list_pop(&s->waiters));
                w->info = info;
                rs_wake(&w->wait, 1);
        }
}

/* Wakes everybody who waits for one of the signals that came; one that nobody waits for is kept. */
static void wake_flags(struct rs_subscriber *s)
{
        uint64_t came = atomic_exchange(&s->pending, 0), taken = 0;

        for (struct rs_node *n = came ? s->waiters.first : NULL, *next; n; n = next) {
                struct rs_signal_waiter *w = waiter_of(n);
                next = n->next;
                if (!(w->mask & came))
                        continue;
                int sig = rs_signal_lowest(w->mask & came);
                taken |= rs_signal_bit(sig);
                rs_list_remove(&s->waiters, n);
                rs_wake(&w->wait, sig);
        }
        atomic_fetch_or(&s->pending, came & ~taken);
}

/* What the run does, it does not where tasks of its loop have asked for the signal; and without the lock. */
static void dispatch(struct rs_loop *l)
{
        void (*interrupt)(struct rs_loop * l, int sig) = NULL;
        uint64_t came = 0, asked = 0;

        rs_lock(&dispatcher.lock);
        for (struct rs_subscriber *s = next_of(l, NULL); s; s = next_of(l, s)) {
                if (s->interrupt) {
                        interrupt = s->interrupt;
                        came = atomic_exchange(&s->pending, 0);
                        continue;
                }
                asked |= atomic_load(&s->wanted);
                if (s->queue)
                        hand_over(s);
                else
                        wake_flags(s);
        }
        rs_unlock(&dispatcher.lock);
        for (came &= ~asked; came; came &= came - 1)
                interrupt(l, rs_signal_lowest(came));
}

/* ---- subscribers; with the lock ---- */

static void link_subscriber(struct rs_loop *l, struct rs_subscriber *s)
{
        if (s->loop)
                return;
        s->loop = l;
        s->inbox = rs_inbox_ref(l->inbox);
        l->on_wake = dispatch;
        atomic_store(&dispatcher.owner, rs_sys_pid());
        atomic_store(&s->next, atomic_load(&dispatcher.first));
        atomic_store(&dispatcher.first, s);
}

/* From now on s gets `sig`: before the handler is there, so that it loses nothing. */
static int want(struct rs_subscriber *s, int sig)
{
        uint64_t bit = rs_signal_bit(sig);
        int rc = 0;

        if (wants(s, sig))
                return 0;
        atomic_fetch_or(&s->wanted, bit);
        if (s->loop->simulated)
                return 0;
        if (!dispatcher.users[sig])
                rc = rs_sys_signal_watch(sig, handler, &dispatcher.before[sig]);
        if (rc < 0) {
                atomic_fetch_and(&s->wanted, ~bit);
                return rc;
        }
        dispatcher.users[sig]++;
        if (rs_sys_signal_block(sig, false))
                s->unblocked |= bit;
        return 0;
}

/* The thread blocks it as before, unless another one of the loop goes on with it. */
static void block_again(struct rs_subscriber *s, int sig)
{
        uint64_t bit = rs_signal_bit(sig);
        struct rs_subscriber *other = next_of(s->loop, NULL);

        while (other && (other == s || !wants(other, sig)))
                other = next_of(s->loop, other);
        if (other)
                other->unblocked |= s->unblocked & bit;
        else if (s->unblocked & bit)
                (void)rs_sys_signal_block(sig, true);
        s->unblocked &= ~bit;
}

static void put_back(int sig)
{
        if (rs_sys_signal_is(sig, handler))
                rs_sys_signal_put(sig, &dispatcher.before[sig]);
}

/* As it was before, once nobody wants it. */
static void unwant(struct rs_subscriber *s, int sig)
{
        atomic_fetch_and(&s->wanted, ~rs_signal_bit(sig));
        if (s->loop->simulated)
                return;
        block_again(s, sig);
        if (--dispatcher.users[sig] == 0)
                put_back(sig);
}

static void unlink_subscriber(struct rs_subscriber *s)
{
        _Atomic(struct rs_subscriber *) *link = &dispatcher.first;

        for (uint64_t left = atomic_load(&s->wanted); left; left &= left - 1)
                unwant(s, rs_signal_lowest(left));
        while (atomic_load(link) != s)
                link = &atomic_load(link)->next;
        atomic_store(link, atomic_load(&s->next));
        for (unsigned n = 0; atomic_load(&dispatcher.handling); n++)
                rs_sys_yield(n);
        rs_inbox_unref(s->inbox);
        s->loop = NULL;
}

/* Whether the run itself has SIGINT. */
static bool has_ctrl_c(const struct rs_loop *l)
{
        struct rs_subscriber *s = next_of(l, NULL);

        while (s && !(s->interrupt && wants(s, SIGINT)))
                s = next_of(l, s);
        return s != NULL;
}

int rs_signals_join(struct rs_loop *l, struct rs_subscriber *s, uint64_t mask)
{
        rs_lock(&dispatcher.lock);
        int rc = (mask & rs_signal_bit(SIGINT)) && has_ctrl_c(l) ? -EBUSY : 0;
        if (rc == 0)
                link_subscriber(l, s);
        for (uint64_t left = mask; left && rc == 0; left &= left - 1)
                rc = want(s, rs_signal_lowest(left));
        rs_unlock(&dispatcher.lock);
        return rc;
}

void rs_signals_leave(struct rs_subscriber *s)
{
        rs_lock(&dispatcher.lock);
        if (s->loop)
                unlink_subscriber(s);
        rs_unlock(&dispatcher.lock);
}

struct rs_subscriber *rs_signals_flags(struct rs_loop *l)
{
        rs_lock(&dispatcher.lock);
        struct rs_subscriber *s = next_of(l, NULL);
        while (s && (s->queue || s->interrupt))
                s = next_of(l, s);
        rs_unlock(&dispatcher.lock);
        return s;
}

/* ---- the run ---- */

/* 1: the run may have it; 0: it is ignored, or the program has a handler of its own. With the lock. */
static int is_default(const struct rs_loop *l, int sig)
{
        struct sigaction now;

        if (l->simulated || dispatcher.users[sig])
                return 1;
        int rc = rs_sys_signal_get(sig, &now);
        return rc < 0 ? rc : now.sa_handler == SIG_DFL;
}

static int interrupt_by(struct rs_loop *l, struct rs_subscriber *s, int sig)
{
        int rc = is_default(l, sig);

        if (rc <= 0)
                return rc;
        link_subscriber(l, s);
        if (sig == SIGINT && !l->simulated && dispatcher.ctrl_c_users++ == 0) {
                atomic_store(&dispatcher.interrupted, false);
                atomic_store(&dispatcher.ctrl_c, true);
        }
        return want(s, sig);
}

int rs_signals_interrupts(struct rs_loop *l, struct rs_subscriber *s, void (*fn)(struct rs_loop *l, int sig), bool term)
{
        s->interrupt = fn;
        rs_lock(&dispatcher.lock);
        int rc = l->opts.keep_sigint ? 0 : interrupt_by(l, s, SIGINT);
        if (rc == 0 && term)
                rc = interrupt_by(l, s, SIGTERM);
        rs_unlock(&dispatcher.lock);
        return rc;
}

bool rs_signals_simulate(struct rs_loop *l, const resha_signal_info *info)
{
        bool taken = false;

        rs_lock(&dispatcher.lock);
        for (struct rs_subscriber *s = next_of(l, NULL); s; s = next_of(l, s))
                if (wants(s, info->signal)) {
                        mark(s, info);
                        taken = true;
                }
        rs_unlock(&dispatcher.lock);
        return taken;
}

/* A subscription is its owner's, who may close it later; it gets nothing more. */
void rs_signals_end(struct rs_loop *l)
{
        struct rs_subscriber *s, *flags = NULL;
        size_t open = 0;

        rs_lock(&dispatcher.lock);
        while ((s = next_of(l, NULL))) {
                if (s->interrupt && wants(s, SIGINT) && !l->simulated && --dispatcher.ctrl_c_users == 0)
                        atomic_store(&dispatcher.ctrl_c, false);
                unlink_subscriber(s);
                open += s->queue != NULL;
                if (!s->queue && !s->interrupt)
                        flags = s;
        }
        rs_unlock(&dispatcher.lock);
        l->on_wake = NULL;
        resha_free(flags);
        if (open)
                rs_report(l, RESHA_REPORT_LEFT_OPEN, 0, NULL, "%zu %s not closed before the run ended", open,
                          open == 1 ? "subscription to signals was" : "subscriptions to signals were");
}

/* Another thread of the parent may have held the lock, or been in the handler; here there is none. The subscribers stay
 * behind as the parent's loops do. */
void rs_signals_forked(void)
{
        for (struct rs_subscriber *s = next_of(rs_loop_current, NULL); s; s = next_of(rs_loop_current, s))
                for (uint64_t left = s->unblocked; left; left &= left - 1)
                        (void)rs_sys_signal_block(rs_signal_lowest(left), true);
        dispatcher.lock = (struct rs_lock)RS_LOCK_INIT;
        atomic_store(&dispatcher.first, NULL);
        atomic_store(&dispatcher.handling, 0);
        atomic_store(&dispatcher.ctrl_c, false);
        dispatcher.ctrl_c_users = 0;
        for (int sig = 1; sig <= RS_SIGNALS; sig++) {
                if (dispatcher.users[sig])
                        put_back(sig);
                dispatcher.users[sig] = 0;
        }
}
