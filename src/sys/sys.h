/* SPDX-License-Identifier: MIT */
#ifndef RS_SYS_H
#define RS_SYS_H

/* Every system call of libresha beside those for stacks, one wrapper each. They give 0 or more, or a negative errno;
 * EINTR is dealt with here. Each passes rs_fault_syscall() first, so that a test can make the n-th one fail. */

#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/list.h"

enum rs_syscall {
        RS_SYS_EPOLL_CREATE,
        RS_SYS_EPOLL_CTL,
        RS_SYS_EPOLL_WAIT,
        RS_SYS_EVENTFD,
        RS_SYS_TIMERFD,
        RS_SYS_READ,
        RS_SYS_WRITE,
        RS_SYS_CLOSE, /* asked, but a close always happens */
        RS_SYS_SOCKET,
        RS_SYS_BIND,
        RS_SYS_LISTEN,
        RS_SYS_ACCEPT,
        RS_SYS_CONNECT,
        RS_SYS_RECV,
        RS_SYS_SEND,
        RS_SYS_SHUTDOWN,
        RS_SYS_GETSOCKNAME,
        RS_SYS_SETSOCKOPT,
        RS_SYS_GETSOCKOPT,
        RS_SYS_SOCKETPAIR,
        RS_SYS_PIPE,
        RS_SYS_SENDFILE,
        RS_SYS_OPEN,
        RS_SYS_DUP,
        RS_SYS_FCNTL,
        RS_SYS_FSTAT,
        RS_SYS_LSTAT,
        RS_SYS_CHMOD,
        RS_SYS_UNLINK,
        RS_SYS_RENAME,
        RS_SYS_FLOCK,
        RS_SYS_GETCWD,
        RS_SYS_GETRANDOM,
        RS_SYS_SIGACTION,
        RS_SYS_THREAD,
        RS_SYS_GETADDRINFO,
        RS_SYS_SPAWN,
        RS_SYS_ACCESS,
        RS_SYS_PIDFD,
        RS_SYS_WAIT,
        RS_SYS_KILL,
        RS_SYS_URING_SETUP,
        RS_SYS_URING_REGISTER,
        RS_SYS_URING_ENTER,
        RS_SYS_FSYNC,
        RS_SYS_FTRUNCATE,
        RS_SYS_FALLOCATE,
        RS_SYS_STATX,
        RS_SYS_MKDIR,
        RS_SYS_LINK,
        RS_SYS_SYMLINK,
        RS_SYS_READLINK,
        RS_SYS_GETDENTS,
        RS_SYS_COPY_FILE,
        RS_SYS_COUNT
};

/* A test's; NULL: none. What is about to be called: 0 lets it go ahead, a negative errno is its result instead. May be
 * called on any thread. */
extern int (*rs_fault_hook)(enum rs_syscall call);

static inline int rs_fault_syscall(enum rs_syscall call)
{
        return RS_UNLIKELY(rs_fault_hook) ? rs_fault_hook(call) : 0;
}

int rs_sys_epoll_create(void);
int rs_sys_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);

/* Waits for timeout_ns (negative: without limit), never less unless something is ready or a signal came. */
int rs_sys_epoll_wait(int epfd, struct epoll_event *events, int max, int64_t timeout_ns);

/* An eventfd; one that is set is readable until it is cleared. Setting one cannot fail; should it do so all the same,
 * as under a filter of system calls that forbids it, the process ends: a wake-up that is lost is a program that
 * hangs. */
int rs_sys_eventfd(void);
void rs_sys_eventfd_set(int fd); /* async-signal-safe; errno is as before */
void rs_sys_eventfd_clear(int fd);

/* A timerfd; it is readable once `at` has come (CLOCK_MONOTONIC; in the past: at once; INT64_MAX: never), until it is
 * set again. Setting one cannot fail either. */
int rs_sys_timerfd(void);
void rs_sys_timerfd_set(int fd, int64_t at);

ssize_t rs_sys_write(int fd, const void *buf, size_t size); /* async-signal-safe; errno is as before */
void rs_sys_close(int fd);

/* A new descriptor; another number of it if it is one of the three that programs read and write without having opened
 * them, where that can be: output would go into a connection of somebody's. All that are made here are so already. */
int rs_sys_move_up(int fd);

/* Sockets: non-blocking, close-on-exec. Sending never raises SIGPIPE; no call that moves bytes blocks, whatever the
 * descriptor's flags. A message of sendmsg, recvmmsg, sendmmsg has no control data;
 * recvmmsg says how long it was, also if that is more than there was room for. */
int rs_sys_socket(int family, int type);
int rs_sys_socketpair(int type, int ret_fds[2]); /* Unix */
int rs_sys_bind(int fd, const struct sockaddr *addr, socklen_t size);
int rs_sys_listen(int fd, int backlog);
int rs_sys_accept(int fd);
int rs_sys_connect(int fd, const struct sockaddr *addr, socklen_t size);
ssize_t rs_sys_recv(int fd, void *buf, size_t size);
/* The same for a TCP socket with TCP_INQ set: and whether more is there, the end included. */
ssize_t rs_sys_recv_left(int fd, void *buf, size_t size, bool *ret_left);
ssize_t rs_sys_send(int fd, const void *buf, size_t size);
ssize_t rs_sys_sendmsg(int fd, const struct msghdr *message);
int rs_sys_recvmmsg(int fd, struct mmsghdr *messages, unsigned n);
int rs_sys_sendmmsg(int fd, struct mmsghdr *messages, unsigned n);
ssize_t rs_sys_recv_error(int fd, struct msghdr *message); /* of a datagram sent before; -EAGAIN: there is none */
int rs_sys_shutdown(int fd, int how);
int rs_sys_sockname(int fd, bool peer, struct sockaddr *addr, socklen_t *size);
int rs_sys_setsockopt(int fd, int level, int name, int value);
int rs_sys_getsockopt(int fd, int level, int name, int *ret_value);
void rs_sys_reset_at_close(int fd); /* should it fail, the close is an ordinary one */

