/* SPDX-License-Identifier: MIT */

/* The way to an inspector.
 *
 * This side uses no loop of its own: what looks at a program that is in trouble needs little itself, and variables of
 * the environment that are meant for that program (RESHA_TRACE=FILE, RESHA_BACKEND) do nothing here.
 *
 * Whom it talks to is asked of the kernel: the socket must be one that the process itself listens at, as the user that
 * owns it. What then comes is believed to be an answer, and nothing else. */

#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "exits.h"
#include "interrupt.h"

enum { MAX_LINE = 1 << 20, READ_SIZE = 64 << 10, CONNECT_MS = 2000 };

static const int64_t PATIENCE = INT64_C(10000000000);

/* ---- the process ---- */

static bool read_small(const char *path, char *buf, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
        if (fd >= 0)
                close(fd);
        buf[n > 0 ? n : 0] = '\0';
        return n > 0;
}

/* The nth number of a line of /proc/PID/status, from 0; the last one for -1. */
static long status_number(const char *status, const char *line, int nth)
{
        const char *p = strstr(status, line);
        long v = -1;
        if (!p)
                return -1;
        p += strlen(line);
        for (int i = 0; nth < 0 || i <= nth; i++) {
                char *end;
                p += strspn(p, " \t");
                long next = strtol(p, &end, 10);
                if (end == p)
                        break;
                v = next;
                p = end;
        }
        return v;
}

int process_look(pid_t pid, struct process *ret_process)
{
        char path[48], status[4096];
        snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
        if (!read_small(path, status, sizeof status))
                return -ESRCH;
        struct process p = { .pid = (pid_t)status_number(status, "\nTgid:", 0),
                             .inner = (pid_t)status_number(status, "\nNSpid:", -1),
                             .uid = (uid_t)status_number(status, "\nUid:", 1) };
        const char *state = strstr(status, "\nState:");
        p.state = state ? state[7 + strspn(state + 7, " \t")] : '?';
        p.pid = p.pid > 0 ? p.pid : pid;
        p.inner = p.inner > 0 && p.pid == pid ? p.inner : p.pid;
        snprintf(path, sizeof path, "/proc/%d/comm", (int)p.pid);
        if (!read_small(path, p.name, sizeof p.name))
                return -ESRCH;
        p.name[strcspn(p.name, "\n")] = '\0';
        for (char *c = p.name; *c; c++)
                if (*c < ' ' || *c == 0x7f) /* whatever is not ASCII, too */
                        *c = '?';
        *ret_process = p;
        return p.state == 'Z' || p.state == 'X' ? -ESRCH : 0;
}

bool door_folder(uid_t uid, unsigned nth, char *ret_path, size_t size)
{
        snprintf(ret_path, size, nth == 0 ? "/run/user/%u/resha" : "/tmp/resha-%u", (unsigned)uid);
        return nth < 2;
}

/* ---- connecting ---- */

static int64_t now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A full line of callers is no failure: they are served one after the other. fd, or -errno. */
static int connect_to(const char *path)
{
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        int64_t end = now_ns() + (int64_t)CONNECT_MS * 1000000;
        size_t size = strlen(path);
        if (size >= sizeof addr.sun_path)
                return -ENAMETOOLONG;
        memcpy(addr.sun_path, path, size);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        while (connect(fd, (const struct sockaddr *)(const void *)&addr, sizeof addr) < 0) {
                int rc = -errno;
                if ((rc != -EAGAIN && rc != -EINTR) || now_ns() > end) {
                        close(fd);
                        return rc;
                }
                poll(NULL, 0, 10);
        }
        return fd;
}

/* Where the socket of a process may be: in its user's folders, as this program sees them and as the process does, which
 * may live in a container. */
static int connect_somewhere(const struct process *p)
{
        char folder[64], path[128];
        int rc = -ENOENT;
        for (unsigned i = 0; door_folder(p->uid, i / 2, folder, sizeof folder); i++) {
                if (i % 2 == 0)
                        snprintf(path, sizeof path, "%s/%d.sock", folder, (int)p->pid);
                else
                        snprintf(path, sizeof path, "/proc/%d/root%s/%d.sock", (int)p->pid, folder, (int)p->inner);
                int fd = connect_to(path);
                if (fd >= 0)
                        return fd;
                if (i % 2 == 0 && fd != -ENOENT && fd != -ENOTDIR)
                        rc = fd;
        }
        return rc;
}

static bool is_its_own(int fd, const struct process *p)
{
        struct ucred peer;
        socklen_t size = sizeof peer;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return false;
        return peer.uid == p->uid && peer.pid == p->pid;
}

/* Under prefixes other than its own gdb does not find the commands: it is told where they are. */
static void add_gdb(struct text *t, int pid)
{
        text_printf(t, "gdb -p %d", pid);
        if (access(RS_GDB_SCRIPT, R_OK) == 0)
                text_puts(t, " -ex 'source " RS_GDB_SCRIPT "'");
        text_puts(t, " -ex 'resha tree'");
}

static int no_way(struct door *d, int rc, const char *command)
{
        const struct process *p = d->process;
        int pid = (int)p->pid;
        switch (rc) {
        case -EACCES:
        case -EPERM:
                text_printf(d->why, "process %d (%s) does not let you in; as its user or root: resha %s %d", pid,
                            p->name, command, pid);
                return EXIT_REFUSED;
        case -EAGAIN:
                text_printf(d->why, "process %d (%s) answers others, and has no turn for you; try again", pid, p->name);
                return EXIT_REFUSED;
        case -ENOENT:
        case -ENOTDIR:
        case -ECONNREFUSED:
                text_printf(d->why,
                            "process %d (%s) has no inspector: it starts with RESHA_INSPECT=1 in its environment; "
                            "as it is, gdb sees into it: ",
                            pid, p->name);
                add_gdb(d->why, pid);
                return EXIT_NO_INSPECTOR;
        default:
                text_printf(d->why, "process %d (%s): cannot connect to its inspector: %s", pid, p->name,
                            strerror(-rc));
                return EXIT_SOME_FAILED;
        }
}

