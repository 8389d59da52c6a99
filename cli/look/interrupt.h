/* SPDX-License-Identifier: MIT */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <resha/base.h>

/* From now on Ctrl-C and SIGTERM end what waits (-EINTR) instead of the process; a second one ends it. */
void interrupt_catch(void);

/* A descriptor that is readable once one came; -1 before interrupt_catch(). */
int interrupt_fd(void);

/* Whether one came. */
bool interrupt_came(void);

#endif