/* Other descriptors. pipe: non-blocking, close-on-exec, [0] for reading; duplicate, open: close-on-exec. */
int rs_sys_pipe(int ret_fds[2]);
ssize_t rs_sys_read(int fd, void *buf, size_t size);
ssize_t rs_sys_pread(int fd, void *buf, size_t size, int64_t offset); /* of a file; RS_SYS_READ */
ssize_t rs_sys_writev(int fd, const struct iovec *parts, int n);
ssize_t rs_sys_sendfile(int to, int from, int64_t offset, size_t size);
int rs_sys_open(const char *path, int flags);
int rs_sys_duplicate(int fd);
int rs_sys_duplicate_above(int fd, int least); /* its number is at least that */
/* Whether opening /proc/self/fd/N gives a description of the same thing: of a pipe, a terminal, /dev/null and its kin;
 * not of the side of a terminal that its emulator has, where that is another terminal, and who knows of other
 * devices. */
bool rs_sys_opens_again(int fd);
int rs_sys_file_mode(int fd, mode_t *ret_mode);
int rs_sys_file_flags(int fd); /* of its description: O_NONBLOCK and others */
int rs_sys_file_flags_set(int fd, int flags);
int rs_sys_close_on_exec(int fd);

/* Names in the file system, see path.c. What a file is, whatever it is called: as long as it is open somewhere no other
 * one is the same. */
struct rs_sys_file {
        uint64_t device, inode;
        mode_t mode;
        unsigned uid, gid;
};
int rs_sys_pin(const char *path, struct rs_sys_file *ret_file); /* a descriptor that is good for nothing but being open;
                                                                   symbolic links are not followed */
int rs_sys_look(const char *path, struct rs_sys_file *ret_file);               /* the same without one */
int rs_sys_file_look(int fd, struct rs_sys_file *ret_file, int64_t *ret_size); /* of a descriptor */
int rs_sys_file_chmod(int fd, mode_t mode);
int rs_sys_file_chown(int fd, unsigned uid, unsigned gid); /* UINT_MAX: as it is */
int rs_sys_socket_mode(int fd,
                       unsigned mode); /* the file that a Unix socket will be bound to; the umask takes from it */
int rs_sys_pinned_mode(int fd, unsigned mode); /* the file's that rs_sys_pin() opened */
int rs_sys_unlink(const char *path);
int rs_sys_rename_new(const char *from, const char *to); /* -EEXIST: there is something */
int rs_sys_lock_folder(const char *path); /* a descriptor whose closing unlocks it; -EAGAIN: it is locked */
int rs_sys_working_folder(char *buf, size_t size);

int rs_sys_random(uint64_t *ret_value);
int64_t rs_sys_now(void);                       /* CLOCK_MONOTONIC, ns */
int64_t rs_sys_thread_time(void);               /* processor time of the running thread, ns */
const char *rs_sys_kernel(char buf[static 32]); /* "6.1.0"; buf */
int rs_sys_processors(void);                    /* that this thread may run on; at least 1 */
bool rs_sys_has_one_processor(void);            /* for all threads that are not bound elsewhere */

/* How a signal is handled: asked; set to a handler (during which all signals are blocked), *old being what was there;
 * and that put back. */
int rs_sys_signal_get(int sig, struct sigaction *old);
int rs_sys_signal_catch(int sig, void (*handler)(int), struct sigaction *old);
int rs_sys_signal_catch_fault(int sig, void (*handler)(int, siginfo_t *, void *), struct sigaction *old);

/* A handler that is told who sent it, *old being what was there: calls that it interrupts go on, and children that were
 * reaped by themselves still are. is: whether that handler is there. */
int rs_sys_signal_watch(int sig, void (*handler)(int, siginfo_t *, void *), struct sigaction *old);
bool rs_sys_signal_is(int sig, void (*handler)(int, siginfo_t *, void *));

/* Whether this thread blocks it, from now on; true: it did before. */
bool rs_sys_signal_block(int sig, bool block);

/* The running thread's stack for signal handlers: how large it must be, setting it, putting the former one back. */
size_t rs_sys_signal_stack_size(void);
int rs_sys_signal_stack(void *base, size_t size, stack_t *old);
void rs_sys_signal_stack_put(const stack_t *old);
/* A handler that ends system calls: without SA_RESTART. */
int rs_sys_signal_interrupt(int sig, void (*handler)(int));
void rs_sys_signal_discard(int sig); /* those that are pending and blocked on the running thread */
void rs_sys_signal_put(int sig, const struct sigaction *old);
void rs_sys_signal_default(int sig); /* async-signal-safe */
void rs_sys_raise(int sig);          /* async-signal-safe */
int rs_sys_pid(void);                /* async-signal-safe */
unsigned rs_sys_uid(void);
unsigned rs_sys_euid(void); /* whose rights count for files */
/* Gives way to another thread, which is about to be done with something; n: how often before. That may be one of lower
 * priority on this processor, which gets it only while this one sleeps. */
void rs_sys_yield(unsigned n);

/* As getaddrinfo(3): 0 or an EAI code; *ret_errno when that is EAI_SYSTEM. */
int rs_sys_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **ret_list,
                       int *ret_errno);

/* The number of a network interface, 0 if there is none of that name; and its name: buf, or NULL. */
unsigned rs_sys_interface_index(const char *name);
const char *rs_sys_interface_name(unsigned index, char buf[static 16]);

#endif