int door_open(struct door *d, const struct process *p, const char *command, const char *request)
{
        d->process = p;
        d->patience = PATIENCE;
        if (geteuid() != 0 && geteuid() != p->uid) {
                text_printf(d->why,
                            "process %d (%s) belongs to another user (uid %u); as that user or root: resha %s %d",
                            (int)p->pid, p->name, (unsigned)p->uid, command, (int)p->pid);
                return EXIT_REFUSED;
        }
        if (p->state == 'T') {
                text_printf(d->why, "process %d (%s) is stopped, and answers nobody: kill -CONT %d", (int)p->pid,
                            p->name, (int)p->pid);
                return EXIT_REFUSED;
        }
        d->fd = connect_somewhere(p);
        if (d->fd < 0)
                return no_way(d, d->fd, command);
        if (!is_its_own(d->fd, p)) {
                text_printf(d->why, "the socket of process %d (%s) is another program's: it is not asked", (int)p->pid,
                            p->name);
                return EXIT_REFUSED;
        }
        TEXT(line);
        text_printf(&line, "%s\n", request);
        ssize_t sent = line.failed ? 0 : send(d->fd, line.data, line.len, MSG_NOSIGNAL);
        /* who turns away does not listen first: what it has said is there to be read (EPIPE) */
        if (sent != (ssize_t)line.len && !(sent < 0 && errno == EPIPE)) {
                text_printf(d->why, "process %d (%s) hung up before it was asked; try again", (int)p->pid, p->name);
                return EXIT_CUT;
        }
        return EXIT_DONE;
}

void door_close(struct door *d)
{
        if (d->fd >= 0)
                close(d->fd);
        resha_free(d->buf);
        text_done(d->why);
        *d = (struct door){ .fd = -1, .key = -1 };
}

/* ---- reading ---- */

static int too_slow(struct door *d)
{
        struct process now;
        int pid = (int)d->process->pid;
        bool there = process_look(d->process->pid, &now) == 0;
        if (there && (now.state == 'T' || now.state == 't')) {
                text_printf(d->why, "process %d (%s) is stopped, and answers nobody: kill -CONT %d", pid,
                            d->process->name, pid);
        } else {
                text_printf(d->why, "process %d (%s) said nothing for %d s; gdb still works: ", pid, d->process->name,
                            (int)(d->patience / 1000000000));
                add_gdb(d->why, pid);
        }
        return -ETIMEDOUT;
}

/* Room for READ_SIZE more, what has been looked at being gone. */
static int make_room(struct door *d)
{
        if (d->start) {
                memmove(d->buf, d->buf + d->start, d->end - d->start);
                d->end -= d->start;
                d->seen -= d->start;
                d->start = 0;
        }
        if (d->cap - d->end > READ_SIZE)
                return 0;
        if (d->end > MAX_LINE) {
                text_printf(d->why, "process %d (%s) answers with a line that does not end", (int)d->process->pid,
                            d->process->name);
                return -EMSGSIZE;
        }
        size_t cap = 2 * d->cap + 2 * READ_SIZE;
        char *buf = resha_realloc(d->buf, cap);
        if (!buf) {
                text_puts(d->why, "out of memory");
                return -ENOMEM;
        }
        d->buf = buf;
        d->cap = cap;
        return 0;
}

/* 1, 0 at the end, negative. */
static int read_more(struct door *d)
{
        int rc = make_room(d);
        int64_t end = now_ns() + d->patience;
        if (rc < 0)
                return rc;
        for (;;) {
                ssize_t n = recv(d->fd, d->buf + d->end, READ_SIZE, 0);
                if (n > 0) {
                        d->end += (size_t)n;
                        d->bytes += (uint64_t)n;
                        return 1;
                }
                if (n == 0 || (errno != EAGAIN && errno != EINTR))
                        return 0; /* broken off: whoever reads misses its end */
                int64_t left = end - now_ns();
                if (left <= 0)
                        return too_slow(d);
                struct pollfd p[] = { { .fd = d->fd, .events = POLLIN },
                                      { .fd = d->key, .events = POLLIN },
                                      { .fd = interrupt_fd(), .events = POLLIN } };
                if (poll(p, 3, (int)(left / 1000000) + 1) < 0 && errno != EINTR)
                        return 0;
                if (p[1].revents || p[2].revents)
                        return -EINTR;
        }
}

int door_line(struct door *d, char **ret_line, size_t *ret_size)
{
        for (;;) {
                char *nl = d->end > d->seen ? memchr(d->buf + d->seen, '\n', d->end - d->seen) : NULL;
                if (nl) {
                        *ret_line = d->buf + d->start;
                        *ret_size = (size_t)(nl - *ret_line);
                        *nl = '\0';
                        d->start = d->seen = (size_t)(nl - d->buf) + 1;
                        return 1;
                }
                d->seen = d->end;
                int rc = read_more(d);
                if (rc <= 0)
                        return rc;
        }
}

int door_bytes(struct door *d, char **ret_data, size_t *ret_size)
{
        if (d->start == d->end) {
                int rc = read_more(d);
                if (rc <= 0)
                        return rc;
        }
        *ret_data = d->buf + d->start;
        *ret_size = d->end - d->start;
        d->start = d->seen = d->end;
        return 1;
}
