/* SPDX-License-Identifier: MIT */
/* Waiting for tasks: for one handle, and for an array of them.
 *
 * Who waits for one handle stands in that handle's list. Who waits for an array stands in a list of the loop, with the
 * bounds of the array: a handle whose task ends looks who watches the place where it lies. So no wait allocates, a
 * waiter that gives up is out of one list, and a task that ends pays only while somebody waits so.
 *
 * A handle is free for another task, or gone, once its task has ended: who is woken does not look at it any more. */

#include <stdio.h>

#include "core/core.h"
#include "core/waited.h"

enum mode { WAIT_ANY, WAIT_FAILED, WAIT_ALL };

struct watch {
        struct rs_wait wait; /* .object: the first handle */
        struct rs_timer timer;
        struct rs_loop *loop;
        size_t n;
        size_t left;  /* that have not ended */
        size_t index; /* of the latest that has, and what with */
        int status;
        enum mode mode;
};

/* The record of a handle that cannot be waited for, in place of an older one of its code. */
static __attribute__((noinline, cold)) int refuse(int rc)
{
        switch (rc) {
        case -EINVAL:
                return resha_fail_at(rc, NULL,
                                     "the task waited for was never spawned: give its handle to a spawn first");
        case -EDEADLK: return resha_fail_at(rc, NULL, "a task waits for its own end: let another one wait for it");
        default:
                return resha_fail_at(rc, NULL,
                                     "the task waited for is one of another loop: only its own can wait for it");
        }
}

static bool failed(int status)
{
        return status < 0 && status != -ECANCELED;
}

/* ---- one ---- */

int rs_task_ended(const struct rs_loop *l, const resha_task *h)
{
        if (h->_state != RS_HANDLE_RUNNING)
                return h->_state == RS_HANDLE_NEW ? -EINVAL : 0;
        if (h->_loop != l)
                return -EPERM;
        return l && h->_task == l->current ? -EDEADLK : -EAGAIN;
}

struct rs_list *rs_task_line(resha_task *h)
{
        return (struct rs_list *)(void *)h->_waiters;
}

/* Told of a task's end by its handle, which may be gone or another task's by the time the waiter runs: what it ended
 * with comes with the wake-up. */
struct one {
        struct rs_wait wait; /* .object: the handle */
        struct rs_timer timer;
};

static void one_cancel(struct rs_wait *w)
{
        rs_list_remove(rs_task_line((resha_task *)(uintptr_t)w->object), &w->node);
        rs_wake(w, -ECANCELED);
}

static void one_late(struct rs_timer *timer)
{
        struct rs_wait *w = &RS_CONTAINER(timer, struct one, timer)->wait;

        if (w->task->wait != w)
                return; /* the task has ended, and woken it already */
        rs_list_remove(rs_task_line((resha_task *)(uintptr_t)w->object), &w->node);
        rs_wake(w, -ETIME);
}

static struct rs_task *task_of_handle(const struct rs_wait *w, const struct rs_task *after)
{
        return after ? NULL : ((const resha_task *)w->object)->_task;
}

static const struct rs_whom handle_whom = { .next = task_of_handle,
                                            .says = "the end of ",
                                            .nobody = "the end of a task",
                                            .form = RS_WHOM_ONE,
                                            .at = offsetof(resha_task, _task) };

static int late(size_t left, size_t n)
{
        return n == 1 ? resha_fail_at(-ETIME, NULL, "the task has not ended in time")
                      : resha_fail_at(-ETIME, NULL, "%zu of %zu tasks have not ended in time", left, n);
}

