/* SPDX-License-Identifier: MIT */
#ifndef RS_SIGNAL_QUEUE_H
#define RS_SIGNAL_QUEUE_H

/* Signals on their way from the handler to a task. */

#include <resha/signal.h>

enum { RS_SIGNALS = 64 };

struct rs_signal_queue;

/* `realtime`: with room for those too. NULL: no memory. Freed with resha_free(). */
struct rs_signal_queue *rs_signal_queue_new(bool realtime);

/* Async-signal-safe, on any thread. True: who takes from the queue is to be woken. */
bool rs_signal_queue_put(struct rs_signal_queue *q, const resha_signal_info *info);

/* On the loop's thread. */
bool rs_signal_queue_take(struct rs_signal_queue *q, resha_signal_info *ret_info);

/* Standard signals coalesce, as in the kernel; real-time ones do not. */
bool rs_signal_realtime(int sig);

#endif
