/* SPDX-License-Identifier: MIT */
#ifndef RESHA_SIGNAL_H
#define RESHA_SIGNAL_H

/* Signals as something to wait for, on a loop of any thread; the guide is docs/signals.md.
 *
 *     RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
 *     resha_signal_info info;
 *     int rc = resha_signal_open((const int[]){ SIGHUP, SIGTERM }, 2, &s);   // from here on none is lost
 *
 *     while (rc >= 0 && (rc = resha_signal_next(s, &info)) == 1)
 *             ...
 *
 * What a signal does belongs to the process, not to a loop. While somebody, on any loop, asks for a signal, the process
 * has the library's handler for it; once nobody does any more, it has again what it had before, be it the default, a
 * handler of the program's own (which is not called meanwhile) or that it is ignored. One that the program has set
 * itself in between stays. Each who asks gets each signal. A signal that the loop's thread blocks is unblocked there
 * for as long.
 *
 * In the simulated world signals are those of resha_test_signal() (resha/test.h): what the process does with real ones
 * is left alone, and to wait for one that nobody raises is a deadlock. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* A subscription to some signals; it belongs to the loop on which it was opened. */
typedef struct resha_signals resha_signals;

/* As siginfo_t, sigaction(2), has it. */
typedef struct resha_signal_info {
        int signal;
        /* SI_USER: kill(2); SI_QUEUE: sigqueue(3); SI_KERNEL: the kernel, as by a key of the terminal; ... */
        int code;
        pid_t pid; /* who sent it, of SIGCHLD the child; 0: the kernel did, or it does not tell */
        uid_t uid;
        int status;     /* SIGCHLD: the exit code, or the number of the signal, as `code` says (CLD_EXITED, ...) */
        intptr_t value; /* of sigqueue(3), and of timers and message queues of POSIX; else 0 */
        /* Standard signals coalesce, here as on their way in the kernel: how many came since the last one that was
         * taken, at least 1; the rest is the first one's. Real-time signals (SIGRTMIN to SIGRTMAX) come one by one. */
        uint64_t count;
        uint64_t lost; /* real-time signals that found the queue full since the last signal was taken */
        uint64_t _reserved[2];
} resha_signal_info;

enum { RESHA_SIGNAL_QUEUE = 512 }; /* real-time signals that a subscription keeps until they are taken */

/* Subscribes to n signals: none that comes from now on is lost until it is closed, whether somebody waits or not. 0;
 * -EINVAL for a number that cannot be caught (SIGKILL, SIGSTOP, faults of the thread itself), for SIGINT where the run
 * has it: run with keep_sigint; -ENOMEM. SIGTERM is the program's from then on, see `terminate` in resha_run_opts.
 * Not closed at the end of the run: that is reported, and done. [loop] */
RESHA_API RESHA_MUST int resha_signal_open(const int *signals, size_t n, resha_signals **ret_signals);

/* The next one, in the order in which they came: 1; 0: it was closed meanwhile. Several tasks may wait: each signal
 * goes to one of them, in the order of their coming. -ECANCELED; -EPERM on another loop. [task] cancellation point */
RESHA_API RESHA_MUST int resha_signal_next(resha_signals *s, resha_signal_info *ret_info);

/* Ends it: who waits gets 0, what was not taken is dropped, and what nobody else asks for does again what it did
 * before: the next SIGTERM may end the process. On another thread than its loop's, and in a forked child, it does
 * nothing; after the end of its run, it frees. NULL is fine. [loop] */
RESHA_API void resha_signal_close(resha_signals *s);
RESHA_API void resha_signal_closep(resha_signals **s);

/* The short form: waits for one of n signals: 0, its number in *ret_signal; errors as those of resha_signal_open(),
 * and -ECANCELED. Here a signal is a flag: it wakes every task that waits for it, one that comes twice before it is
 * taken counts once, and one that comes between two waits is kept. The first wait subscribes, until the end of the run.
 * [task] cancellation point */
RESHA_API RESHA_MUST int resha_signal_wait(const int *signals, size_t n, int *ret_signal);

RESHA_END_DECLS
#endif
