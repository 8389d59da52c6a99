/* SPDX-License-Identifier: MIT */
/* Workers: their start and end, and who may use which.
 *
 * Everything that is shared is made before the template is forked: a desk in shared memory and a pair of sockets for
 * each seat. A worker that is forked later, in place of another one, inherits the seat; nothing is handed over then.
 *
 * A seat belongs to one task at a time. Who finds none stands in line, and a seat that is left goes to the first in it,
 * by a post to its loop: tasks of several loops may stand there. */

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <resha/alloc.h>

#include "sys/fork.h"
#include "sys/ready.h"
#include "sys/spawn.h"
#include "sys/sys.h"
#include "workers/workers.h"

enum { NAME_BYTES = 15, AREA_LEAST = 64 * 1024 };
#define LARGEST_DEFAULT ((size_t)1 << 20)
#define LARGEST_MOST ((size_t)1 << 40)

/* How long a template may take to end: of which a sign was seen; that was asked to, and has workers that do not die. */
static const int64_t LOST_NS = 200000000, STOP_NS = 3000000000;

/* ---- seats ---- */

struct taker {
        struct rs_wait wait;
        struct rs_post post;
        resha_workers *w;
        struct rs_seat *seat;
        struct rs_inbox *inbox;
        bool in_line;
};

static void taker_told(struct rs_post *p)
{
        struct taker *t = RS_CONTAINER(p, struct taker, post);

        rs_wake(&t->wait, t->seat ? 0 : -EBADF);
}

/* Its loop has ended meanwhile, with the task. */
static void taker_lost(struct rs_post *p)
{
        struct taker *t = RS_CONTAINER(p, struct taker, post);

        if (t->seat)
                rs_seat_leave(t->w, t->seat);
}

static void taker_cancel(struct rs_wait *wait)
{
        struct taker *t = RS_CONTAINER(wait, struct taker, wait);

        rs_lock(&t->w->lock);
        bool in_line = t->in_line;
        if (in_line)
                rs_list_remove(&t->w->line, &wait->node);
        t->in_line = false;
        rs_unlock(&t->w->lock);
        if (in_line)
                rs_wake(wait, -ECANCELED);
}

static int stand_in_line(struct rs_loop *l, struct taker *t)
{
        l->jobs++;
        int rc = (int)rs_wait(l, &t->wait);
        l->jobs--;
        rs_inbox_unref(t->inbox);
        return rc;
}

int rs_seat_take(struct rs_loop *l, resha_workers *w, struct rs_seat **ret_seat)
{
        struct taker t = {
                .wait = { .cancel = taker_cancel, .what = "worker process", .object = w },
                .post = { .fn = taker_told, .lost = taker_lost, .quiet = true },
                .w = w,
        };
        int rc = 0;

        rs_lock(&w->lock);
        struct rs_node *n = !w->closing && rs_list_empty(&w->line) ? rs_list_pop(&w->idle) : NULL;
        if (w->closing) {
                rc = -EBADF;
        } else if (n) {
                t.seat = RS_CONTAINER(n, struct rs_seat, node);
        } else {
                t.in_line = true;
                t.inbox = rs_inbox_ref(l->inbox); /* a run that is given up leaves it in line */
                rs_list_push(&w->line, &t.wait.node);
        }
        rs_unlock(&w->lock);
        if (rc == 0 && !n)
                rc = stand_in_line(l, &t);
        if (rc == -EBADF)
                return resha_fail_at(rc, NULL, "workers \"%s\": they are stopped", w->name);
        *ret_seat = t.seat;
        return rc;
}

/* With the lock. */
static void hand_over(resha_workers *w, struct rs_seat *s)
{
        struct taker *t = RS_CONTAINER(rs_list_pop(&w->line), struct taker, wait.node);
        struct rs_inbox *inbox = rs_inbox_ref(t->inbox);

        t->in_line = false;
        t->seat = s;
        rs_unlock(&w->lock); /* a post that is lost leaves the seat */
        rs_inbox_post(inbox, &t->post);
        rs_inbox_unref(inbox);
        rs_lock(&w->lock);
}

void rs_seat_leave(resha_workers *w, struct rs_seat *s)
{
        if (s->big && !s->dying) {
                rs_sys_share_drop(rs_desk_items(s->desk), 2 * w->area);
                s->big = false;
        }
        rs_lock(&w->lock);
        if (rs_list_empty(&w->line))
                rs_list_push(&w->idle, &s->node);
        else
                hand_over(w, s);
        rs_unlock(&w->lock);
}

