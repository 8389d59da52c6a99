/* SPDX-License-Identifier: MIT */
/* Why a program could not be started. The kernel has one code for many reasons: -ENOENT is said of the directory, of
 * the program, and of the interpreter that the program's file asks for. So after a failure all of them are looked at,
 * in the order in which the kernel meets them. That is a look afterwards: should the files have changed in between, the
 * code is right still, and the text may be vague. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process/process.h"
#include "sys/spawn.h"
#include "sys/sys.h"

enum { PATH_BYTES = 1024, PATH_SHOWN = 100, HEAD_BYTES = 256 };

/* `dir`/`name`, unless that is absolute. False: too long. */
static bool join(char *buf, const char *dir, size_t dir_size, const char *name)
{
        int n = dir_size && name[0] != '/' ? snprintf(buf, PATH_BYTES, "%.*s/%s", (int)dir_size, dir, name)
                                           : snprintf(buf, PATH_BYTES, "%s", name);

        return n > 0 && n < PATH_BYTES;
}

static bool has_slash(const char *name)
{
        return strchr(name, '/') != NULL;
}

/* The first file of that name in PATH, as execvp(3) looks: 0 and its path; -EACCES and the path: one that may not be
 * executed; -ENOENT. */
static int search(const resha_process_opts *o, const char *path, char *ret_file)
{
        char in_path[PATH_BYTES], file[PATH_BYTES];
        int found = -ENOENT;

        for (const char *rest = path; rest; rest = strchr(rest, ':') ? strchr(rest, ':') + 1 : NULL) {
                size_t size = strcspn(rest, ":");
                if (!join(in_path, size ? rest : ".", size ? size : 1, o->argv[0]) ||
                    !join(file, o->dir, o->dir ? strlen(o->dir) : 0, in_path))
                        continue;
                int rc = rs_sys_executable(file);
                if (rc == 0 || (rc == -EACCES && found == -ENOENT))
                        memcpy(ret_file, file, sizeof file);
                if (rc == 0)
                        return 0;
                found = rc == -EACCES ? rc : found;
        }
        return found;
}

static int find(const resha_process_opts *o, const char *path, char *ret_file)
{
        if (!has_slash(o->argv[0]))
                return search(o, path, ret_file);
        return join(ret_file, o->dir, o->dir ? strlen(o->dir) : 0, o->argv[0]) ? rs_sys_executable(ret_file)
                                                                               : -ENAMETOOLONG;
}

/* -EBADF: it does not begin so. */
static int read_head(const char *file, char *buf)
{
        int fd = rs_sys_open(file, O_RDONLY | O_NONBLOCK);

        if (fd < 0)
                return fd;
        ssize_t n = rs_sys_pread(fd, buf, HEAD_BYTES - 1, 0);
        rs_sys_close(fd);
        buf[n > 0 ? n : 0] = 0;
        return n > 0 ? 0 : -EBADF;
}

/* The file is there and may be executed, and yet something is not. */
static int asks_for(const char *file, int code)
{
        char head[HEAD_BYTES];

        if (read_head(file, head) == 0 && head[0] == '#' && head[1] == '!') {
                char *name = head + 2 + strspn(head + 2, " \t");
                name[strcspn(name, " \t\r\n")] = 0;
                return resha_fail_at(code, NULL, "%.80s: its interpreter \"%.80s\" (first line of the file): %s", file,
                                     name, resha_strerror(code));
        }
        if (code == -ENOENT)
                return resha_fail_at(code, NULL, "%.120s: the loader (dynamic linker) that it asks for is not there",
                                     file);
        return resha_fail_at(code, NULL, "%.120s: %s", file, resha_strerror(code));
}

static int not_there(const resha_process_opts *o, int code)
{
        const char *path = getenv("PATH"); /* that of the process: execvp(3) takes this one, too */
        char file[PATH_BYTES], dir[PATH_BYTES];

        path = path ? path : "/bin:/usr/bin";
        if (o->dir) {
                int rc =
                        snprintf(dir, sizeof dir, "%s/.", o->dir) < PATH_BYTES ? rs_sys_executable(dir) : -ENAMETOOLONG;
                if (rc < 0)
                        return resha_fail_at(code, NULL, "%.64s: its directory \"%.100s\": %s", o->argv[0], o->dir,
                                             resha_strerror(rc));
        }
        int rc = find(o, path, file);
        if (rc == 0)
                return asks_for(file, code);
        if (rc == -EACCES)
                return resha_fail_at(code, NULL, "%.120s: it may not be executed (its mode, or a folder's on the way)",
                                     file);
        if (has_slash(o->argv[0]))
                return resha_fail_at(code, NULL, "%.120s: %s", file, resha_strerror(rc));
        bool fits = strlen(path) <= PATH_SHOWN;
        return resha_fail_at(code, NULL, "%.64s: there is no such program in PATH (%.*s%s)", o->argv[0], PATH_SHOWN,
                             path, fits ? "" : "...");
}

static size_t bytes(const char *const *list)
{
        size_t n = 0;

        for (; list && *list; list++)
                n += strlen(*list) + 1 + sizeof *list;
        return n;
}

int rs_child_failed(const resha_process_opts *o, int code)
{
        const char *name = o->argv[0];

        switch (code) {
        case -ENOENT:
        case -ENOTDIR:
        case -EACCES: return not_there(o, code);
        case -E2BIG:
                return resha_fail_at(code, NULL,
                                     "%.64s: arguments (%zu bytes) and environment are too long: at most a quarter of "
                                     "the limit of the stack, 128 KiB for one (ulimit -s)",
                                     name, bytes(o->argv));
        case -ENOEXEC:
                return resha_fail_at(
                        code, NULL,
                        "%.64s: it is no program for this machine, or a script without #! in its first line", name);
        case -EMFILE:
                return resha_fail_at(
                        code, NULL,
                        "%.64s: a descriptor that it gets, here or there, is not below the limit of open files "
                        "(ulimit -n)",
                        name);
        case -ETXTBSY: return resha_fail_at(code, NULL, "%.64s: somebody has it open for writing", name);
        case -EAGAIN:
                return resha_fail_at(
                        code, NULL,
                        "%.64s: there may be no more processes (ulimit -u, or pids.max of the control group)", name);
        default: return resha_fail_at(code, NULL, "%.64s: it could not be started: %s", name, resha_strerror(code));
        }
}

int rs_child_lost(const char *name, int code)
{
        struct sigaction now;

        if (code != -ECHILD)
                return resha_fail_at(code, NULL, "%s: its status: %s", name, resha_strerror(code));
        if (rs_sys_signal_get(SIGCHLD, &now) == 0 && (now.sa_handler == SIG_IGN || (now.sa_flags & SA_NOCLDWAIT)))
                return resha_fail_at(
                        code, NULL,
                        "%s: SIGCHLD is ignored (%s), so that the kernel keeps no status; set it to SIG_DFL "
                        "before processes are started",
                        name, now.sa_handler == SIG_IGN ? "SIG_IGN" : "SA_NOCLDWAIT");
        return resha_fail_at(code, NULL,
                             "%s: its status is gone: something else in this program waits for any child (wait(), "
                             "waitpid(-1)); let it wait for its own ones only",
                             name);
}
