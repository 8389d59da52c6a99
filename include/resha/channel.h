/* SPDX-License-Identifier: MIT */
#ifndef RESHA_CHANNEL_H
#define RESHA_CHANNEL_H

/* Items from one loop or thread to another: bounded, in order, with two ends that are closed for themselves. A channel
 * may also join tasks of one loop; a queue (queue.h) does more there.
 *
 *     struct side { resha_sender *tx; resha_receiver *rx; };
 *
 *     static int side(void *arg) // whichever ends first, well or badly, releases the other
 *     {
 *             struct side *s = arg;
 *             resha_sender *tx RESHA_CLEANUP(resha_sender_closep) = s->tx;
 *             resha_receiver *rx RESHA_CLEANUP(resha_receiver_closep) = s->rx;
 *             int v, rc = 1;
 *
 *             if (tx)
 *                     for (v = 0; v < 1000 && rc == 1; v++)
 *                             rc = resha_send(tx, &v); // 0: nobody receives any more
 *             else
 *                     while ((rc = resha_recv(rx, &v)) == 1) // 0: all senders have closed, and nothing is left
 *                             printf("%d\n", v);
 *             return rc < 0 ? rc : 0;
 *     }
 *
 * Who uses an end holds a reference to it, and gives it back by closing; the last one to do so closes that side. What
 * one sender (one task or thread) sends comes in order; who of several gets the next place or item is not promised. A
 * select waits for ends, too (select.h).
 *
 * A loop that sleeps is woken; while both sides are busy there is no system call. Before its loop sleeps, a task that
 * waits looks for the other side, if nobody else is ready: as long as that moves, and for some 50 us at most while it
 * does not. Between two processors a channel of few places costs a way there and back for each: give it 16 or more.
 *
 * A task that waits may be woken from outside of its loop, as references have no owner: no deadlock is seen while one
 * does. (A queue sees it. So does the simulated world, which waits for no threads.) A run that is given up with tasks
 * in it takes them out of the lines, loses no item, and does not close the ends that they hold. A channel that was made
 * before a fork() in a run is the parent's: in the child, calls give -EPERM and the others do nothing. */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_sender resha_sender;
typedef struct resha_receiver resha_receiver;

typedef struct resha_channel_opts {
        /* releases items that nobody received, on the thread of the last receiver's close; must not use this channel
         * [NULL: they need no release] */
        resha_drop_fn *drop;
        uint64_t _reserved[4];
} resha_channel_opts;

/* A channel, and its two ends with one reference each. item_size: bytes, from 1 to 64 KiB. capacity: items, 1 or more.
 * 0, -EINVAL, -ENOMEM. [any-thread] */
RESHA_API int resha_channel_new(size_t item_size, size_t capacity, resha_sender **ret_sender,
                                resha_receiver **ret_receiver);

/* The same with options. 0, -EINVAL, -ENOMEM. [any-thread] */
RESHA_API int resha_channel_new_opt(size_t item_size, size_t capacity, const resha_channel_opts *opts,
                                    resha_sender **ret_sender, resha_receiver **ret_receiver);

/* Sends a copy of *item; waits while the channel is full. 1, 0 if there is no receiver any more, -ECANCELED (not sent),
 * -EPERM. [task] cancellation point */
RESHA_API RESHA_MUST int resha_send(resha_sender *s, const void *item);

/* Receives the next item; waits while the channel is empty. 1, 0 if there is no sender any more and nothing is left,
 * -ECANCELED (nothing is taken), -EPERM. [task] cancellation point */
RESHA_API RESHA_MUST int resha_recv(resha_receiver *r, void *ret_item);

/* The same without waiting: 1, 0, -EAGAIN, -EPERM. [any-thread] */
RESHA_API int resha_try_send(resha_sender *s, const void *item);
RESHA_API int resha_try_recv(resha_receiver *r, void *ret_item);

/* The same for threads without a loop: block the thread for at most `at_most` (zero or negative: a look). 1, 0, -ETIME
 * (nothing was sent or taken), -EDEADLK on a thread that runs a loop, -EPERM. [any-thread], blocks it */
RESHA_API RESHA_MUST int resha_send_blocking(resha_sender *s, const void *item, resha_duration at_most);
RESHA_API RESHA_MUST int resha_recv_blocking(resha_receiver *r, void *ret_item, resha_duration at_most);

/* One reference more to an end that is held (returns it). NULL is fine. [any-thread] */
RESHA_API resha_sender *resha_sender_ref(resha_sender *s);
RESHA_API resha_receiver *resha_receiver_ref(resha_receiver *r);

/* Gives a reference back. After the last sender's, receivers take what is left, then get 0. After the last receiver's,
 * senders get 0, and what is left is dropped. Waiting tasks and threads of the other side are told. NULL is fine.
 * [any-thread] */
RESHA_API void resha_sender_close(resha_sender *s);
RESHA_API void resha_sender_closep(resha_sender **s);
RESHA_API void resha_receiver_close(resha_receiver *r);
RESHA_API void resha_receiver_closep(resha_receiver **r);

RESHA_END_DECLS
#endif