bool rs_seat_wanted(resha_workers *w)
{
        rs_lock(&w->lock);
        bool wanted = !rs_list_empty(&w->line) || w->closing;
        rs_unlock(&w->lock);
        return wanted;
}

void rs_seat_kill(resha_workers *w, struct rs_seat *s, uint32_t generation)
{
        s->dying = true;
        s->generation = generation;
        __atomic_store_n(&s->desk->kill, generation + 1, __ATOMIC_RELEASE);
        (void)rs_sys_send(w->control, "", 1); /* full: there are bytes enough, it looks at all desks for each */
}

/* Until the other end of `control`, which is the template's alone, is closed. False: it is still open. */
static bool template_ends(const resha_workers *w, int64_t within)
{
        struct pollfd fd = { .fd = w->control, .events = POLLIN };
        int64_t until = rs_sys_now() + within, left;

        while ((left = until - rs_sys_now()) > 0 && !fd.revents)
                (void)rs_ready_wait(&fd, 1, (int)(left / 1000000) + 1);
        return fd.revents != 0;
}

int rs_workers_lost(resha_workers *w)
{
        struct rs_sys_ended e = { 0 };

        rs_lock(&w->lock);
        bool closing = w->closing;
        rs_unlock(&w->lock);
        if (closing)
                return resha_fail_at(-EBADF, NULL, "workers \"%s\": they are stopped", w->name);
        if (!template_ends(w, LOST_NS))
                return resha_fail_at(RESHA_EPROCESS, NULL,
                                     "workers \"%s\": a worker has shut down the socket that it shares with the "
                                     "program; stop these and start the program anew",
                                     w->name);
        if (rs_sys_wait_child(w->template, -1, RS_WAIT_KEEP, &e) <= 0)
                return resha_fail_at(RESHA_EPROCESS, NULL, "workers \"%s\": their template process has ended", w->name);
        return resha_fail_at(RESHA_EPROCESS, NULL,
                             "workers \"%s\": their template process was ended (%s %d), and the workers with it; stop "
                             "these and start the program anew",
                             w->name, e.code == CLD_EXITED ? "exit status" : "signal", e.status);
}

/* ---- the start ---- */

static int check(const resha_workers_opts *o, const char *name)
{
        if (rs_reserved_zero(o->_reserved) && o->processes <= RS_SEATS && o->chunk <= RS_CELLS && o->time.ns >= 0 &&
            o->largest <= LARGEST_MOST && strlen(name) <= NAME_BYTES)
                return 0;
        return resha_fail_at(-EINVAL, NULL,
                             "workers \"%s\": at most 256 processes, chunks of 256, 2^40 bytes, 15 bytes of name, no "
                             "negative time, reserved words zero",
                             name);
}

/* Whether this is the time to fork. */
static int check_alone(const char *name, bool simulated)
{
        if (rs_loop_current && !simulated)
                return resha_fail_at(-EBUSY, NULL, "workers \"%s\": started inside of a run; start them in main()",
                                     name);
        int threads = simulated ? 1 : rs_sys_threads();
        if (threads > 1)
                return resha_fail_at(-EBUSY, NULL,
                                     "workers \"%s\": the process has %d threads already; start them at the beginning "
                                     "of main()",
                                     name, threads);
        return 0;
}

static void take_down(resha_workers *w)
{
        for (unsigned i = 0; i < w->processes; i++) {
                struct rs_seat *s = &w->seats[i];
                if (s->desk)
                        rs_sys_unshare(s->desk, w->desk_size);
                if (s->fd >= 0)
                        rs_sys_close(s->fd);
                if (s->theirs >= 0)
                        rs_sys_close(s->theirs);
        }
        if (w->control >= 0)
                rs_sys_close(w->control);
        resha_free(w);
}

static resha_workers *workers_new(const resha_workers_opts *o, const char *name)
{
        unsigned n = o->processes ? o->processes : (unsigned)rs_sys_processors();
        n = n > RS_SEATS ? RS_SEATS : n;
        resha_workers *w = resha_calloc(1, sizeof *w + n * sizeof w->seats[0]);

        if (!w)
                return NULL;
        w->lock = (struct rs_lock)RS_LOCK_INIT;
        w->refs = 1;
        w->pid = rs_sys_pid();
        w->control = -1;
        w->processes = n;
        w->chunk = o->chunk;
        w->memory = o->memory;
        w->largest = o->largest ? o->largest : LARGEST_DEFAULT;
        w->area = ((w->largest > AREA_LEAST ? w->largest : AREA_LEAST) + 4095) & ~(size_t)4095;
        w->desk_size = RS_DESK_HEAD + 2 * w->area;
        w->time = o->time.ns == INT64_MAX ? 0 : o->time.ns;
        w->init = o->init;
        w->arg = o->arg;
        memcpy(w->name, name, strlen(name) + 1);
        for (unsigned i = 0; i < n; i++)
                w->seats[i].fd = w->seats[i].theirs = -1;
        return w;
}

