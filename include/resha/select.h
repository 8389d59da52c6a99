/* SPDX-License-Identifier: MIT */
#ifndef RESHA_SELECT_H
#define RESHA_SELECT_H

/* Waiting for the first of several: an item or a place of a queue or channel, an event, the end of a task, an instant.
 * Exactly one of the cases is done, the others leave no trace: one item is taken or put, and none is lost by a cancel.
 *
 *     #include <stdio.h>
 *     #include <resha/resha.h>
 *
 *     struct relay { resha_queue *in, *out; resha_event stop; };
 *
 *     // Passes items on, one ahead, until it is told to stop or nothing has come for a second.
 *     static int pass_on(void *arg)
 *     {
 *             struct relay *r = arg;
 *             bool have = false;
 *             int item = 0;
 *
 *             for (;;) {
 *                     resha_case c[] = {
 *                             RESHA_ON_EVENT(&r->stop),
 *                             RESHA_ON_GET(have ? NULL : r->in, &item),  // NULL: not now
 *                             RESHA_ON_PUT(have ? r->out : NULL, &item),
 *                             RESHA_ON_TIME(resha_after(RESHA_S(1))),
 *                     };
 *                     int which = resha_select(c, 4);
 *                     if (which < 0)
 *                             return which; // -ECANCELED: nothing was done
 *                     if (which == 0 || which == 3 || c[which].result == 0)
 *                             return 0; // told to stop, too late, or a queue is shut down
 *                     have = which == 1;
 *             }
 *     }
 *
 *     static int program(void *arg)
 *     {
 *             struct relay r = { NULL, NULL, { { 0 } } };
 *             resha_queue *in RESHA_CLEANUP(resha_queue_freep) = NULL, *out RESHA_CLEANUP(resha_queue_freep) = NULL;
 *             int item = 7, rc = resha_queue_new(sizeof item, 4, NULL, &in);
 *
 *             (void)arg;
 *             if (rc == 0)
 *                     rc = resha_queue_new(sizeof item, 0, NULL, &out);
 *             r.in = in;
 *             r.out = out;
 *             RESHA_GROUP(g);
 *             resha_group_begin(&g, NULL);
 *             if (rc == 0 && (rc = resha_spawn(&g, pass_on, &r)) == 0 && (rc = resha_queue_put(in, &item)) == 1 &&
 *                 (rc = resha_queue_get(out, &item)) == 1)
 *                     printf("%d came through\n", item);
 *             resha_event_set(&r.stop);
 *             return resha_group_end(&g, rc);
 *     }
 *
 *     int main(void)
 *     {
 *             return resha_main(program, NULL);
 *     }
 */

#include <resha/base.h>
#include <resha/channel.h>
#include <resha/event.h>
#include <resha/queue.h>
#include <resha/task.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

enum resha_case_kind {
        RESHA_CASE_GET = 1,
        RESHA_CASE_PUT,
        RESHA_CASE_EVENT,
        RESHA_CASE_TASK,
        RESHA_CASE_TIME,
        RESHA_CASE_SEND,
        RESHA_CASE_RECV,
};

/* One case, in the caller's memory, where it stays while the call waits: waiting never allocates. Made by the macros
 * below; may be used again, by one task at a time. */
typedef struct resha_case {
        int result; /* of the case that was done: what its own call would have given */
        enum resha_case_kind _kind;
        union {
                resha_queue *_queue;
                resha_event *_event;
                resha_task *_task;
                resha_sender *_sender;
                resha_receiver *_receiver;
                int64_t _ns;
        } _on;
        union {
                void *_to;
                const void *_from;
        } _item;
        uint64_t _[9];
} resha_case;

#define RESHA_CASE_(kind, object, item) \
        (RESHA_LITERAL(resha_case){ .result = 0, ._kind = (kind), ._on = { object }, ._item = { item }, ._ = { 0 } })

/* resha_queue_get(): 1, or 0 if the queue is shut down and empty. A case of NULL (queue, event, task or end) never
 * happens: for what is not wanted now. */
#define RESHA_ON_GET(queue, ret_item) RESHA_CASE_(RESHA_CASE_GET, ._queue = (queue), ._to = (ret_item))

/* resha_queue_put(): 1, or 0 if the queue is shut down. *item is copied when the case is done. */
#define RESHA_ON_PUT(queue, item) RESHA_CASE_(RESHA_CASE_PUT, ._queue = (queue), ._from = (item))

/* resha_event_wait(): 0. */
#define RESHA_ON_EVENT(event) RESHA_CASE_(RESHA_CASE_EVENT, ._event = (event), ._to = NULL)

/* resha_task_wait(): 0, the task has ended; its status: resha_task_done(). */
#define RESHA_ON_TASK(task) RESHA_CASE_(RESHA_CASE_TASK, ._task = (task), ._to = NULL)

/* resha_sleep_until(): 0. Unlike a timeout around the call it cancels nothing. For a duration d: resha_after(d). */
#define RESHA_ON_TIME(instant) RESHA_CASE_(RESHA_CASE_TIME, ._ns = resha_case_ns_(instant), ._to = NULL)

/* resha_recv(): 1, or 0 if there is no sender any more and nothing is left. The other end may be on any loop or thread:
 * what another receiver was faster to take is waited for again. The task holds a reference to the end. */
#define RESHA_ON_RECV(receiver, ret_item) RESHA_CASE_(RESHA_CASE_RECV, ._receiver = (receiver), ._to = (ret_item))

/* resha_send(): 1, or 0 if there is no receiver any more. *item is copied when the case is done. */
#define RESHA_ON_SEND(sender, item) RESHA_CASE_(RESHA_CASE_SEND, ._sender = (sender), ._from = (item))

/* A duration is none, and does not compile. */
static inline int64_t resha_case_ns_(resha_instant instant)
{
        return instant.ns;
}

/* Looks at the cases in the order given, and does the first that can be done at once; if there is none, waits for the
 * first that can. The index of the case that was done, with its result in cases[index].result; or, with nothing done,
 * -ECANCELED; -EINVAL (no case, or one that is not made by the macros, or a task never spawned), -EDEADLK (a case waits
 * for the caller's own end), -EPERM (a case waits for a task of another loop, or where tasks of another loop wait, or
 * a channel of the parent process),
 * -EBUSY (another task waits with one of these cases), -ENOMEM (a put without a bound). [task] cancellation point */
RESHA_API RESHA_MUST int resha_select(resha_case *cases, size_t n);

/* The same without waiting: -EAGAIN if none can be done at once. [loop] */
RESHA_API int resha_try_select(resha_case *cases, size_t n);

RESHA_END_DECLS
#endif
