/* SPDX-License-Identifier: MIT */
/* What the library asks a terminal: how wide it is. */

#include "sys/terminal.h"

#include <sys/ioctl.h>

int rs_terminal_width(int fd)
{
        struct winsize size;

        return ioctl(fd, TIOCGWINSZ, &size) < 0 ? 0 : size.ws_col;
}
