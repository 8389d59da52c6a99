/* SPDX-License-Identifier: MIT */
#ifndef CALLS_H
#define CALLS_H

/* How many system calls a process has made, counted by the kernel's tracepoint raw_syscalls:sys_enter: nothing stops it
 * meanwhile, as strace would. All of its threads that there are at the beginning, and what these start. */

#include <stdint.h>
#include <sys/types.h>

/* Begins to count. Ends the program where that is not allowed (root, or kernel.perf_event_paranoid -1, and tracefs). */
void calls_begin(pid_t pid);

/* Calls so far. */
uint64_t calls_so_far(void);

#endif
