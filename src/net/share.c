/* SPDX-License-Identifier: MIT */
/* Listeners of several loops with one queue of connections.
 *
 * The first loop that listens at an address listens; the others, and it, have a descriptor each of that socket. So a
 * connection that nobody has accepted is everybody's, and none is lost as long as one loop is left. The kernel tells
 * one loop of each connection, in turns (rs_file.shared: epoll and io_uring wait exclusively, and only while a task is
 * inside of resha_accept(); who waits again stands at the end of its line).
 *
 * Who is told and goes without looking, because it is cancelled or shut down just then, passes that on: each other
 * member looks once more, by a post to its loop. A member that does not wait looks before it waits, always.
 *
 *     enter --nobody is there--> the first: listens --opened--> member --leave--> others are left, or the end of all
 *       |  ^ 1 ms                       |
 *       |  '-- it is about to <---------'--it cannot: leave, and another is the first
 *       '-- somebody listens --> member
 *
 * In the simulated world there is one loop, and one file for all: members take turns, first come, first served.
 *
 * Invariants
 * - All in `shares` and what hangs on it is under one lock, which comes before those of inboxes; nothing waits with it.
 * - A member is its listener's, until it leaves; then its post's, while that is on its way.
 * - A loop that is given up has left: nothing points into it. */

#include <errno.h>

#include <resha/alloc.h>
#include <resha/time.h>

#include "net/share.h"
#include "sys/thread.h"

struct share {
        struct rs_node node;
        const void *whose; /* what loops that were started together have in common */
        resha_addr asked, addr;
        struct rs_list members; /* of rs_member.node */
        struct rs_unix_file name;
        int fd;               /* negative: the first is about to listen, or it is simulated */
        struct rs_file *file; /* simulated: of all */
        bool open;            /* others may join */
        bool taken;           /* file: by who has the turn */
        struct rs_list turns; /* of rs_wait.node: who waits for it */
};

struct rs_member {
        struct rs_node node;
        struct rs_cleanup given_up;
        struct rs_post look;
        bool looks;               /* that is on its way */
        resha_listener *listener; /* NULL: it has left */
        struct rs_inbox *inbox;
        struct share *share;
};

static struct rs_lock lock = RS_LOCK_INIT;
static struct rs_list shares;

void rs_share_forked(void)
{
        lock = (struct rs_lock)RS_LOCK_INIT;
        shares = (struct rs_list){ 0 };
}

static struct rs_member *member_of(struct rs_node *n)
{
        return RS_CONTAINER(n, struct rs_member, node);
}

static void member_free(struct rs_member *m)
{
        rs_inbox_unref(m->inbox);
        resha_free(m);
}

/* ---- one that may have missed something ---- */

/* Whether it is still a member's; one that has left is freed. */
static bool look_over(struct rs_member *m)
{
        rs_lock(&lock);
        m->looks = false;
        bool left = !m->listener;
        rs_unlock(&lock);
        if (left)
                member_free(m);
        return !left;
}

static struct rs_member *member_of_look(struct rs_post *p)
{
        return RS_CONTAINER(p, struct rs_member, look);
}

/* On the member's loop. An accept that waits begins anew; any other looks anyway. */
static void look(struct rs_post *p)
{
        struct rs_member *m = member_of_look(p);

        if (look_over(m) && m->listener->op)
                rs_operation_abort(m->listener->loop, m->listener->op, -EAGAIN);
}

static void look_lost(struct rs_post *p)
{
        (void)look_over(member_of_look(p));
}

/* With the lock. */
static void others_look(const struct rs_member *m)
{
        for (struct rs_node *n = m->share->members.first; n; n = n->next) {
                struct rs_member *other = member_of(n);
                if (other != m && !other->looks)
                        other->looks = rs_inbox_try_post(other->inbox, &other->look);
        }
}

void rs_share_pass_on(resha_listener *n)
{
        struct rs_member *m = n->member;

        if (!m || m->share->file)
                return;
        rs_lock(&lock);
        others_look(m);
        rs_unlock(&lock);
}

/* ---- the end ---- */

/* Nobody can join any more; the file of a Unix socket goes before the socket does. */
static void share_end(struct share *s)
{
        rs_unix_file_remove(&s->name);
        if (s->fd >= 0)
                rs_sys_close(s->fd);
        if (s->file)
                s->file->backend->ops->file_close(s->file);
        resha_free(s);
}

static void leave(struct rs_member *m)
{
        struct share *s = m->share;

        rs_lock(&lock);
        rs_list_remove(&s->members, &m->node);
        others_look(m);
        bool last = rs_list_empty(&s->members), looks = m->looks;
        if (last)
                rs_list_remove(&shares, &s->node);
        m->listener = NULL;
        rs_unlock(&lock);
        if (!looks)
                member_free(m);
        if (last)
                share_end(s);
}

void rs_share_leave(resha_listener *n)
{
        struct rs_member *m = n->member;

        if (!m)
                return;
        n->member = NULL;
        if (m->share->file)
                n->file = NULL; /* all have it */
        rs_list_remove(&n->loop->given_up, &m->given_up.node);
        leave(m);
}

/* Nobody will use the listener any more, nor close it; of a simulated world the file goes with the world. */
static void give_up(struct rs_cleanup *c)
{
        struct rs_member *m = RS_CONTAINER(c, struct rs_member, given_up);

        m->listener->member = NULL;
        if (m->share->file)
                m->share->file = NULL;
        leave(m);
}

