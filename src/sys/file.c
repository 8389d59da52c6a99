/* SPDX-License-Identifier: MIT */
/* System calls on sockets and other descriptors; see sys.c for what holds for all. */

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/call.h"
#include "sys/sanitize.h"

ssize_t rs_sys_write(int fd, const void *buf, size_t size)
{
        int saved = errno;
        ssize_t n = CALL(RS_SYS_WRITE, write(fd, buf, size));

        errno = saved;
        return n;
}

void rs_sys_close(int fd)
{
        (void)rs_fault_syscall(RS_SYS_CLOSE);
        (void)close(fd); /* also after EINTR the descriptor is gone */
}

int rs_sys_move_up(int fd)
{
        int moved = RS_UNLIKELY(fd >= 0 && fd <= STDERR_FILENO) ? rs_sys_duplicate(fd) : -1;

        if (RS_LIKELY(moved < 0))
                return fd;
        rs_sys_close(fd);
        return moved;
}

/* After a call that has made two. */
static int both_up(int rc, int fds[2])
{
        if (rc == 0) {
                fds[0] = rs_sys_move_up(fds[0]);
                fds[1] = rs_sys_move_up(fds[1]);
        }
        return rc;
}

int rs_sys_socket(int family, int type)
{
        return rs_sys_move_up((int)CALL(RS_SYS_SOCKET, socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
}

int rs_sys_socketpair(int type, int ret_fds[2])
{
        return both_up(
                (int)CALL(RS_SYS_SOCKETPAIR, socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret_fds)),
                ret_fds);
}

int rs_sys_bind(int fd, const struct sockaddr *addr, socklen_t size)
{
        return (int)CALL(RS_SYS_BIND, bind(fd, addr, size));
}

int rs_sys_listen(int fd, int backlog)
{
        return (int)CALL(RS_SYS_LISTEN, listen(fd, backlog));
}

int rs_sys_accept(int fd)
{
        return rs_sys_move_up((int)CALL(RS_SYS_ACCEPT, accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)));
}

int rs_sys_connect(int fd, const struct sockaddr *addr, socklen_t size)
{
        return (int)CALL(RS_SYS_CONNECT, connect(fd, addr, size));
}

/* Most of what a server does. Where there are several threads, the C library's recv() and send() make themselves points
 * at which a thread can be cancelled (pthread_cancel): two atomic operations each, for something that would leave a
 * loop half done. Sanitizers have to see them. */
#if defined SYS_recvfrom && defined SYS_sendto && !defined RS_ASAN && !defined RS_TSAN
#define RECV(fd, buf, size, flags) syscall(SYS_recvfrom, fd, buf, size, flags, NULL, NULL)
#define SEND(fd, buf, size, flags) syscall(SYS_sendto, fd, buf, size, flags, NULL, 0)
#else
#define RECV recv
#define SEND send
#endif

ssize_t rs_sys_recv(int fd, void *buf, size_t size)
{
        return CALL(RS_SYS_RECV, RECV(fd, buf, size, MSG_DONTWAIT));
}

ssize_t rs_sys_recv_left(int fd, void *buf, size_t size, bool *ret_left)
{
        struct iovec part = { buf, size };
        union {
                struct cmsghdr header;
                char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct msghdr m = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.room
        };
        ssize_t n = CALL(RS_SYS_RECV, recvmsg(fd, &m, MSG_DONTWAIT));
        const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
        int left = 1;

        if (c && c->cmsg_level == IPPROTO_TCP && c->cmsg_type == TCP_CM_INQ)
                memcpy(&left, CMSG_DATA(c), sizeof left);
        *ret_left = left != 0;
        return n;
}

ssize_t rs_sys_send(int fd, const void *buf, size_t size)
{
        return CALL(RS_SYS_SEND, SEND(fd, buf, size, MSG_DONTWAIT | MSG_NOSIGNAL));
}

