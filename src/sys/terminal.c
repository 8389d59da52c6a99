/* SPDX-License-Identifier: MIT */
/* What the library asks a terminal: whether it is one, how wide it is. */

#include "sys/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

bool rs_terminal_is(int fd)
{
        return isatty(fd);
}

int rs_terminal_width(int fd)
{
        struct winsize size;

        return ioctl(fd, TIOCGWINSZ, &size) < 0 ? 0 : size.ws_col;
}