/* ---- the beginning ---- */

static struct rs_member *member_new(struct rs_loop *l, resha_listener *n)
{
        struct rs_member *m = resha_calloc(1, sizeof *m);

        if (!m)
                return NULL;
        m->look = (struct rs_post){ .fn = look, .lost = look_lost, .quiet = true };
        m->given_up.fn = give_up;
        m->inbox = rs_inbox_ref(l->inbox);
        m->listener = n;
        return m;
}

static struct share *share_new(const void *whose, const resha_addr *asked)
{
        struct share *s = resha_calloc(1, sizeof *s);

        if (!s)
                return NULL;
        s->whose = whose;
        s->asked = *asked;
        s->fd = -1;
        return s;
}

/* With the lock. */
static struct share *find(const void *whose, const resha_addr *asked)
{
        for (struct rs_node *n = shares.first; n; n = n->next) {
                struct share *s = RS_CONTAINER(n, struct share, node);
                if (s->whose == whose && resha_addr_equal(&s->asked, asked))
                        return s;
        }
        return NULL;
}

/* With the lock. 0: joined, 1: the first, -EAGAIN: that one is about to listen. */
static int enter(struct rs_member *m, const void *whose, const resha_addr *asked)
{
        struct share *s = find(whose, asked);

        if (s && !s->open)
                return -EAGAIN;
        m->share = s ? s : share_new(whose, asked);
        if (!m->share)
                return -ENOMEM;
        if (!s)
                rs_list_push(&shares, &m->share->node);
        rs_list_push(&m->share->members, &m->node);
        return s ? 0 : 1;
}

/* A descriptor of its own, or, simulated, that of all. */
static int take_file(struct rs_loop *l, resha_listener *n)
{
        struct share *s = n->member->share;

        n->addr = s->addr;
        if (s->file) {
                n->file = s->file;
                return 0;
        }
        int fd = rs_sys_duplicate(s->fd);
        if (fd < 0)
                return fd;
        int rc = l->backend->ops->adopt(l->backend, fd, false, &n->file);
        if (rc < 0)
                rs_sys_close(fd);
        else
                n->file->shared = true;
        return rc;
}

static int begin(struct rs_loop *l, struct rs_member *m, const void *whose, const resha_addr *asked)
{
        int rc;

        do {
                rs_lock(&lock);
                rc = enter(m, whose, asked);
                rs_unlock(&lock);
                if (rc != -EAGAIN)
                        break;
                rc = resha_sleep(RESHA_MS(1));
        } while (rc == 0);
        if (rc >= 0)
                rs_list_push(&l->given_up, &m->given_up.node);
        return rc;
}

int rs_share_enter(struct rs_loop *l, resha_listener *n, const resha_addr *asked)
{
        struct rs_member *m = member_new(l, n);
        int rc = m ? begin(l, m, l->beside ? (const void *)l->beside : l, asked) : -ENOMEM;

        if (rc < 0) {
                if (m)
                        member_free(m);
                return rc;
        }
        n->member = m;
        if (rc == 0)
                rc = take_file(l, n);
        if (rc < 0)
                rs_share_leave(n);
        return rc;
}

int rs_share_opened(resha_listener *n)
{
        struct share *s = n->member->share;
        int fd = -1;

        if (n->loop->simulated)
                s->file = n->file;
        else
                fd = rs_sys_duplicate(n->file->fd);
        if (fd < 0 && !s->file) {
                rs_share_leave(n);
                return fd;
        }
        n->file->shared = true;
        rs_lock(&lock);
        s->fd = fd;
        s->addr = n->addr;
        s->name = n->name;
        s->open = true;
        rs_unlock(&lock);
        n->name = (struct rs_unix_file){ 0 }; /* it is that of all */
        return 0;
}

/* ---- turns ---- */

static void turn_cancel(struct rs_wait *w)
{
        const resha_listener *n = w->object;

        rs_list_remove(&n->member->share->turns, &w->node);
        rs_wake(w, -ECANCELED);
}

int rs_share_turn(struct rs_loop *l, resha_listener *n)
{
        struct share *s = n->member->share;

        if (!s->file)
                return 0;
        if (!s->taken) {
                s->taken = true;
                return 0;
        }
        struct rs_wait w = { .cancel = turn_cancel, .what = "accept", .object = n };
        rs_list_push(&s->turns, &w.node);
        n->turn = &w;
        int rc = (int)rs_wait(l, &w);
        n->turn = NULL;
        if (rc < 0)
                return rc;
        rc = n->shut ? -ESHUTDOWN : rs_enter(&l);
        if (rc < 0)
                rs_share_turn_over(n);
        return rc;
}

void rs_share_turn_over(resha_listener *n)
{
        struct share *s = n->member->share;
        if (!s->file)
                return;
        struct rs_node *next = rs_list_pop(&s->turns);
        s->taken = next != NULL;
        if (next)
                rs_wake(RS_CONTAINER(next, struct rs_wait, node), 0);
}

void rs_share_turn_abort(resha_listener *n, int code)
{
        struct rs_wait *w = n->turn;

        if (!w || !w->task || w->task->wait != w)
                return;
        rs_list_remove(&n->member->share->turns, &w->node);
        rs_wake(w, code);
}
