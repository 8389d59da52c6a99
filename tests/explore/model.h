/* SPDX-License-Identifier: MIT */
#ifndef MODEL_H
#define MODEL_H

/* What mutex, semaphore, queue, event, condition and select promise, as the simplest program that does it: plain
 * arrays, no tasks. The explorer makes each call of the library here, too, and compares what came of it. */

#include <stdbool.h>
#include <stdint.h>

enum { TASKS_MAX = 4, OPS_MAX = 8, CAPACITY_MAX = 2, ITEMS_MAX = TASKS_MAX * OPS_MAX };

enum op {
        END,
        LOCK,
        UNLOCK,
        ACQUIRE,
        RELEASE,
        PUT,
        GET,
        SHUTDOWN,
        EVENT_WAIT,
        EVENT_SET,
        EVENT_CLEAR,
        SELECT, /* an item of the queue, else the event */
        MEET,   /* of a rendezvous: an item, else a place for its own; not where the queue is shut down */
        CONDITION_WAIT,
        NOTIFY,
        NOTIFY_ALL,
};

enum phase {
        ENTERED, /* in front of its operation: ready */
        WAITING, /* in a line */
        WOKEN,   /* its operation is done, and it has not run since */
        DONE,
};

enum line { FOR_MUTEX, FOR_PERMIT, GETTERS, PUTTERS, FOR_EVENT, FOR_NOTICE, LINES };

/* All of it is one state of the search: no pointers, nothing that does not matter. */
struct model {
        struct {
                uint8_t pc, phase;
                bool cancelled; /* the operation it is in */
                bool selects;   /* stands in the lines of SELECT or MEET */
                int8_t result;  /* of its operation; while it waits for the mutex again: what it will be */
                uint8_t item;   /* it puts, or has got */
        } task[TASKS_MAX];
        struct {
                uint8_t n, task[TASKS_MAX];
        } line[LINES];
        int8_t owner; /* of the mutex; -1: free */
        uint8_t permits;
        uint8_t capacity, count, items[CAPACITY_MAX];
        bool shutdown, set;
};

/* Ways for the model to be wrong, so that the explorer can show that it would see it. */
enum planted {
        RIGHT,
        LAST_IN_LINE_FIRST,         /* every line is served from its end */
        CANCELLED_MAY_KEEP_PERMIT,  /* a waiter that was woken and then cancelled does not get its permit */
        CANCELLED_GIVES_ITEM_BACK,  /* nor its item */
        CONDITION_IGNORES_MUTEX,    /* a cancelled waiter goes on without the mutex */
        NOTICE_PASSES_ON_CANCELLED, /* a notified waiter that is cancelled then says so */
        EVENT_WAKES_ONE,
        SELECT_KEEPS_ITS_PLACE, /* in the queue's line, when the event is what it got */
        PLANTED,
};
extern enum planted planted;

bool cancellable(enum op op);

/* Task i calls op; item: what it puts. After that it is WAITING, or WOKEN with its result. */
void model_call(struct model *m, unsigned i, enum op op, uint8_t item);

/* The operation that task i is in is cancelled. */
void model_cancel(struct model *m, unsigned i, enum op op);

#endif
