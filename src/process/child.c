/* SPDX-License-Identifier: MIT */
/* Children of this process, once they run: how their end is seen, signals, and reaping.
 *
 * A child has a pidfd: it is readable when the child has ended, and names it and no other, also when somebody else has
 * reaped it and its number belongs to another one. Where the kernel has none (Linux before 5.3), or a filter of system
 * calls forbids it, a thread stands in waitid(2) for each child; it leaves the child to be reaped by the loop, so that
 * until then the number is the child's and may be signalled, and posts the end to the loop's inbox.
 *
 * The first process of a group is reaped at the very end only: as long as it is there, if only as a zombie, the number
 * of the group is no other group's, and kill(2) may be used for what is left of it. */

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include <resha/alloc.h>

#include "process/process.h"
#include "sys/ready.h"
#include "sys/spawn.h"
#include "sys/sys.h"
#include "sys/thread.h"

/* In the place of a pidfd; on the heap, because it may outlive the process and the loop. */
struct watcher {
        struct rs_post post;
        struct rs_thread thread;
        struct rs_inbox *inbox;
        struct rs_loop *loop;
        resha_process *process; /* NULL: it is left behind, and reaped here */
        pid_t pid;
        int rc; /* of its waitid(2) */
};

static const struct rs_process_ops child_ops;

/* ---- threads that wait ---- */

static void watcher_free(struct watcher *w)
{
        rs_inbox_unref(w->inbox);
        resha_free(w);
}

static void reap(pid_t pid)
{
        struct rs_sys_ended ended;

        (void)rs_sys_wait_child(pid, -1, RS_WAIT_LOOK, &ended);
}

/* The loop is gone, and the child nobody's. */
static void *watch(void *arg)
{
        struct watcher *w = arg;
        struct rs_sys_ended ended;

        w->rc = rs_sys_wait_child(w->pid, -1, RS_WAIT_KEEP, &ended);
        if (rs_inbox_try_post(w->inbox, &w->post))
                return NULL; /* and is joined: w may be gone */
        reap(w->pid);
        rs_thread_detach_self();
        watcher_free(w);
        return NULL;
}

static void came(struct rs_post *post)
{
        struct watcher *w = RS_CONTAINER(post, struct watcher, post);
        resha_process *p = w->process;

        rs_thread_join(w->thread);
        if (p) {
                p->impl = NULL;
                p->lost = w->rc < 0 ? w->rc : 0;
                w->loop->jobs--;
                rs_process_told(p);
        } else {
                reap(w->pid);
        }
        watcher_free(w);
}

/* It came when the loop looked no more. */
static void came_late(struct rs_post *post)
{
        struct watcher *w = RS_CONTAINER(post, struct watcher, post);

        rs_thread_join(w->thread);
        reap(w->pid);
        watcher_free(w);
}

/* For p; or, if `left`, for what p leaves behind. */
static int start_watcher(resha_process *p, bool left)
{
        struct watcher *w = resha_malloc(sizeof *w);

        if (!w)
                return -ENOMEM;
        *w = (struct watcher){
                .post = { .fn = came, .lost = came_late, .quiet = true },
                .inbox = rs_inbox_ref(p->loop->inbox),
                .loop = p->loop,
                .process = left ? NULL : p,
                .pid = p->pid,
        };
        int rc = rs_thread_start(&w->thread, "resha-process", watch, w);
        if (rc < 0) {
                watcher_free(w);
                return rc;
        }
        if (left)
                return 0;
        p->impl = w;
        p->loop->jobs++;
        return 0;
}

/* ---- the beginning ---- */

static void report_fallback(struct rs_loop *l, int code)
{
        static atomic_bool told;

        if (!atomic_exchange(&told, true))
                rs_report(l, RESHA_REPORT_FALLBACK, code, NULL,
                          "no pidfd (%s; Linux 5.3 or newer, and no filter of system calls that forbids pidfd_open): a "
                          "thread waits for each process",
                          resha_strerror(code));
}

static void end_at_once(resha_process *p)
{
        struct rs_sys_ended ended;

        (void)rs_sys_kill(p->group ? -p->pid : p->pid, SIGKILL);
        (void)rs_sys_wait_child(p->pid, -1, 0, &ended);
}

