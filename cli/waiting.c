/* SPDX-License-Identifier: MIT */

/* The waiting room: jobs whose next attempt is not due yet, in a binary heap by due time, and the task that sends them
 * back when it is. */

#include "flow.h"

#include <resha/alloc.h>
#include <resha/scope.h>

static bool before(const struct job *a, const struct job *b)
{
        return a->due.ns < b->due.ns || (a->due.ns == b->due.ns && a->number < b->number);
}

int flow_wait_add(struct pipeline *p, struct job *job)
{
        if (p->n_waiting == p->cap_waiting) {
                size_t cap = p->cap_waiting ? p->cap_waiting * 2 : 64;
                struct job **grown = resha_realloc(p->waiting, cap * sizeof(struct job *));
                if (!grown)
                        return -ENOMEM;
                p->waiting = grown;
                p->cap_waiting = cap;
        }
        size_t i = p->n_waiting++;
        for (; i && before(job, p->waiting[(i - 1) / 2]); i = (i - 1) / 2)
                p->waiting[i] = p->waiting[(i - 1) / 2];
        p->waiting[i] = job;
        resha_event_set(&p->waiting_changed);
        return 0;
}

static struct job *take_first(struct pipeline *p)
{
        struct job *first = p->waiting[0], *last = p->waiting[--p->n_waiting];
        size_t i = 0;
        for (size_t child; (child = 2 * i + 1) < p->n_waiting; i = child) {
                if (child + 1 < p->n_waiting && before(p->waiting[child + 1], p->waiting[child]))
                        child++;
                if (before(last, p->waiting[child]))
                        break;
                p->waiting[i] = p->waiting[child];
        }
        p->waiting[i] = last;
        resha_event_set(&p->waiting_eased);
        return first;
}

/* Waits until the first one is due or something has changed. */
static int wait_for_due(struct pipeline *p)
{
        RESHA_SCOPE(due);
        resha_deadline_begin(&due, p->n_waiting ? p->waiting[0]->due : RESHA_NEVER);
        int rc = resha_event_wait(&p->waiting_changed);
        rc = resha_scope_end(&due, rc);
        return rc == -ETIME && resha_scope_expired(&due) ? 0 : rc;
}

int flow_wait(void *arg)
{
        struct pipeline *p = arg;
        int rc = 0;
        while (rc >= 0 && !p->ended) {
                resha_event_clear(&p->waiting_changed);
                if (p->n_waiting && p->stopping) {
                        flow_drop(p, take_first(p));
                } else if (p->n_waiting && p->waiting[0]->due.ns <= resha_now().ns) {
                        struct job *job = take_first(p);
                        rc = resha_queue_put(p->ready, &job);
                        if (rc <= 0)
                                flow_drop(p, job);
                } else {
                        rc = wait_for_due(p);
                }
        }
        return rc < 0 ? rc : 0;
}