static int make_seats(resha_workers *w)
{
        for (unsigned i = 0; i < w->processes; i++) {
                struct rs_seat *s = &w->seats[i];
                int fds[2], rc;
                rs_list_push(&w->idle, &s->node);
                if (w->simulated)
                        continue;
                s->desk = rs_sys_share(w->desk_size);
                if (!s->desk)
                        return -ENOMEM;
                if ((rc = rs_sys_socketpair(SOCK_STREAM, fds)) < 0)
                        return rc;
                s->fd = fds[0];
                s->theirs = fds[1];
        }
        return 0;
}

static int fork_template(resha_workers *w)
{
        int fds[2], self = rs_sys_pid(), rc = rs_sys_socketpair(SOCK_STREAM, fds);

        if (rc < 0)
                return rc;
        w->control = fds[0];
        rc = rs_sys_fork();
        if (rc == 0) {
                if (!rs_sys_die_with(self, SIGTERM))
                        rs_sys_exit(0);
                rs_template_main(w, fds[1]);
        }
        rs_sys_close(fds[1]);
        for (unsigned i = 0; i < w->processes; i++) {
                rs_sys_close(w->seats[i].theirs);
                w->seats[i].theirs = -1;
        }
        w->template = rc;
        return rc < 0 ? rc : 0;
}

static const char *remedy(int rc)
{
        switch (rc) {
        case -EMFILE: return "; each takes two descriptors at the start (ulimit -n)";
        case -EAGAIN: return "; allow more processes (ulimit -u, pids.max of the control group)";
        case -ENOMEM: return "; each shares twice `largest` bytes of address space with the program (ulimit -v)";
        default: return "";
        }
}

int resha_workers_start(const resha_workers_opts *opts, resha_workers **ret_workers)
{
        static const resha_workers_opts defaults;
        const resha_workers_opts *o = opts ? opts : &defaults;
        const char *name = o->name ? o->name : "resha-worker";
        bool simulated = rs_loop_current && rs_loop_current->simulated;
        int rc = check(o, name);

        if (rc == 0)
                rc = check_alone(name, simulated);
        if (rc < 0)
                return rc;
        resha_workers *w = workers_new(o, name);
        if (!w)
                return -ENOMEM;
        w->simulated = simulated;
        rc = make_seats(w);
        if (rc == 0 && !simulated)
                rc = fork_template(w);
        if (rc < 0) {
                take_down(w);
                return resha_fail_at(rc, NULL, "workers \"%s\": %s%s", name, resha_strerror(rc), remedy(rc));
        }
        *ret_workers = w;
        return 0;
}

/* ---- the end ---- */

void rs_workers_unref(resha_workers *w)
{
        rs_lock(&w->lock);
        bool last = --w->refs == 0;
        rs_unlock(&w->lock);
        if (last)
                take_down(w);
}

static void send_home(resha_workers *w)
{
        struct rs_node *n;

        rs_lock(&w->lock);
        w->closing = true;
        while ((n = rs_list_pop(&w->line))) {
                struct taker *t = RS_CONTAINER(n, struct taker, wait.node);
                t->in_line = false;
                rs_inbox_post(t->inbox, &t->post); /* without a seat nothing is left when it is lost */
        }
        rs_unlock(&w->lock);
}

void resha_workers_stop(resha_workers *w)
{
        struct rs_sys_ended e;

        if (!w)
                return;
        send_home(w);
        if (!w->simulated && w->pid == rs_sys_pid()) {
                (void)rs_sys_shutdown(w->control, SHUT_WR);
                if (!template_ends(w, STOP_NS)) /* somebody has stopped it; the workers end with it */
                        (void)rs_sys_kill(w->template, SIGKILL);
                (void)rs_sys_wait_child(w->template, -1, 0, &e);
        }
        rs_workers_unref(w);
}

void resha_workers_stopp(resha_workers **w)
{
        resha_workers_stop(*w);
        *w = NULL;
}
