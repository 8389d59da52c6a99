/* SPDX-License-Identifier: MIT */
/* The model. Every line is first in, first out; what is given goes to the first in line at once; a cancel takes out of
 * its line who still stands there, and changes nothing for others. */

#include "model.h"

#include <errno.h>
#include <string.h>

enum planted planted;

bool cancellable(enum op op)
{
        return op == LOCK || op == ACQUIRE || op == PUT || op == GET || op == EVENT_WAIT || op == SELECT ||
               op == MEET || op == CONDITION_WAIT;
}

static void stand_in(struct model *m, enum line line, unsigned i)
{
        m->line[line].task[m->line[line].n++] = (uint8_t)i;
        m->task[i].phase = WAITING;
}

static bool leave(struct model *m, enum line line, unsigned i)
{
        for (unsigned k = 0; k < m->line[line].n; k++)
                if (m->line[line].task[k] == i) {
                        m->line[line].n--;
                        memmove(m->line[line].task + k, m->line[line].task + k + 1, m->line[line].n - k);
                        m->line[line].task[m->line[line].n] = 0;
                        return true;
                }
        return false;
}

/* The first in line, taken out; -1: nobody. */
static int next(struct model *m, enum line line)
{
        unsigned n = m->line[line].n;

        if (!n)
                return -1;
        unsigned i = m->line[line].task[planted == LAST_IN_LINE_FIRST ? n - 1 : 0];
        leave(m, line, i);
        return (int)i;
}

static void done(struct model *m, unsigned i, int result)
{
        m->task[i].phase = WOKEN;
        if (m->task[i].selects && planted != SELECT_KEEPS_ITS_PLACE) {
                leave(m, GETTERS, i);
                leave(m, PUTTERS, i);
                leave(m, FOR_EVENT, i);
        }
        m->task[i].selects = false;
        m->task[i].result = (int8_t)result;
}

/* ---- mutex and condition ---- */

/* It waits, or has, the mutex; `result` is what its call returns then. */
static void want_mutex(struct model *m, unsigned i, int result)
{
        m->task[i].result = (int8_t)result;
        if (m->owner >= 0) {
                stand_in(m, FOR_MUTEX, i);
        } else {
                m->owner = (int8_t)i;
                done(m, i, result);
        }
}

static void give_mutex(struct model *m)
{
        int i = next(m, FOR_MUTEX);

        m->owner = (int8_t)i;
        if (i >= 0)
                done(m, (unsigned)i, m->task[i].result);
}

static void notify(struct model *m, unsigned n)
{
        int i;

        while (n-- && (i = next(m, FOR_NOTICE)) >= 0)
                want_mutex(m, (unsigned)i, 0);
}

/* ---- queue ---- */

static void append(struct model *m, uint8_t item)
{
        m->items[m->count++] = item;
}

static void put(struct model *m, unsigned i, uint8_t item)
{
        int getter;

        m->task[i].item = item;
        if (m->shutdown) {
                done(m, i, 0);
        } else if ((getter = next(m, GETTERS)) >= 0) {
                m->task[getter].item = item;
                done(m, (unsigned)getter, m->task[getter].selects ? 0 : 1);
                done(m, i, 1);
        } else if (m->count < m->capacity) {
                append(m, item);
                done(m, i, 1);
        } else {
                stand_in(m, PUTTERS, i);
        }
}

static void get(struct model *m, unsigned i)
{
        int putter = -1;

        if (m->count) {
                m->task[i].item = m->items[0];
                m->count--;
                memmove(m->items, m->items + 1, sizeof m->items - 1);
                m->items[CAPACITY_MAX - 1] = 0;
                if ((putter = next(m, PUTTERS)) >= 0)
                        append(m, m->task[putter].item);
                done(m, i, 1);
        } else if ((putter = next(m, PUTTERS)) >= 0) { /* a rendezvous */
                m->task[i].item = m->task[putter].item;
                done(m, i, 1);
        } else if (m->shutdown) {
                done(m, i, 0);
        } else {
                stand_in(m, GETTERS, i);
        }
        if (putter >= 0)
                done(m, (unsigned)putter, 1);
}

/* ---- calls and cancels ---- */

static void wake_all(struct model *m, enum line line)
{
        int i;

        while ((i = next(m, line)) >= 0) {
                done(m, (unsigned)i, m->task[i].selects && line == FOR_EVENT);
                if (planted == EVENT_WAKES_ONE && line == FOR_EVENT)
                        return;
        }
}

