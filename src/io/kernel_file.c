/* SPDX-License-Identifier: MIT */
/* Descriptors of the real kernel: how they are made, what they are called, how they end. All are close-on-exec.
 *
 * What is made here is non-blocking. A descriptor that comes from elsewhere is made so, and made as it was when it is
 * released; a borrowed one shares its description with others, perhaps with a shell, whom that would confuse: it is
 * opened anew by its name in /proc, which gives a description of our own. Where that cannot be (a socket, a file that
 * may not be opened any more, a device that would be another one) it is duplicated: a socket needs no more, since each
 * call says that it must not block; anything else is non-blocking while we have it. Several files may be of one such
 * description: the one that has changed it hands that on when it ends, and the last of them puts it back. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <resha/alloc.h>

#include "base/addr.h"
#include "io/kernel.h"
#include "sys/sys.h"

static struct rs_list *bucket(struct kn *k, int fd)
{
        return &k->own[(unsigned)fd % KN_OWN_BUCKETS];
}

bool kn_owns(const struct kn *k, int fd)
{
        for (const struct rs_node *n = k->own[(unsigned)fd % KN_OWN_BUCKETS].first; n; n = n->next)
                if (RS_CONTAINER(n, const struct kn_file, own)->base.fd == fd)
                        return true;
        return false;
}

struct kn_file *kn_file_new(struct kn *k, int fd, enum rs_file_kind kind)
{
        struct kn_file *f = k->spare ? k->spare : resha_calloc(1, sizeof *f);

        if (!f)
                return NULL;
        k->spare = NULL;
        *f = (struct kn_file){ .base = { .backend = &k->base, .fd = fd, .kind = kind }, .ready = { true, true } };
        rs_list_push(bucket(k, fd), &f->own);
        return f;
}

/* ---- made here ---- */

/* Takes fd over, also when it fails. */
static struct kn_file *take(struct rs_backend *b, int fd, enum rs_file_kind kind)
{
        struct kn_file *f = kn_file_new(kn_of(b), fd, kind);

        if (f)
                f->nonblocking = true;
        else
                rs_sys_close(fd);
        return f;
}

static bool is_tcp(int family, int type)
{
        return type == SOCK_STREAM && (family == AF_INET || family == AF_INET6);
}

int kn_socket(struct rs_backend *b, int family, int type, struct rs_file **ret_file)
{
        int fd = rs_sys_socket(family, type);

        if (fd < 0)
                return fd;
        int rc = is_tcp(family, type) ? rs_sys_setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, 1) : 0;
        if (rc < 0) {
                rs_sys_close(fd);
                return rc;
        }
        struct kn_file *f = take(b, fd, RS_FILE_SOCKET);
        if (!f)
                return -ENOMEM;
        f->hasty = is_tcp(family, type);
        *ret_file = &f->base;
        return 0;
}

static int take_two(struct rs_backend *b, const int fds[2], enum rs_file_kind kind, struct rs_file *ret_two[2])
{
        struct kn_file *first = take(b, fds[0], kind), *second = take(b, fds[1], kind);

        if (!first || !second) {
                if (first)
                        kn_file_close(&first->base);
                if (second)
                        kn_file_close(&second->base);
                return -ENOMEM;
        }
        ret_two[0] = &first->base;
        ret_two[1] = &second->base;
        return 0;
}

int kn_pair(struct rs_backend *b, int type, struct rs_file *ret_pair[2])
{
        int fds[2], rc = rs_sys_socketpair(type, fds);

        return rc < 0 ? rc : take_two(b, fds, RS_FILE_SOCKET, ret_pair);
}

int kn_pipe(struct rs_backend *b, struct rs_file *ret_ends[2])
{
        int fds[2], rc = rs_sys_pipe(fds);

        return rc < 0 ? rc : take_two(b, fds, RS_FILE_PIPE, ret_ends);
}

