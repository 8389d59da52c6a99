/* SPDX-License-Identifier: MIT */

/* Ctrl-C in commands that have something to tidy up. It comes through a pipe, too, so that a wait that begins a moment
 * later ends at once. */

#include "interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static int ends[2] = { -1, -1 };

static void note(int signal)
{
        int before = errno;
        (void)signal;
        came = 1;
        if (write(ends[1], "", 1) < 0) {} /* full: it says so already */
        errno = before;
}

void interrupt_catch(void)
{
        /* a second one ends all at once */
        struct sigaction act = { .sa_handler = note, .sa_flags = (int)SA_RESETHAND };
        if (ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return; /* then it ends the process, as ever */
        sigaction(SIGINT, &act, NULL);
        sigaction(SIGTERM, &act, NULL);
}

int interrupt_fd(void)
{
        return ends[0];
}

bool interrupt_came(void)
{
        return came;
}