int rs_child_begin(resha_process *p, int pid)
{
        p->ops = &child_ops;
        p->pid = pid;
        int rc = p->fd = rs_sys_pidfd(pid);
        if (rc == -ESRCH)
                return rs_child_lost(p->name, -ECHILD);
        if (rc == -ENOSYS || rc == -EPERM) {
                report_fallback(p->loop, rc);
                rc = start_watcher(p, false);
        }
        if (rc < 0) {
                end_at_once(p);
                return resha_fail_at(rc, NULL, "%s was started, but cannot be waited for, and was killed: %s", p->name,
                                     resha_strerror(rc));
        }
        return 0;
}

/* ---- while it runs ---- */

static int child_look(resha_process *p, resha_exit *ret_exit)
{
        struct rs_sys_ended e = { 0 };

        if (p->impl)
                return 0; /* the thread has its number in hand: it comes first */
        if (p->lost)
                return p->lost;
        int rc = rs_sys_wait_child(p->pid, p->fd, RS_WAIT_LOOK | (p->group ? RS_WAIT_KEEP : 0), &e);
        if (rc > 0)
                *ret_exit = (resha_exit){
                        .signalled = e.code != CLD_EXITED,
                        .core = e.code == CLD_DUMPED,
                        .code = e.status,
                };
        return rc;
}

static int signal_alone(const resha_process *p, int sig)
{
        return p->fd < 0 ? rs_sys_kill(p->pid, sig) : rs_sys_pidfd_signal(p->fd, sig);
}

/* Should somebody else have reaped its first process, the number may be another group's. */
static int signal_group(const resha_process *p, int sig)
{
        struct rs_sys_ended e;

        if (rs_sys_wait_child(p->pid, p->fd, RS_WAIT_LOOK | RS_WAIT_KEEP, &e) == -ECHILD)
                return -ESRCH;
        return rs_sys_kill(-p->pid, sig);
}

/* The first of a group may have left it (setpgid(2)), or have other credentials than the rest: it is what is waited
 * for, so SIGKILL is for it in any case. */
static int child_signal(resha_process *p, int sig)
{
        int rc = p->group ? signal_group(p, sig) : -ESRCH;

        if (p->state != RS_PROCESS_RUNS || (rc == 0 && sig != SIGKILL))
                return rc;
        int alone = signal_alone(p, sig);
        return rc == 0 && alone == -ESRCH ? 0 : alone;
}

/* Without a pidfd the child is looked at again and again. */
static void child_stand_still(resha_process *p, int64_t ns)
{
        int64_t until = rs_time_add(rs_sys_now(), ns);
        struct pollfd fd = { .fd = p->fd, .events = POLLIN };
        struct rs_sys_ended e;

        while (rs_sys_wait_child(p->pid, p->fd, RS_WAIT_LOOK | RS_WAIT_KEEP, &e) == 0) {
                int64_t left_ms = (until - rs_sys_now()) / 1000000 + 1;
                if (left_ms <= 0 || rs_sys_now() >= until)
                        return;
                int most = p->fd < 0 ? 10 : 1000;
                (void)rs_ready_wait(&fd, p->fd >= 0, left_ms < most ? (int)left_ms : most);
        }
}

/* ---- the end ---- */

static void child_done(resha_process *p, bool left)
{
        struct rs_sys_ended e;
        struct watcher *w = p->impl;

        if (p->state == RS_PROCESS_LOST && p->lost != -ECHILD) { /* waitid(2) did not work: it may run */
                (void)signal_alone(p, SIGKILL);
                (void)rs_sys_wait_child(p->pid, p->fd, 0, &e);
        }
        if (p->group && !left && p->state == RS_PROCESS_ENDED) {
                (void)signal_group(p, SIGKILL);
                (void)rs_sys_wait_child(p->pid, p->fd, RS_WAIT_LOOK, &e);
        }
        if (w) { /* it comes yet */
                w->process = NULL;
                p->loop->jobs--;
        } else if (left) {
                (void)start_watcher(p, true);
        }
        if (p->fd >= 0)
                rs_sys_close(p->fd);
}

enum { GIVEN_UP_MS = 100 };

/* A thread that waits for it reaps it. The first of a group may have ended long ago. */
static void child_give_up(resha_process *p)
{
        (void)child_signal(p, SIGKILL);
        if (!p->impl) {
                child_stand_still(p, INT64_C(1000000) * GIVEN_UP_MS);
                (void)rs_sys_wait_child(p->pid, p->fd, RS_WAIT_LOOK, &(struct rs_sys_ended){ 0 });
        }
}

static const struct rs_process_ops child_ops = {
        .look = child_look,
        .signal = child_signal,
        .stand_still = child_stand_still,
        .done = child_done,
        .give_up = child_give_up,
};
