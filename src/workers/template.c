/* SPDX-License-Identifier: MIT */
/* The template: forks the workers, sees them end, says of what, and forks others in their place.
 *
 * It was forked before there were threads, and nothing runs in it but this: so what it forks is as clean as itself. It
 * is the parent of the workers, and the only one to signal and reap them; so no signal goes to a process that happens
 * to have the number of one that has ended.
 *
 * It ends when the program does: its end of `control` is closed then, and the kernel sends SIGTERM as well, should a
 * fork of the program have that end, too. It kills the workers, with what those have started; killed itself, it takes
 * the workers along.
 *
 * When no process can be forked it tries again, and says so at the desks after a while: what waits there fails. */

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "sys/fork.h"
#include "sys/ready.h"
#include "sys/spawn.h"
#include "sys/sys.h"
#include "workers/workers.h"

enum { RETRY_MS = 100, EARLY = 3 };

static const int64_t END_NS = 1000000000;
int64_t rs_workers_starved_ns = 2000000000;

struct template
{
        resha_workers *w;
        int control, signals;
        int pids[RS_SEATS]; /* 0: none */
        int64_t since;      /* no process could be forked; 0: one could */
};

/* In the worker: what belongs to others goes. */
static void become_worker(struct template *t, struct rs_seat *s)
{
        resha_workers *w = t->w;

        rs_sys_own_group();
        rs_sys_keep_only(&s->theirs, 1);
        rs_sys_signals_reset();
        for (unsigned i = 0; i < w->processes; i++)
                if (&w->seats[i] != s)
                        rs_sys_unshare(w->seats[i].desk, w->desk_size);
        rs_sys_share_read(s->desk->orders, sizeof s->desk->orders);
        rs_worker_main(w, s);
}

/* No worker comes to what waits there. */
static void give_up_desk(const struct rs_seat *s, int error)
{
        struct rs_desk *d = s->desk;
        uint32_t count = __atomic_load_n(&d->count, __ATOMIC_ACQUIRE);

        for (uint32_t i = 0; i < count && i < RS_CELLS; i++) {
                struct rs_cell *c = &d->cells[i];
                if (rs_cell_state(c) != RS_CELL_WAITING)
                        continue;
                c->code = 0;
                c->status = error;
                (void)rs_cell_move(c, RS_CELL_WAITING, RS_CELL_DIED);
        }
        (void)rs_sys_send(s->theirs, "", 1);
}

static bool fill_seat(struct template *t, unsigned i)
{
        int self = rs_sys_pid(), pid = rs_sys_fork();

        if (pid == 0) {
                if (!rs_sys_die_with(self, SIGKILL))
                        rs_sys_exit(0);
                become_worker(t, &t->w->seats[i]);
        }
        if (pid > 0) {
                t->pids[i] = pid;
                t->since = 0;
        } else if (!t->since) {
                t->since = rs_sys_now();
        } else if (rs_sys_now() - t->since >= rs_workers_starved_ns) {
                give_up_desk(&t->w->seats[i], -pid);
        }
        return pid > 0;
}

/* False: there are no more processes at present. */
static bool fill_seats(struct template *t)
{
        bool all = true;

        for (unsigned i = 0; i < t->w->processes; i++)
                if (!t->pids[i])
                        all &= fill_seat(t, i);
        return all;
}

/* What it ran has died with it. One that ends again and again before it begins an item has died of the first one. */
static bool tell(struct rs_desk *d, const struct rs_sys_ended *e)
{
        uint32_t count = __atomic_load_n(&d->count, __ATOMIC_ACQUIRE), from = RS_CELL_RUNNING;
        bool ran = e->code == CLD_EXITED && e->status == RS_WORKER_FULL && d->init != RS_CELL_RUNNING;

        for (uint32_t i = 0; i < count && i < RS_CELLS; i++)
                ran |= rs_cell_state(&d->cells[i]) == RS_CELL_RUNNING ||
                       rs_cell_move(&d->cells[i], RS_CELL_KILLED, RS_CELL_DIED); /* it speaks for one worker only */
        d->early = ran ? 0 : d->early + 1;
        if (d->early >= EARLY)
                from = RS_CELL_WAITING;
        for (uint32_t i = 0; i < count && i < RS_CELLS; i++) {
                struct rs_cell *c = &d->cells[i];
                if (rs_cell_state(c) != from)
                        continue;
                c->code = d->init == RS_CELL_KILLED ? RS_DIED_SLOWLY : e->code;
                c->status = e->status;
                if (rs_cell_move(c, from, RS_CELL_DIED))
                        break;
        }
        d->want_room = 0;
        d->init = RS_CELL_FREE;
        __atomic_store_n(&d->generation, d->generation + 1, __ATOMIC_RELEASE);
        return d->early < EARLY;
}

