/* SPDX-License-Identifier: MIT */
/* System calls of processes. A program is started by posix_spawn(3), which is a clone(2) that shares the memory until
 * the program is there: it takes the same time in a large process as in a small one, and the result of exec is known
 * when it returns. What glibc has no name for (pidfds) is called by its number. */

#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/call.h"

/* ---- starting ---- */

static int add_actions(posix_spawn_file_actions_t *a, const struct rs_spawn *s)
{
        int error = 0;

        for (size_t i = 0; i < s->n_fds && error == 0; i++)
                error = posix_spawn_file_actions_adddup2(a, s->fds[i], (int)i); /* onto itself: not close-on-exec */
        if (error == 0)
                error = posix_spawn_file_actions_addclosefrom_np(a, (int)s->n_fds);
        if (error == 0 && s->dir)
                error = posix_spawn_file_actions_addchdir_np(a, s->dir);
        return error;
}

/* nohup(1) and the shells tell a program by these that it goes on when the terminal speaks or is gone, and that is
 * meant for what it starts, too. */
static void signals_to_default(sigset_t *set)
{
        static const int kept[] = { SIGHUP, SIGINT, SIGQUIT };
        struct sigaction now;

        sigfillset(set);
        for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
                if (sigaction(kept[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN)
                        sigdelset(set, kept[i]);
}

static int set_attributes(posix_spawnattr_t *attr, const struct rs_spawn *s)
{
        short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
        sigset_t none, defaults;

        if (s->session)
                flags |= POSIX_SPAWN_SETSID;
        else if (s->group)
                flags |= POSIX_SPAWN_SETPGROUP; /* of its own: 0 is what the attributes begin with */
        sigemptyset(&none);
        signals_to_default(&defaults);
        int error = posix_spawnattr_setflags(attr, flags);
        if (error == 0)
                error = posix_spawnattr_setsigmask(attr, &none);
        return error ? error : posix_spawnattr_setsigdefault(attr, &defaults);
}

static int spawn(const struct rs_spawn *s, const posix_spawn_file_actions_t *a, const posix_spawnattr_t *attr,
                 pid_t *ret_pid)
{
        char *const *argv = (char *const *)(uintptr_t)s->argv, *const *env = (char *const *)(uintptr_t)s->env;
        int rc;

        do
                rc = rs_fault_syscall(RS_SYS_SPAWN);
        while (rc == -EINTR);
        if (rc == 0)
                rc = -posix_spawnp(ret_pid, s->program, a, attr, argv, env);
        return rc;
}

int rs_sys_spawn(const struct rs_spawn *s, pid_t *ret_pid)
{
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attr;

        posix_spawn_file_actions_init(&actions); /* these two cannot fail here */
        posix_spawnattr_init(&attr);
        int rc = -add_actions(&actions, s);
        if (rc == 0)
                rc = -set_attributes(&attr, s);
        if (rc == 0)
                rc = spawn(s, &actions, &attr, ret_pid);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attr);
        return rc;
}

char **rs_sys_environment(void)
{
        return environ;
}

int rs_sys_executable(const char *path)
{
        return (int)CALL(RS_SYS_ACCESS, faccessat(AT_FDCWD, path, X_OK, AT_EACCESS));
}

/* ---- the end ---- */

int rs_sys_pidfd(pid_t pid)
{
        return rs_sys_move_up((int)CALL(RS_SYS_PIDFD, syscall(SYS_pidfd_open, pid, 0)));
}

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static int wait_id(idtype_t type, id_t id, int flags, siginfo_t *ret_info)
{
        ret_info->si_pid = 0;
        return (int)CALL(RS_SYS_WAIT, waitid(type, id, ret_info, flags));
}

int rs_sys_wait_child(pid_t pid, int pidfd, int how, struct rs_sys_ended *ret_ended)
{
        int flags = WEXITED | (how & RS_WAIT_LOOK ? WNOHANG : 0) | (how & RS_WAIT_KEEP ? WNOWAIT : 0);
        siginfo_t info;
        int rc = pidfd < 0 ? -EINVAL : wait_id((idtype_t)P_PIDFD, (id_t)pidfd, flags, &info);

        if (rc == -EINVAL) /* Linux before 5.4 */
                rc = wait_id(P_PID, (id_t)pid, flags, &info);
        if (rc < 0 || info.si_pid == 0)
                return rc;
        *ret_ended = (struct rs_sys_ended){ info.si_code, info.si_status };
        return 1;
}

int rs_sys_pidfd_signal(int pidfd, int sig)
{
        return (int)CALL(RS_SYS_KILL, syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int rs_sys_kill(pid_t pid, int sig)
{
        return (int)CALL(RS_SYS_KILL, kill(pid, sig));
}
