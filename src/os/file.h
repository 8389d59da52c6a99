/* SPDX-License-Identifier: MIT */
#ifndef RS_OS_FILE_H
#define RS_OS_FILE_H

/* The inside of files, names and folders, for the files of this folder. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <resha/alloc.h>
#include <resha/file.h>

#include "core/disk.h"

enum { RS_PATH_TEXT = 100 }; /* bytes of a name in a record */

/* ---- operations ---- */

/* A RUN that does its work in pieces: run() gives 1 as long as there is more, then 0 or negative. Cancelled between two
 * pieces: -ECANCELED, and what has been begun is the caller's to undo. */
int rs_disk_pieces(struct rs_loop *l, struct rs_disk *d, const char *what);

/* A RUN that undoes something: it cannot be cancelled, and where the backend cannot have it done, it is done here.
 * *open is set to -1 by it. */
void rs_disk_undo(struct rs_loop *l, struct rs_disk *d, const int *open);

/* ---- names in records ---- */

/* Printable and in quotes; of a long one, its end. buf. */
const char *rs_path_text(const char *path, char buf[static RS_PATH_TEXT]);

/* 0, or why this is no name to begin with. */
int rs_path_check(const char *path, const char *verb);

/* `code` with its record: "VERB "NAME": why (what may help)". A cancel and a close have none of this. */
int rs_path_failed(int code, const char *verb, const char *path);
int rs_path_failed_two(int code, const char *verb, const char *from, const char *to);

/* ---- what files are ---- */

enum resha_file_kind rs_file_kind(mode_t mode);
void rs_stat_tell(const struct statx *x, resha_stat *ret_stat);

/* A call that opens, made on whatever thread: what it met. */
struct rs_found {
        mode_t mode; /* 0: not known */
        int64_t size;
        uint64_t device, inode;
        bool terminal;
        bool refused; /* it is no file to be opened here: rs_found_refused() says why */
};

/* Opens, if it is something that is read and written as a file: a descriptor, or negative. d: OPEN, with O_NOCTTY; with
 * O_NONBLOCK among its flags, for reading, it is sooner done, and the descriptor stays non-blocking. */
ssize_t rs_file_open_checked(struct rs_disk *d, struct rs_found *ret_found);
int rs_found_refused(const struct rs_found *found, const char *path);

/* ---- what is open: files and folders ---- */

struct rs_opened {
        struct rs_loop *loop;
        struct rs_cleanup cleanup; /* closes it at the end of the run */
        struct rs_list uses;       /* of rs_use.node: calls that are inside */
        struct rs_wait *closer;    /* waits until there are none */
        const char *path;
        int fd;
        bool closing;
        struct rs_shown shown;
};

/* A call that is inside, on its stack. */
struct rs_use {
        struct rs_node node;
        struct rs_op op; /* the latest; not pending: the call is between two */
};

/* o is the first member of what is freed when it is closed. kind: "file", "folder". */
void rs_opened_init(struct rs_opened *o, struct rs_loop *l, int fd, const char *path,
                    const struct resha_shown_kind *kind);

/* Why a call cannot go in: another loop, closed. */
int rs_opened_refuse(const struct rs_opened *o, const struct rs_loop *l);

static inline __attribute__((always_inline)) int rs_opened_enter(struct rs_opened *o, struct rs_use *u,
                                                                 struct rs_loop **ret_loop)
{
        int rc = rs_enter(ret_loop);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_UNLIKELY(o->loop != *ret_loop || o->closing))
                return rs_opened_refuse(o, *ret_loop);
        u->op.state = RS_OP_IDLE;
        rs_list_push(&o->uses, &u->node);
        return 0;
}

/* One call of the disk of who is inside. */
ssize_t rs_opened_do(struct rs_opened *o, struct rs_use *u, struct rs_disk *d, const char *what);

/* Between two of them. */
static inline int rs_opened_go_on(const struct rs_opened *o)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return rc < 0 ? rc : o->closing ? -EBADF : 0;
}

static inline void rs_opened_leave(struct rs_opened *o, struct rs_use *u)
{
        rs_list_remove(&o->uses, &u->node);
        if (RS_UNLIKELY(o->closer != NULL) && rs_list_empty(&o->uses)) {
                struct rs_wait *w = o->closer;
                o->closer = NULL;
                rs_wake(w, 0);
        }
}

/* What closing said, and o is freed; or why it cannot be closed here. */
int rs_opened_close(struct rs_opened *o);

struct resha_file {
        struct rs_opened opened;
        int flags;       /* of open(2) */
        int sync_failed; /* something was lost: told by every later sync */
        char path[];
};

#endif
