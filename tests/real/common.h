/* SPDX-License-Identifier: MIT */
#ifndef REAL_COMMON_H
#define REAL_COMMON_H

/* For tests on the real kernel: raw peers, threads and descriptors of the process, system calls counted and made to
 * fail. */

#include "test.h"

#include "sys/sys.h"

/* Entries of /proc/self/task (always 1 under TSan) and /proc/self/fd. */
bool real_under_tsan(void);
bool real_under_asan(void);
unsigned real_threads(void);
unsigned real_fds(void);
/* Waits until there are no more than that: a thread that was joined is listed for a moment more. Fails after a
 * minute. */
void real_threads_left(unsigned most);
/* How often the thread of that name has gone to sleep; -1: there is none. */
long real_sleeps_of(const char *thread);

/* A raw blocking socket that is connected to, or listens on, a port of 127.0.0.1. The test fails if it cannot. */
int real_connect(uint16_t port);
int real_listen(int backlog, uint16_t *ret_port);

/* Listens on a free port of 127.0.0.1. */
resha_listener *real_listener(uint16_t *ret_port);

/* A connection of two streams of this loop; TASK only. */
struct real_pair {
        resha_stream *here, *there;
};
void real_pair(struct real_pair *p);
void real_pair_close(struct real_pair *p);

/* How often each system call was made since real_count(). */
extern unsigned real_calls[RS_SYS_COUNT];
void real_count(void);

/* The n-th system call (from 1) from now on fails with `code`, and all others of its kind go ahead. real_failed():
 * which one that was, RS_SYS_COUNT if none was yet. */
void real_fail_nth(unsigned n, int code);
enum rs_syscall real_failed(void);

#endif
