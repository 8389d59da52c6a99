/* SPDX-License-Identifier: MIT */
#ifndef RS_TERMINAL_H
#define RS_TERMINAL_H

#include <stdbool.h>

bool rs_terminal_is(int fd); /* either side of one */

/* Columns of the terminal behind fd; 0 if it is none, or does not know. */
int rs_terminal_width(int fd);

#endif
