/* SPDX-License-Identifier: MIT */
#ifndef RESHA_QUEUE_H
#define RESHA_QUEUE_H

/* A bounded queue between tasks of one loop. Items are copied in and out; an item goes directly to the first waiting
 * getter, a place to the first waiting putter. No item is lost or doubled by a cancel. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

typedef struct resha_queue resha_queue;

/* item_size: bytes, from 1 to 64 KiB. capacity: items, at least 1. drop: releases items that are left when the queue is
 * freed; may be NULL. 0, -EINVAL, -ENOMEM. [loop] */
RESHA_API int resha_queue_new(size_t item_size, size_t capacity, resha_drop_fn *drop, resha_queue **ret_queue);

/* Drops what is left and releases it; NULL is fine. Tasks that still wait for it abort the program: let their group end
 * first. [loop] */
RESHA_API void resha_queue_free(resha_queue *q);
RESHA_API void resha_queue_freep(resha_queue **q);

/* Puts a copy of *item at the end; waits while the queue is full. 1, 0 if shut down, -ECANCELED (not put). [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_queue_put(resha_queue *q, const void *item);

/* Takes the first item; waits while the queue is empty. 1, 0 if shut down and empty, -ECANCELED (none taken). [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_queue_get(resha_queue *q, void *ret_item);

/* The same without waiting: 1, 0, or -EAGAIN. [loop] */
RESHA_API int resha_queue_try_put(resha_queue *q, const void *item);
RESHA_API int resha_queue_try_get(resha_queue *q, void *ret_item);

/* No more puts: waiting putters get 0; getters take what is left, then get 0. Idempotent. [loop] */
RESHA_API void resha_queue_shutdown(resha_queue *q);

/* Items inside. [loop] */
RESHA_API size_t resha_queue_count(const resha_queue *q);

RESHA_END_DECLS
#endif