/* False: the next ones had better wait a little. */
static bool reap(struct template *t)
{
        struct rs_sys_ended e;
        bool well = true;
        int pid;

        while ((pid = rs_sys_wait_any(&e)) > 0) {
                (void)rs_sys_kill(-pid, SIGKILL); /* what it has started */
                (void)rs_sys_wait_child(pid, -1, 0, &e);
                for (unsigned i = 0; i < t->w->processes; i++) {
                        if (t->pids[i] != pid)
                                continue;
                        t->pids[i] = 0;
                        well &= tell(t->w->seats[i].desk, &e);
                        (void)rs_sys_send(t->w->seats[i].theirs, "", 1);
                }
        }
        return well;
}

static void kill_seat(const struct template *t, unsigned i)
{
        if (!t->pids[i])
                return;
        (void)rs_sys_kill(-t->pids[i], SIGKILL);
        (void)rs_sys_kill(t->pids[i], SIGKILL);
}

static void kill_asked(struct template *t)
{
        for (unsigned i = 0; i < t->w->processes; i++) {
                struct rs_desk *d = t->w->seats[i].desk;
                if (__atomic_load_n(&d->kill, __ATOMIC_ACQUIRE) == d->generation + 1)
                        kill_seat(t, i);
        }
}

static void serve(struct template *t)
{
        struct pollfd fds[] = { { .fd = t->control, .events = POLLIN }, { .fd = t->signals, .events = POLLIN } };
        char buf[64];
        bool well = fill_seats(t);

        for (;;) {
                (void)rs_ready_wait(fds, 2, well ? -1 : RETRY_MS);
                if (fds[0].revents && rs_sys_recv(t->control, buf, sizeof buf) == 0)
                        return;
                kill_asked(t);
                if (rs_sys_child_signals_read(t->signals))
                        return;
                bool calm = reap(t);
                if (!calm)
                        (void)rs_ready_wait(fds, 1, RETRY_MS);
                well = fill_seats(t);
        }
}

/* Without a word at the desks: those who wait there see the end of the template. How many are left. */
static unsigned reap_ended(struct template *t)
{
        struct rs_sys_ended e;
        unsigned left = 0;

        for (unsigned i = 0; i < t->w->processes; i++) {
                if (t->pids[i] && rs_sys_wait_child(t->pids[i], -1, RS_WAIT_LOOK, &e) != 0)
                        t->pids[i] = 0;
                left += t->pids[i] != 0;
        }
        return left;
}

/* Who waits for the template's end finds no worker any more; but one that cannot die, on a disk that does not answer,
 * is not waited for. */
static void end_workers(struct template *t)
{
        int64_t until = rs_sys_now() + END_NS;
        unsigned left = 1;

        for (unsigned i = 0; i < t->w->processes; i++)
                kill_seat(t, i);
        while (left && rs_sys_now() < until) {
                struct pollfd fd = { .fd = t->signals, .events = POLLIN };
                (void)rs_sys_child_signals_read(t->signals);
                left = reap_ended(t);
                if (left)
                        (void)rs_ready_wait(&fd, 1, RETRY_MS);
        }
}

static int by_number(const int *fds, size_t n, int least)
{
        int next = -1;

        for (size_t i = 0; i < n; i++)
                if (fds[i] > least && (next < 0 || fds[i] < next))
                        next = fds[i];
        return next;
}

void rs_template_main(resha_workers *w, int control)
{
        struct template t = { .w = w, .control = control };
        int all[RS_SEATS + 1], kept[RS_SEATS + 1], least = -1;
        size_t n = 0;

        rs_sys_own_group();
        rs_sys_process_name(w->name);
        all[n++] = control;
        for (unsigned i = 0; i < w->processes; i++)
                all[n++] = w->seats[i].theirs;
        for (size_t i = 0; i < n; i++)
                least = kept[i] = by_number(all, n, least);
        rs_sys_keep_only(kept, n);
        rs_sys_signals_reset();
        t.signals = rs_sys_child_signals();
        if (t.signals >= 0)
                serve(&t);
        end_workers(&t);
        rs_sys_exit(t.signals < 0);
}