/* Accepted sockets inherit TCP_NODELAY. */
int kn_bind(struct rs_file *f, const resha_addr *addr, unsigned flags)
{
        const struct rs_addr *a = rs_addr_view(addr);
        int rc = 0;

        if (flags & RS_BIND_REUSE_ADDR)
                rc = rs_sys_setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (rc == 0 && (flags & RS_BIND_REUSE_PORT))
                rc = rs_sys_setsockopt(f->fd, SOL_SOCKET, SO_REUSEPORT, 1);
        if (rc == 0 && a->sockaddr.ss_family == AF_INET6)
                rc = rs_sys_setsockopt(f->fd, IPPROTO_IPV6, IPV6_V6ONLY, !!(flags & RS_BIND_V6_ONLY));
        return rc < 0 ? rc : rs_sys_bind(f->fd, (const struct sockaddr *)&a->sockaddr, (socklen_t)a->size);
}

int kn_listen(struct rs_file *f, int backlog)
{
        return rs_sys_listen(f->fd, backlog);
}

/* ---- from elsewhere ---- */

static enum rs_file_kind kind_of(mode_t mode)
{
        if (S_ISSOCK(mode))
                return RS_FILE_SOCKET;
        return S_ISREG(mode) || S_ISDIR(mode) || S_ISBLK(mode) ? RS_FILE_PLAIN : RS_FILE_PIPE;
}

/* A description of our own for what fd is, non-blocking, if there can be one; else a duplicate. */
static int open_again(int fd, int flags, enum rs_file_kind kind)
{
        char name[32];
        int own = -ENXIO;

        if (kind == RS_FILE_PIPE && rs_sys_opens_again(fd)) {
                snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
                own = rs_sys_open(name, (flags & (O_ACCMODE | O_APPEND)) | O_NONBLOCK | O_NOCTTY);
        }
        return own >= 0 ? own : rs_sys_duplicate(fd);
}

static bool listens(const struct kn_file *f)
{
        int on = 0;

        return f->base.kind == RS_FILE_SOCKET && rs_sys_getsockopt(f->base.fd, SOL_SOCKET, SO_ACCEPTCONN, &on) == 0 &&
               on;
}

/* What must not block, and does, is made so. A listener for good: accept(2) has no flag of its own for that, and the
 * loops and processes that share one would hang when one of them puts it back. */
static int make_nonblocking(struct kn_file *f, bool borrowed)
{
        int flags = rs_sys_file_flags(f->base.fd);

        if (flags < 0)
                return flags;
        f->nonblocking = f->came_so = flags & O_NONBLOCK;
        kn_of(f->base.backend)->came_so += f->came_so;
        if (f->nonblocking || f->base.kind == RS_FILE_PLAIN || (borrowed && f->base.kind == RS_FILE_SOCKET))
                return 0;
        int rc = rs_sys_file_flags_set(f->base.fd, flags | O_NONBLOCK);
        f->nonblocking = rc == 0;
        f->put_back = rc == 0 && !listens(f);
        return rc;
}

/* Another one that came to us non-blocking, and is that no longer. */
static struct kn_file *left_blocking(struct kn *k, const struct kn_file *but)
{
        size_t left = k->came_so - but->came_so;

        for (size_t i = 0; left && i < KN_OWN_BUCKETS; i++)
                for (struct rs_node *n = k->own[i].first; n; n = n->next) {
                        struct kn_file *f = RS_CONTAINER(n, struct kn_file, own);
                        if (f == but || !f->came_so)
                                continue;
                        int flags = rs_sys_file_flags(f->base.fd);
                        if (flags >= 0 && !(flags & O_NONBLOCK))
                                return f;
                        left--;
                }
        return NULL;
}

static void blocking_again(struct kn_file *f)
{
        int flags = f->put_back ? rs_sys_file_flags(f->base.fd) : -1;

        if (flags < 0 || rs_sys_file_flags_set(f->base.fd, flags & ~O_NONBLOCK) < 0)
                return;
        struct kn_file *heir = left_blocking(kn_of(f->base.backend), f);
        if (heir)
                heir->put_back = rs_sys_file_flags_set(f->base.fd, flags) == 0;
}