static void give_permit(struct model *m)
{
        int i = next(m, FOR_PERMIT);

        if (i >= 0)
                done(m, (unsigned)i, 0);
        else
                m->permits++;
}

/* The first case that can be, else both are waited for. The result is which case was. */
static void select_either(struct model *m, unsigned i)
{
        if (m->count || m->line[PUTTERS].n || m->shutdown) {
                get(m, i);
                m->task[i].result = 0;
        } else if (m->set) {
                done(m, i, 1);
        } else {
                stand_in(m, GETTERS, i);
                stand_in(m, FOR_EVENT, i);
                m->task[i].selects = true;
        }
}

/* Whoever waits on one side of a rendezvous is met on the other, else it stands on both. */
static void meet(struct model *m, unsigned i, uint8_t item)
{
        if (m->line[PUTTERS].n) {
                get(m, i);
                m->task[i].result = 0;
        } else if (m->line[GETTERS].n) {
                put(m, i, item);
        } else {
                m->task[i].item = item;
                stand_in(m, GETTERS, i);
                stand_in(m, PUTTERS, i);
                m->task[i].selects = true;
        }
}

/* What a call may have to wait for. */
static void call_waiting(struct model *m, unsigned i, enum op op, uint8_t item)
{
        if (op == LOCK) {
                want_mutex(m, i, 0);
        } else if (op == ACQUIRE && !m->permits) {
                stand_in(m, FOR_PERMIT, i);
        } else if (op == ACQUIRE) {
                m->permits--;
                done(m, i, 0);
        } else if (op == PUT) {
                put(m, i, item);
        } else if (op == GET) {
                get(m, i);
        } else if (op == SELECT) {
                select_either(m, i);
        } else if (op == MEET) {
                meet(m, i, item);
        } else if (op == EVENT_WAIT && !m->set) {
                stand_in(m, FOR_EVENT, i);
        } else if (op == EVENT_WAIT) {
                done(m, i, 0);
        } else {
                stand_in(m, FOR_NOTICE, i);
                give_mutex(m);
        }
}

void model_call(struct model *m, unsigned i, enum op op, uint8_t item)
{
        if (cancellable(op)) {
                if (m->task[i].cancelled)
                        done(m, i, -ECANCELED); /* looked at first: nothing was done */
                else
                        call_waiting(m, i, op, item);
                return;
        }
        done(m, i, 0);
        switch (op) {
        case UNLOCK: give_mutex(m); break;
        case RELEASE: give_permit(m); break;
        case SHUTDOWN:
                m->shutdown = true;
                wake_all(m, GETTERS);
                wake_all(m, PUTTERS);
                break;
        case EVENT_SET:
                m->set = true;
                wake_all(m, FOR_EVENT);
                break;
        case EVENT_CLEAR: m->set = false; break;
        case NOTIFY: notify(m, 1); break;
        case NOTIFY_ALL: notify(m, TASKS_MAX); break;
        default: break;
        }
}

/* Those of a condition take the mutex again, whatever is cancelled. */
static void cancel_condition(struct model *m, unsigned i)
{
        if (leave(m, FOR_NOTICE, i)) {
                if (planted == CONDITION_IGNORES_MUTEX)
                        done(m, i, -ECANCELED);
                else
                        want_mutex(m, i, -ECANCELED);
        } else if (planted == NOTICE_PASSES_ON_CANCELLED && m->task[i].phase == WAITING) {
                m->task[i].result = -ECANCELED;
        }
}

void model_cancel(struct model *m, unsigned i, enum op op)
{
        static const enum line lines[] = {
                [LOCK] = FOR_MUTEX,       [ACQUIRE] = FOR_PERMIT, [PUT] = PUTTERS, [GET] = GETTERS,
                [EVENT_WAIT] = FOR_EVENT, [SELECT] = GETTERS,     [MEET] = GETTERS
        };

        m->task[i].cancelled = true;
        if (op == CONDITION_WAIT)
                cancel_condition(m, i);
        else if (m->task[i].phase == WAITING && leave(m, lines[op], i))
                done(m, i, -ECANCELED);
        else if (planted == CANCELLED_MAY_KEEP_PERMIT && op == ACQUIRE && m->task[i].phase == WOKEN)
                done(m, i, -ECANCELED);
        else if (planted == CANCELLED_GIVES_ITEM_BACK && op == GET && m->task[i].phase == WOKEN)
                done(m, i, -ECANCELED);
}
