/* SPDX-License-Identifier: MIT */
#ifndef RS_UNIX_FILE_H
#define RS_UNIX_FILE_H

/* The files of Unix sockets that listen. */

#include "core/core.h"
#include "sys/sys.h"

struct rs_unix_file {
        char *path; /* absolute; NULL: there is none, or it is not ours to remove */
        struct rs_sys_file what;
};

/* Binds f, on the real kernel, to an address of the Unix family. mode: 0 leaves it to the umask. 0 or negative, and
 * perhaps *ret_why, static, says more than the code. [task] cancellation point */
int rs_unix_file_bind(struct rs_loop *l, struct rs_file *f, const resha_addr *addr, unsigned mode,
                      struct rs_unix_file *ret_file, const char **ret_why);

/* If it is still the same one. Before the socket is closed: until then nothing else can have its inode. */
void rs_unix_file_remove(struct rs_unix_file *u);

#endif