/* Before its descriptor is closed or given away. */
static void leave(struct kn_file *f)
{
        struct kn *k = kn_of(f->base.backend);

        k->forget(f);
        blocking_again(f);
        k->came_so -= f->came_so;
        rs_list_remove(bucket(k, f->base.fd), &f->own);
}

/* After it has left. */
static void let_go(struct kn_file *f)
{
        if (f->stray)
                rs_list_push(&kn_of(f->base.backend)->strays, &f->own);
        else
                resha_free(f);
}

static bool adopted_hasty(int fd, enum rs_file_kind kind)
{
        int type = 0, domain = 0;

        return kind == RS_FILE_SOCKET && rs_sys_getsockopt(fd, SOL_SOCKET, SO_TYPE, &type) == 0 &&
               rs_sys_getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain) == 0 && is_tcp(domain, type);
}

int kn_adopt(struct rs_backend *b, int fd, bool borrowed, struct rs_file **ret_file)
{
        mode_t mode;
        int rc = rs_sys_file_mode(fd, &mode), flags = rs_sys_file_flags(fd);

        if (rc < 0 || flags < 0)
                return rc < 0 ? rc : flags;
        if (kn_owns(kn_of(b), fd) && !borrowed)
                return -EBUSY;
        enum rs_file_kind kind = kind_of(mode);
        int ours = borrowed ? open_again(fd, flags, kind) : fd;
        if (ours < 0)
                return ours;
        struct kn_file *f = kn_file_new(kn_of(b), ours, kind);
        if (!f) {
                if (borrowed)
                        rs_sys_close(ours);
                return -ENOMEM;
        }
        f->hasty = adopted_hasty(ours, kind);
        rc = make_nonblocking(f, borrowed);
        if (rc < 0) {
                if (borrowed)
                        rs_sys_close(ours);
                rs_list_remove(bucket(kn_of(b), ours), &f->own);
                resha_free(f);
                return rc;
        }
        if (!borrowed)
                (void)rs_sys_close_on_exec(ours);
        *ret_file = &f->base;
        return 0;
}

int kn_release(struct rs_file *file)
{
        struct kn_file *f = kn_file_of(file);
        int fd = file->fd;

        assert(!f->pending[KN_READING] && !f->pending[KN_WRITING]);
        if (fd < 0)
                return -EOPNOTSUPP; /* a pipe that has been ended */
        leave(f);
        let_go(f);
        return fd;
}

/* ---- names and options ---- */

void kn_addr_told(resha_addr *addr, socklen_t size)
{
        struct rs_addr *a = rs_addr_of(addr);
        struct sockaddr_in6 six;
        struct sockaddr_in four = { .sin_family = AF_INET };

        a->size = size;
        memcpy(&six, &a->sockaddr, sizeof six);
        if (size < sizeof six || six.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
                return;
        four.sin_port = six.sin6_port;
        memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof four.sin_addr);
        *a = (struct rs_addr){ .size = sizeof four };
        memcpy(&a->sockaddr, &four, sizeof four);
}

int kn_file_addr(struct rs_file *f, bool peer, resha_addr *ret_addr)
{
        resha_addr a = { { 0 } };
        socklen_t size = sizeof rs_addr_of(&a)->sockaddr;
        int rc = rs_sys_sockname(f->fd, peer, (struct sockaddr *)&rs_addr_of(&a)->sockaddr, &size);

        if (rc < 0)
                return rc;
        kn_addr_told(&a, size);
        *ret_addr = a;
        return 0;
}

static int family_of(const struct rs_file *f)
{
        int family = AF_UNSPEC;

        return rs_sys_getsockopt(f->fd, SOL_SOCKET, SO_DOMAIN, &family) < 0 ? AF_UNSPEC : family;
}

