/* SPDX-License-Identifier: MIT */
#ifndef REAL_CHILD_H
#define REAL_CHILD_H

/* For tests of processes. With RESHA_TEST_NO_PIDFD=1 they run as on a kernel without pidfds. */

#include "common.h"

/* The programs are started by a clone(2) that is no clone that shares memory here: what exec says is not known. */
#ifdef RS_TEST_EMULATED
#define CHILD_EXEC_IS_KNOWN() test_skip("qemu-user does not tell what exec says")
#else
#define CHILD_EXEC_IS_KNOWN() child_exec_is_known()
#endif
void child_exec_is_known(void);

/* sh -c TEXT, with options beside. */
resha_process *shell(const char *text, resha_process_opts o);

/* No child is left, ended or not. */
void assert_no_children(void);

/* Closes it; then there is none. */
void close_process(resha_process *p);

/* All that it writes on its standard output; and that of sh -c TEXT, which must end well. */
const char *read_all(resha_process *p);
const char *output_of(const char *text, resha_process_opts o);

/* The number of a process that is printed. */
int number(const char *line);

/* Whether there is no such process; or a zombie, of somebody who does not reap. */
bool is_gone(int pid);
bool child_is_dead(int pid);
void wait_until_dead(int pid);

/* Waits for process `arg`; notes "status7" or "signal9". */
int wait_task(void *arg);

#endif
