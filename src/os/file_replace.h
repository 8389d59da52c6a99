/* SPDX-License-Identifier: MIT */
#ifndef RS_OS_FILE_REPLACE_H
#define RS_OS_FILE_REPLACE_H

/* A file that is made in one step, of bytes in memory or of another file. */

#include "os/file.h"

struct rs_replace {
        struct rs_disk disk; /* RUN */
        const char *path;
        const char *data; /* size bytes */
        size_t size, done;
        const char *from; /* in place of data: the file that is copied */
        unsigned mode;    /* 0: of what is replaced, or a default */
        bool no_sync, exclusive;

        /* Its own. */
        const char *verb; /* what failed; NULL: it has not begun */
        char *target;     /* path with its links followed, cut before the name */
        const char *name; /* in folder `dir` */
        char temp[32];    /* beside it */
        uint64_t luck;
        unsigned uid, gid; /* UINT_MAX: as they are */
        int dir, fd;       /* -1: not open */
        bool exact;        /* mode is set, whatever the umask */
        bool made;         /* temp is there, and closed */
        bool inherits;     /* mode is that of the file that is replaced */
        bool foreign;      /* what is there is of another user, who may have laid it there */
        bool irregular;    /* what is there is no regular file */
        bool same;         /* it is the file that is copied */
        bool replaced;     /* it is done, but for the sync of the folder */
        bool no_folder_sync;

        /* Copying. */
        struct rs_found found; /* what `from` is */
        int source;
        int64_t offset;
        char *buffer;       /* the kernel does not copy: by this; NULL: it does */
        bool source_failed; /* what failed is about `from` */
};

/* path, and data or from, and the options are set; the rest is zero. */
int rs_replace(struct rs_loop *l, struct rs_replace *r);
int rs_replace_opts(struct rs_replace *r, const resha_save_opts *opts);

/* file_copy.c: the file that is copied. On a thread of the crew. */
int rs_replace_open_source(struct rs_replace *r, unsigned *ret_mode);
bool rs_replace_same(const struct rs_replace *r, const struct statx *old);
ssize_t rs_replace_copy_piece(struct rs_replace *r); /* 1: there is more */

#endif