/* The time first: one that is refused changes nothing. */
static int keepalive(struct rs_file *f, int *value, bool set)
{
        int on = 0;
        int rc = set && *value ? rs_sys_setsockopt(f->fd, IPPROTO_TCP, TCP_KEEPIDLE, *value) : 0;

        if (rc < 0)
                return rc;
        if (set)
                return rs_sys_setsockopt(f->fd, SOL_SOCKET, SO_KEEPALIVE, *value != 0);
        rc = rs_sys_getsockopt(f->fd, SOL_SOCKET, SO_KEEPALIVE, &on);
        if (rc < 0 || !on) {
                *value = 0;
                return rc;
        }
        return rs_sys_getsockopt(f->fd, IPPROTO_TCP, TCP_KEEPIDLE, value);
}

/* Where the kernel keeps it; false: nowhere. */
static bool option_name(enum rs_option which, int *ret_level, int *ret_name)
{
        *ret_level = SOL_SOCKET;
        switch (which) {
        case RS_OPTION_NODELAY: *ret_level = IPPROTO_TCP, *ret_name = TCP_NODELAY; return true;
        case RS_OPTION_USER_TIMEOUT: *ret_level = IPPROTO_TCP, *ret_name = TCP_USER_TIMEOUT; return true;
        case RS_OPTION_SEND_BUFFER: *ret_name = SO_SNDBUF; return true;
        case RS_OPTION_RECEIVE_BUFFER: *ret_name = SO_RCVBUF; return true;
        case RS_OPTION_BROADCAST: *ret_name = SO_BROADCAST; return true;
        case RS_OPTION_TYPE: *ret_name = SO_TYPE; return true;
        case RS_OPTION_LISTENING: *ret_name = SO_ACCEPTCONN; return true;
        case RS_OPTION_RECEIVE_ERRORS: *ret_level = IPPROTO_IP, *ret_name = IP_RECVERR; return true;
        case RS_OPTION_KEEPALIVE: break;
        }
        return false;
}

int kn_option(struct rs_file *f, enum rs_option which, int *value, bool set)
{
        int level, name;

        if (which == RS_OPTION_KEEPALIVE)
                return keepalive(f, value, set);
        if (!option_name(which, &level, &name))
                return -ENOPROTOOPT;
        if (which == RS_OPTION_RECEIVE_ERRORS && set && family_of(f) == AF_INET6) { /* which sends by IPv4 too */
                int rc = rs_sys_setsockopt(f->fd, IPPROTO_IPV6, IPV6_RECVERR, *value);
                if (rc < 0)
                        return rc;
        }
        return set ? rs_sys_setsockopt(f->fd, level, name, *value) : rs_sys_getsockopt(f->fd, level, name, value);
}

/* ---- the end ---- */

/* A pipe has ended for its reader once nobody has it open for writing. The descriptor goes, the file stays. */
static int end_pipe(struct kn_file *f)
{
        int fd = f->base.fd, flags = rs_sys_file_flags(fd);
        mode_t mode = 0;

        if (flags < 0 || rs_sys_file_mode(fd, &mode) < 0 || !S_ISFIFO(mode) || (flags & O_ACCMODE) != O_WRONLY)
                return -EOPNOTSUPP;
        assert(!f->pending[KN_WRITING]);
        leave(f);
        rs_sys_close(fd);
        f->base.fd = -1;
        return 0;
}

int kn_file_shutdown(struct rs_file *f)
{
        return f->kind == RS_FILE_SOCKET ? rs_sys_shutdown(f->fd, SHUT_WR) : end_pipe(kn_file_of(f));
}

/* Out of the waiting first: the file may live on in a child process, and would go on to make events. */
void kn_file_close(struct rs_file *file)
{
        struct kn_file *f = kn_file_of(file);

        assert(!f->pending[KN_READING] && !f->pending[KN_WRITING]);
        if (file->fd >= 0) {
                if (file->reset && file->kind == RS_FILE_SOCKET)
                        rs_sys_reset_at_close(file->fd);
                leave(f);
                rs_sys_close(file->fd);
        }
        let_go(f);
}
