/* SPDX-License-Identifier: MIT */
#ifndef RS_FORK_H
#define RS_FORK_H

/* System calls of processes that go on with the program of their parent; see sys.h for what holds for all. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rs_sys_ended;

int rs_sys_threads(void); /* of this process; under TSan, which has one of its own, 1 */

/* Memory that children share from now on, all zero; NULL: there is none. Pages count when they are touched. */
void *rs_sys_share(size_t size);
void rs_sys_unshare(void *base, size_t size);
void rs_sys_share_read(void *base, size_t size); /* from now on this process only reads there; whole pages */
void rs_sys_share_drop(void *base, size_t size); /* its pages are given back, and are zero again; whole pages */

/* fork(2), of a process with one thread. What stdio holds is written first. */
int rs_sys_fork(void);
void rs_sys_exit(int status) __attribute__((noreturn)); /* at once: no atexit(3), no stdio */
void rs_sys_flush(void);                                /* what stdio holds */

/* In a child. keep_only: all descriptors but 0, 1, 2 and these, which are sorted, are closed. limit_data: it may
 * allocate that many bytes more. die_with: it gets `sig` when its parent ends; false: that has ended already. */
void rs_sys_keep_only(const int *fds, size_t n);
void rs_sys_signals_reset(void); /* none is blocked or caught */
bool rs_sys_die_with(pid_t parent, int sig);
void rs_sys_own_group(void);
void rs_sys_process_name(const char *name);
int rs_sys_limit_data(size_t more);

int rs_sys_child_signals(void);         /* a descriptor that is readable when a child has ended, or SIGTERM has come */
bool rs_sys_child_signals_read(int fd); /* true: SIGTERM */
/* One that has ended and is to be reaped. 0: none has ended; negative: there is none. */
pid_t rs_sys_wait_any(struct rs_sys_ended *ret_ended);

uint64_t rs_sys_file_id(int fd); /* another one for another file or socket; 0: none is open */

/* Waits for a byte, and takes all that have come. False: the other end is closed. */
bool rs_sys_wake_wait(int fd);

#endif
