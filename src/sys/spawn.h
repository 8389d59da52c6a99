/* SPDX-License-Identifier: MIT */
#ifndef RS_SPAWN_H
#define RS_SPAWN_H

/* System calls of processes; see sys.h for what holds for all. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct rs_spawn {
        const char *program; /* with a slash: that file; else looked for in PATH */
        const char *const *argv, *const *env;
        const char *dir; /* or NULL */
        /* What become its descriptors 0 to n_fds - 1, all others being closed: each is that number already, or above
         * all of them. */
        const int *fds;
        size_t n_fds;
        bool group, session;
};

/* posix_spawn(3): no signal is blocked, all are handled in the default way, but that SIGHUP, SIGINT and SIGQUIT stay
 * ignored. 0, or why the program is not there; then no process is left. The thread stands still until that is known,
 * and nothing interrupts it. */
int rs_sys_spawn(const struct rs_spawn *s, pid_t *ret_pid);

char **rs_sys_environment(void);         /* the process's own: valid until somebody changes it */
int rs_sys_executable(const char *path); /* 0; -ENOENT, -EACCES, ...: it may not be executed, or entered if a folder */

/* A descriptor that is readable once the child has ended; -ENOSYS, -EPERM: not here. */
int rs_sys_pidfd(pid_t pid);

/* How a child has ended: as in siginfo_t. */
struct rs_sys_ended {
        int code; /* CLD_EXITED, CLD_KILLED, CLD_DUMPED */
        int status;
};

enum rs_sys_wait {
        RS_WAIT_LOOK = 1, /* does not wait */
        RS_WAIT_KEEP = 2, /* the child stays to be reaped */
};

/* The child's end, by its pidfd if that is not negative: 1 and *ret_ended; 0: it has not ended; -ECHILD: there is no
 * such child (any more). Reaps it. */
int rs_sys_wait_child(pid_t pid, int pidfd, int how, struct rs_sys_ended *ret_ended);

int rs_sys_pidfd_signal(int pidfd, int sig);
int rs_sys_kill(pid_t pid, int sig); /* a negative one: the group */

#endif
