/* SPDX-License-Identifier: MIT */
#ifndef RS_TERMINAL_H
#define RS_TERMINAL_H

/* Columns of the terminal behind fd; 0 if it is none, or does not know. */
int rs_terminal_width(int fd);

#endif
