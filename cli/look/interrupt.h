/* SPDX-License-Identifier: MIT */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <termios.h>

#include <resha/base.h>

/* From now on Ctrl-C and SIGTERM end what waits (-EINTR) instead of the process; a second one ends it. */
void interrupt_catch(void);

/* A descriptor that is readable once one came; -1 before interrupt_catch(). */
int interrupt_fd(void);

/* Whether one came. */
bool interrupt_came(void);

/* Sets up the terminal at stdin, until interrupt_terminal_end(). What ends the process before that, or stops it, sets
 * it back. After interrupt_catch(). */
void interrupt_terminal(const struct termios *before, const struct termios *now);
void interrupt_terminal_end(void);

#endif
