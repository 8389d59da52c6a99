/* SPDX-License-Identifier: MIT */
/* Nudges: a real-time signal with an empty handler, installed without SA_RESTART, for one thread at a time.
 *
 * Which signal: the first from SIGRTMAX - 4 downwards that is handled by default. Programs that use real-time signals
 * mostly count from SIGRTMIN upwards; the topmost ones belong to debuggers and the like. Threads of ours block all
 * signals; this one is let through only between open and close. A nudge that has come between the last system call and
 * close is taken out of the way there, so that it cannot end a call of whatever the thread does next. */

#include "sys/nudge.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "sys/sys.h"

enum { FROM_TOP = 4, TRIED = 8 };

static struct {
        struct rs_lock lock;
        unsigned users;
        int sig; /* while there are users */
        struct sigaction before;
} nudge = { .lock = RS_LOCK_INIT };

static void nothing(int sig)
{
        (void)sig;
}

static bool is_ours(int sig)
{
        struct sigaction now;

        return rs_sys_signal_get(sig, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == nothing;
}

/* With the lock. */
static int install(void)
{
        int rc = -EBUSY;

        for (int sig = SIGRTMAX - FROM_TOP; sig > SIGRTMAX - FROM_TOP - TRIED && sig > SIGRTMIN; sig--) {
                rc = rs_sys_signal_get(sig, &nudge.before);
                if (rc < 0)
                        return rc;
                if ((nudge.before.sa_flags & SA_SIGINFO) || nudge.before.sa_handler != SIG_DFL)
                        continue;
                nudge.sig = sig;
                return rs_sys_signal_interrupt(sig, nothing);
        }
        return -EBUSY;
}

int rs_nudge_use(void)
{
        rs_lock(&nudge.lock);
        int rc = nudge.users ? 0 : install();
        nudge.users += rc == 0;
        rs_unlock(&nudge.lock);
        return rc;
}

/* A handler that the program has set meanwhile stays. */
static void put_back(void)
{
        if (is_ours(nudge.sig))
                rs_sys_signal_put(nudge.sig, &nudge.before);
}

void rs_nudge_unuse(void)
{
        rs_lock(&nudge.lock);
        if (--nudge.users == 0)
                put_back();
        rs_unlock(&nudge.lock);
}

void rs_nudge_forked(void)
{
        nudge.lock = (struct rs_lock)RS_LOCK_INIT;
        if (nudge.users)
                put_back();
        nudge.users = 0;
}

void rs_nudge_open(void)
{
        (void)rs_sys_signal_block(nudge.sig, false);
}

void rs_nudge_close(void)
{
        (void)rs_sys_signal_block(nudge.sig, true);
        rs_sys_signal_discard(nudge.sig);
}

/* Should the program have taken the signal for itself meanwhile, its handler is not called for us. */
void rs_nudge(struct rs_thread t)
{
        if (is_ours(nudge.sig))
                rs_thread_signal(t, nudge.sig);
}
