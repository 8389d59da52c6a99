/* SPDX-License-Identifier: MIT */
/* The program that process_storm.c starts ten thousand times: it does what its first argument says, and ends with the
 * status that is its second. Small and linked statically, so that most of its time is the kernel's. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_all(int fd, const char *data, size_t size)
{
        while (size > 0) {
                ssize_t n = write(fd, data, size);
                if (n < 0)
                        _exit(120 + fd);
                data += n;
                size -= (size_t)n;
        }
}

static void copy(void)
{
        char buf[4096];
        ssize_t n;

        while ((n = read(0, buf, sizeof buf)) > 0)
                write_all(1, buf, (size_t)n);
}

/* Half a second with the output open, and whatever else there is. */
static void leave_somebody(void)
{
        if (fork() == 0) {
                poll(NULL, 0, 500);
                _exit(0);
        }
        write_all(1, "left", 4);
}

static void babble(size_t size)
{
        static char text[1000];

        memset(text, 'b', sizeof text);
        for (; size > 0; size -= sizeof text) {
                write_all(1, text, sizeof text);
                write_all(2, text, sizeof text);
        }
}

int main(int argc, char **argv)
{
        const char *what = argc > 1 ? argv[1] : "";

        if (strcmp(what, "copy") == 0)
                copy();
        else if (strcmp(what, "deaf") == 0)
                close(0);
        else if (strcmp(what, "leave") == 0)
                leave_somebody();
        else if (strcmp(what, "babble") == 0)
                babble(100 * 1000);
        else if (strcmp(what, "stop") == 0)
                raise(SIGSTOP);
        else if (strcmp(what, "stubborn") == 0)
                signal(SIGTERM, SIG_IGN);
        if (strcmp(what, "hang") == 0 || strcmp(what, "stubborn") == 0) {
                write_all(1, "here", 4);
                for (;;)
                        pause();
        }
        return argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
}
