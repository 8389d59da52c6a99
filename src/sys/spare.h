/* SPDX-License-Identifier: MIT */
#ifndef RS_SPARE_H
#define RS_SPARE_H

/* File descriptors in reserve, for who looks at a program that has none left: see spare.c. */

#include <stdbool.h>

/* There is a reserve from the first begin to the last end: RS_SPARE of them, and one more. Without a reserve all of
 * this is as if it were empty. */
enum { RS_SPARE = 4 };
void rs_spare_begin(void);
void rs_spare_end(void);
void rs_spare_forked(void); /* in a forked child: it has none */

/* After a call that has found no descriptor free: one of the reserve is given up, so that the call may be made again.
 * False: there is none. */
bool rs_spare_give(int code);

/* open(path, O_RDONLY), with the reserve. The descriptor, or negative. */
int rs_spare_open(const char *path);

/* Any descriptor; what the reserve lacks is taken back. */
void rs_spare_close(int fd);

/* Whether rs_spare_open() of this thread has failed since the last look, as there was no descriptor at all. */
bool rs_spare_missed(void);
#define RS_SPARE_MISSED \
        "without a file descriptor, not all could be looked up: names and lines of functions, or where a thread is"

#endif
