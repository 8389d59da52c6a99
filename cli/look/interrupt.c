/* SPDX-License-Identifier: MIT */

/* Ctrl-C in commands that have something to tidy up. It comes through a pipe, too, so that a wait that begins a moment
 * later ends at once. Who ends it by force, or stops it, gets the terminal back as it was: a shell that does not echo
 * looks broken. */

#include "interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t came, is_set_up;
static int ends[2] = { -1, -1 };
static struct termios before, meanwhile; /* while is_set_up */

static void act_on(int number, void (*handler)(int number))
{
        struct sigaction act = { .sa_handler = handler };
        sigaction(number, &act, NULL);
}

/* What the signal would do without us, at once. */
static void obey(int number)
{
        sigset_t set;
        if (is_set_up)
                tcsetattr(STDIN_FILENO, TCSANOW, &before);
        act_on(number, SIG_DFL);
        raise(number);
        sigemptyset(&set);
        sigaddset(&set, number);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void note(int number)
{
        int old = errno;
        if (came)
                obey(number);
        came = 1;
        if (write(ends[1], "", 1) < 0) {} /* full: it says so already */
        errno = old;
}

static void stop(int number)
{
        int old = errno;
        obey(number);
        act_on(number, stop); /* somebody lets it go on */
        if (is_set_up && tcgetpgrp(STDIN_FILENO) == getpgrp())
                tcsetattr(STDIN_FILENO, TCSANOW, &meanwhile);
        errno = old;
}

void interrupt_catch(void)
{
        if (ends[0] < 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
                return; /* then it ends the process, as ever */
        act_on(SIGINT, note);
        act_on(SIGTERM, note);
}

int interrupt_fd(void)
{
        return ends[0];
}

bool interrupt_came(void)
{
        return came;
}

void interrupt_terminal(const struct termios *as_it_was, const struct termios *now)
{
        before = *as_it_was;
        meanwhile = *now;
        is_set_up = 1;
        act_on(SIGQUIT, obey);
        act_on(SIGHUP, obey);
        act_on(SIGTSTP, stop);
        tcsetattr(STDIN_FILENO, TCSANOW, now);
}

void interrupt_terminal_end(void)
{
        if (is_set_up)
                tcsetattr(STDIN_FILENO, TCSANOW, &before);
        is_set_up = 0;
}