/* Until its task has ended: 0 and what with. */
static int park_one(struct rs_loop *l, resha_task *h, resha_duration at_most, int *ret_status)
{
        struct one o = { .wait = { .cancel = one_cancel, .what = "task", .object = h }, .timer = { .fire = one_late } };
        int64_t until = resha_after(at_most).ns;

        if (until < INT64_MAX)
                rs_timer_set(l, &o.timer, until);
        rs_list_push(rs_task_line(h), &o.wait.node);
        intptr_t rc = rs_wait_for(l, &o.wait, &handle_whom);
        rs_timer_clear(l, &o.timer);
        if (rc >= 0)
                *ret_status = rs_status_told(rc);
        return rc >= 0 ? 0 : rc == -ETIME ? late(1, 1) : (int)rc;
}

static int wait_one(resha_task *h, resha_duration at_most, int *ret_status)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        int status = h->_status;
        rc = rs_task_ended(l, h);
        if (rc == -EAGAIN && at_most.ns > 0)
                rc = park_one(l, h, at_most, &status);
        else if (rc == 0 || rc == -EAGAIN)
                rc = rs_complete(l, rc == 0 ? 0 : late(1, 1));
        else
                rc = refuse(rc);
        if (rc == 0 && ret_status)
                *ret_status = status;
        return rc;
}

int resha_task_wait(resha_task *h, int *ret_status)
{
        return wait_one(h, RESHA_FOREVER, ret_status);
}

int resha_task_wait_for(resha_task *h, resha_duration at_most, int *ret_status)
{
        return wait_one(h, at_most, ret_status);
}

/* ---- several ---- */

static void stop(struct watch *w, int result)
{
        rs_list_remove(&w->loop->watchers, &w->wait.node);
        rs_timer_clear(w->loop, &w->timer);
        rs_wake(&w->wait, result);
}

static void watch_cancel(struct rs_wait *wait)
{
        stop(RS_CONTAINER(wait, struct watch, wait), -ECANCELED);
}

static void watch_late(struct rs_timer *timer)
{
        stop(RS_CONTAINER(timer, struct watch, timer), -ETIME);
}

/* Handle `index` of those of w has ended: whether that is what it waits for. */
static bool decides(struct watch *w, size_t index, int status)
{
        w->left--;
        w->index = index;
        w->status = status;
        return w->mode == WAIT_ANY || (w->mode == WAIT_FAILED && failed(status)) || w->left == 0;
}

void rs_watch_ended(struct rs_loop *l, const resha_task *h)
{
        struct rs_node *next;

        for (struct rs_node *n = l->watchers.first; n; n = next) {
                struct watch *w = RS_CONTAINER(n, struct watch, wait.node);
                uintptr_t at = (uintptr_t)h - (uintptr_t)w->wait.object;

                next = n->next;
                if (at < w->n * sizeof *h && decides(w, at / sizeof *h, h->_status))
                        stop(w, 0);
        }
}

/* A handle that had ended is another task's now. */
void rs_watch_spawned(struct rs_loop *l, const resha_task *h)
{
        for (struct rs_node *n = l->watchers.first; n; n = n->next) {
                struct watch *w = RS_CONTAINER(n, struct watch, wait.node);

                w->left += (uintptr_t)h - (uintptr_t)w->wait.object < w->n * sizeof *h;
        }
}

/* What has ended already. 1: that is enough, 0: it is to be waited for, or a negative code. */
static int look(struct watch *w, const resha_task *tasks)
{
        bool enough = false;

        w->left = w->n;
        for (size_t i = 0; i < w->n; i++) {
                int rc = rs_task_ended(w->loop, &tasks[i]);
                if (rc < 0 && rc != -EAGAIN)
                        return refuse(rc);
        }
        for (size_t i = 0; i < w->n && !enough; i++)
                if (tasks[i]._state == RS_HANDLE_ENDED)
                        enough = decides(w, i, tasks[i]._status);
        return enough;
}

static struct rs_task *next_running(const struct rs_wait *wait, const struct rs_task *after)
{
        const struct watch *w = RS_CONTAINER(wait, const struct watch, wait);
        const resha_task *tasks = wait->object;

