/* SPDX-License-Identifier: MIT */
/* What files and folders that are open have in common, and how a call of the disk is made.
 *
 * Any number of calls may be inside. Closing refuses new ones, gives up those whose operation has not begun (-EBADF),
 * waits for the others, and closes: by the backend, for closing may take long. It is no cancellation point, as nothing
 * that undoes something is; where the backend has no way left, it is done on the spot.
 *
 * Invariant: the descriptor is closed once, when no call is inside, and nobody knows it any more after. */

#include "os/file.h"

/* ---- operations ---- */

int rs_disk_pieces(struct rs_loop *l, struct rs_disk *d, const char *what)
{
        int rc;

        while ((rc = (int)rs_operation_disk(l, d, what)) > 0) {
                rc = rs_enter(&l);
                if (rc < 0)
                        break;
        }
        return rc;
}

void rs_disk_undo(struct rs_loop *l, struct rs_disk *d, const int *open)
{
        if (*open >= 0)
                (void)rs_operation_disk_surely(l, d, "clean-up");
        if (*open >= 0)
                (void)rs_sys_disk(d);
}

/* ---- what is open ---- */

/* At the end of the run: every task has ended. */
static void left_open(struct rs_cleanup *c)
{
        struct rs_opened *o = RS_CONTAINER(c, struct rs_opened, cleanup);
        struct rs_disk d = { .call = RS_DISK_CLOSE, .fd = o->fd };

        (void)rs_sys_disk(&d);
        rs_shown_left(&o->shown);
        resha_free(o); /* the loop goes on counting it as open, and reports that */
}

void rs_opened_init(struct rs_opened *o, struct rs_loop *l, int fd, const char *path,
                    const struct resha_shown_kind *kind)
{
        *o = (struct rs_opened){ .loop = l, .fd = fd, .path = path, .cleanup = { .fn = left_open } };
        rs_cleanup_add(l, &o->cleanup);
        l->open++;
        rs_shown_add(l, &o->shown, kind, o, fd);
        o->shown.name = path;
}

int rs_opened_refuse(const struct rs_opened *o, const struct rs_loop *l)
{
        char text[RS_PATH_TEXT];

        rs_path_text(o->path, text);
        if (o->loop != l)
                return resha_fail_at(-EPERM, NULL, "%s was opened on another loop: only that can use it", text);
        return resha_fail_at(-EBADF, NULL, "%s is being closed", text);
}

ssize_t rs_opened_do(struct rs_opened *o, struct rs_use *u, struct rs_disk *d, const char *what)
{
        rs_op_bytes(&u->op, RS_OP_DISK, NULL, d, sizeof *d);
        return rs_operation(o->loop, &u->op, what);
}

static void wait_idle(struct rs_opened *o)
{
        for (struct rs_node *n = o->uses.first; n; n = n->next)
                rs_operation_abort(o->loop, &RS_CONTAINER(n, struct rs_use, node)->op, -EBADF);
        while (!rs_list_empty(&o->uses)) {
                struct rs_wait w = { .what = "close", .object = o };
                o->closer = &w;
                rs_wait(o->loop, &w);
        }
}

int rs_opened_close(struct rs_opened *o)
{
        struct rs_disk d = { .call = RS_DISK_CLOSE, .fd = o->fd };
        struct rs_loop *l;
        int rc = rs_enter_shielded(&l);

        if (o->loop != rs_loop_current || o->closing)
                return rs_opened_refuse(o, rs_loop_current);
        if (rc < 0 && !rs_list_empty(&o->uses))
                return rc; /* nobody could wait for those inside: rather a leak than a file that is gone under them */
        o->closing = true;
        if (rc == 0)
                wait_idle(o);
        rs_cleanup_remove(o->loop, &o->cleanup);
        o->loop->open--;
        rs_shown_remove(&o->shown);
        rc = rc < 0 ? (int)rs_sys_disk(&d) : (int)rs_operation_disk_surely(l, &d, "close");
        if (rc < 0)
                rc = rs_path_failed(rc, "close", o->path);
        resha_free(o);
        return rc;
}