ssize_t rs_sys_sendmsg(int fd, const struct msghdr *message)
{
        return CALL(RS_SYS_SEND, sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

int rs_sys_recvmmsg(int fd, struct mmsghdr *messages, unsigned n)
{
        return (int)CALL(RS_SYS_RECV, recvmmsg(fd, messages, n, MSG_DONTWAIT | MSG_TRUNC, NULL));
}

int rs_sys_sendmmsg(int fd, struct mmsghdr *messages, unsigned n)
{
        return (int)CALL(RS_SYS_SEND, sendmmsg(fd, messages, n, MSG_DONTWAIT | MSG_NOSIGNAL));
}

ssize_t rs_sys_recv_error(int fd, struct msghdr *message)
{
        return CALL(RS_SYS_RECV, recvmsg(fd, message, MSG_ERRQUEUE | MSG_DONTWAIT));
}

int rs_sys_shutdown(int fd, int how)
{
        return (int)CALL(RS_SYS_SHUTDOWN, shutdown(fd, how));
}

int rs_sys_sockname(int fd, bool peer, struct sockaddr *addr, socklen_t *size)
{
        return (int)CALL(RS_SYS_GETSOCKNAME, peer ? getpeername(fd, addr, size) : getsockname(fd, addr, size));
}

int rs_sys_setsockopt(int fd, int level, int name, int value)
{
        return (int)CALL(RS_SYS_SETSOCKOPT, setsockopt(fd, level, name, &value, sizeof value));
}

int rs_sys_getsockopt(int fd, int level, int name, int *ret_value)
{
        socklen_t size = sizeof *ret_value;

        return (int)CALL(RS_SYS_GETSOCKOPT, getsockopt(fd, level, name, ret_value, &size));
}

void rs_sys_reset_at_close(int fd)
{
        struct linger none = { .l_onoff = 1, .l_linger = 0 };

        (void)CALL(RS_SYS_SETSOCKOPT, setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
}

int rs_sys_pipe(int ret_fds[2])
{
        return both_up((int)CALL(RS_SYS_PIPE, pipe2(ret_fds, O_NONBLOCK | O_CLOEXEC)), ret_fds);
}

ssize_t rs_sys_read(int fd, void *buf, size_t size)
{
        return CALL(RS_SYS_READ, read(fd, buf, size));
}

ssize_t rs_sys_pread(int fd, void *buf, size_t size, int64_t offset)
{
        return CALL(RS_SYS_READ, pread(fd, buf, size, offset));
}

ssize_t rs_sys_writev(int fd, const struct iovec *parts, int n)
{
        return CALL(RS_SYS_WRITE, writev(fd, parts, n));
}

ssize_t rs_sys_sendfile(int to, int from, int64_t offset, size_t size)
{
        off_t at = offset;

        return CALL(RS_SYS_SENDFILE, sendfile(to, from, &at, size));
}

int rs_sys_open(const char *path, int flags)
{
        return rs_sys_move_up((int)CALL(RS_SYS_OPEN, open(path, flags | O_CLOEXEC)));
}

int rs_sys_duplicate_above(int fd, int least)
{
        int rc = (int)CALL(RS_SYS_DUP, fcntl(fd, F_DUPFD_CLOEXEC, least));

        return rc == -EINVAL ? -EMFILE : rc; /* `least` is not below RLIMIT_NOFILE */
}

int rs_sys_duplicate(int fd)
{
        return rs_sys_duplicate_above(fd, STDERR_FILENO + 1); /* never one of the three that others write to */
}

bool rs_sys_opens_again(int fd)
{
        enum { MEMORY = 1 };
        struct stat st;
        unsigned number;

        if (fstat(fd, &st) < 0)
                return false;
        if (S_ISCHR(st.st_mode) && major(st.st_rdev) != MEMORY)
                return isatty(fd) && ioctl(fd, TIOCGPTN, &number) < 0;
        return S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode);
}

int rs_sys_file_mode(int fd, mode_t *ret_mode)
{
        struct stat st;
        int rc = (int)CALL(RS_SYS_FSTAT, fstat(fd, &st));

        if (rc == 0)
                *ret_mode = st.st_mode;
        return rc;
}

int rs_sys_file_flags(int fd)
{
        return (int)CALL(RS_SYS_FCNTL, fcntl(fd, F_GETFL));
}

int rs_sys_file_flags_set(int fd, int flags)
{
        return (int)CALL(RS_SYS_FCNTL, fcntl(fd, F_SETFL, flags));
}

int rs_sys_close_on_exec(int fd)
{
        return (int)CALL(RS_SYS_FCNTL, fcntl(fd, F_SETFD, FD_CLOEXEC));
}
