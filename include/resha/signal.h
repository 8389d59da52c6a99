/* SPDX-License-Identifier: MIT */
#ifndef RESHA_SIGNAL_H
#define RESHA_SIGNAL_H

/* Signals as something to wait for. Handlers of the process are installed while somebody waits and stay until the run
 * ends, so that a signal between two waits is not lost; then the former dispositions come back. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* Waits for one of n signals: 0, its number in *ret_signal; -ECANCELED; -EINVAL for a number that cannot be caught.
 * For SIGINT, run with keep_sigint. A signal is a flag: it wakes every task that waits for it, and one that comes
 * twice before it is taken counts once. [task] cancellation point */
RESHA_API RESHA_MUST int resha_signal_wait(const int *signals, size_t n, int *ret_signal);

RESHA_END_DECLS
#endif