        for (size_t i = after ? (size_t)(after->handle - tasks) + 1 : 0; i < w->n; i++)
                if (tasks[i]._state == RS_HANDLE_RUNNING)
                        return tasks[i]._task;
        return NULL;
}

static const struct rs_whom all_whom = { .next = next_running,
                                         .says = "the end of ",
                                         .nobody = "the end of several tasks",
                                         .form = RS_WHOM_MANY,
                                         .n_at = offsetof(struct watch, n) - offsetof(struct watch, wait) };

/* Waits until w has what its mode asks for: 0; -ETIME, -ECANCELED, and what look() finds wrong. */
static int wait_several(struct watch *w, resha_task *tasks, resha_duration at_most)
{
        if (w->n == 1) { /* not in the list of all that wait so, which each task that ends goes through */
                int rc = wait_one(tasks, at_most, &w->status);
                w->left -= rc == 0;
                return rc;
        }
        int rc = rs_enter(&w->loop);
        if (rc < 0)
                return rc;
        rc = w->n ? look(w, tasks) : resha_fail_at(-EINVAL, NULL, "a wait for 0 tasks: it takes one or more");
        if (rc < 0)
                return rc;
        if (rc > 0 || at_most.ns <= 0)
                return rs_complete(w->loop, rc > 0 ? 0 : late(w->left, w->n));
        w->wait = (struct rs_wait){ .cancel = watch_cancel, .what = "tasks", .object = tasks };
        w->timer.fire = watch_late;
        int64_t until = resha_after(at_most).ns;
        if (until < INT64_MAX)
                rs_timer_set(w->loop, &w->timer, until);
        rs_list_push(&w->loop->watchers, &w->wait.node);
        rc = (int)(w->mode == WAIT_ALL ? rs_wait_for(w->loop, &w->wait, &all_whom) : rs_wait(w->loop, &w->wait));
        return rc == -ETIME ? late(w->left, w->n) : rc;
}

int resha_task_wait_any(resha_task *tasks, size_t n, resha_duration at_most, size_t *ret_index)
{
        struct watch w = { .n = n, .left = n, .mode = WAIT_ANY };
        int rc = wait_several(&w, tasks, at_most);

        if (rc == 0 && ret_index)
                *ret_index = w.index;
        return rc;
}

int resha_task_wait_failed(resha_task *tasks, size_t n, resha_duration at_most, size_t *ret_index)
{
        struct watch w = { .n = n, .left = n, .mode = WAIT_FAILED };
        int rc = wait_several(&w, tasks, at_most);

        if (rc < 0 || !failed(w.status))
                return rc;
        if (ret_index)
                *ret_index = w.index;
        return 1;
}

int resha_task_wait_all(resha_task *tasks, size_t n, resha_duration at_most, size_t *ret_ended)
{
        struct watch w = { .n = n, .left = n, .mode = WAIT_ALL };
        int rc = wait_several(&w, tasks, at_most);

        if (ret_ended)
                *ret_ended = n - w.left;
        return rc;
}

/* ---- for who looks from outside ---- */

static void handle_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                       struct rs_waited *ret)
{
        struct one o;

        (void)w;
        if (r->read(&o, at, sizeof o) && rs_timer_active(&o.timer))
                ret->due = o.timer.deadline;
}

static void handles_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                        struct rs_waited *ret)
{
        static const char *const modes[] = { "the first", "a failure", "all" };
        struct watch x;

        (void)w;
        if (!r->read(&x, at, sizeof x))
                return;
        snprintf(ret->detail, sizeof ret->detail, "%s of %zu, %zu run", modes[x.mode <= WAIT_ALL ? x.mode : 0], x.n,
                 x.left);
        if (rs_timer_active(&x.timer))
                ret->due = x.timer.deadline;
}

const struct rs_waits rs_handle_waits = { .cancel = one_cancel, .see = handle_see };
const struct rs_waits rs_handles_waits = { .cancel = watch_cancel, .see = handles_see };
