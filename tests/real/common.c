/* SPDX-License-Identifier: MIT */
/* What the tests on the real kernel share. */

#include "common.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static unsigned entries(const char *path)
{
        DIR *d = opendir(path);
        unsigned n = 0;

        if (!d)
                FAIL("%s: %s", path, strerror(errno));
        for (const struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        closedir(d);
        return n;
}

bool real_under_asan(void)
{
        return TEST_ASAN;
}

bool real_under_tsan(void)
{
        return TEST_TSAN;
}

unsigned real_threads(void)
{
        return real_under_tsan() ? 1 : entries("/proc/self/task"); /* it has a thread of its own, at times */
}

void real_threads_left(unsigned most)
{
        for (int i = 0; i < 60000 && real_threads() > most; i++)
                usleep(1000);
        ASSERT_TRUE(real_threads() <= most);
}

long real_sleeps_of(const char *thread)
{
        char path[64], line[128];
        long n = -1;

        for (int tid = getpid(); tid < getpid() + 1000 && n < 0; tid++) {
                snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
                FILE *f = fopen(path, "re");
                if (!f)
                        continue;
                bool is = fgets(line, sizeof line, f) && strstr(line, thread);
                while (is && fgets(line, sizeof line, f))
                        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
                                n = strtol(line + 24, NULL, 10);
                fclose(f);
        }
        return n;
}

unsigned real_fds(void)
{
        return entries("/proc/self/fd") - 1; /* that of the look itself */
}

static struct sockaddr_in loopback(uint16_t port)
{
        return (struct sockaddr_in){
                .sin_family = AF_INET,
                .sin_port = htons(port),
                .sin_addr = { htonl(INADDR_LOOPBACK) },
        };
}

int real_connect(uint16_t port)
{
        struct sockaddr_in a = loopback(port);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
                FAIL("connect to port %u: %s", port, strerror(errno));
        return fd;
}

int real_listen(int backlog, uint16_t *ret_port)
{
        struct sockaddr_in a = loopback(0);
        socklen_t size = sizeof a;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, backlog) < 0 ||
            getsockname(fd, (struct sockaddr *)&a, &size) < 0)
                FAIL("listen: %s", strerror(errno));
        *ret_port = ntohs(a.sin_port);
        return fd;
}

resha_listener *real_listener(uint16_t *ret_port)
{
        resha_listener *n;
        resha_addr a;

        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &n));
        ASSERT_OK(resha_listener_addr(n, &a));
        *ret_port = resha_addr_port(&a);
        return n;
}

void real_pair(struct real_pair *p)
{
        uint16_t port;
        resha_listener *n = real_listener(&port);
        resha_addr a;

        ASSERT_OK(resha_addr_parse("127.0.0.1", port, &a));
        ASSERT_OK(resha_tcp_connect_addr(&a, &p->here));
        ASSERT_EQ(resha_accept(n, &p->there), 1);
        resha_listener_close(n);
}

void real_pair_close(struct real_pair *p)
{
        resha_stream_closep(&p->here);
        resha_stream_closep(&p->there);
}

/* ---- system calls ---- */

unsigned real_calls[RS_SYS_COUNT];

static int count(enum rs_syscall call)
{
        real_calls[call]++;
        return 0;
}

void real_count(void)
{
        memset(real_calls, 0, sizeof real_calls);
        rs_fault_hook = count;
}

static atomic_uint left;
static atomic_uint failed;
static int fault;

static int fail_nth(enum rs_syscall call)
{
        unsigned n = atomic_load(&left);

        /* never interrupted */
        bool whole = call == RS_SYS_THREAD || call == RS_SYS_GETADDRINFO || call == RS_SYS_SPAWN;
        if (n == 0 || call == RS_SYS_CLOSE || (whole && fault == -EINTR))
                return 0;
        atomic_store(&left, n - 1);
        if (n > 1)
                return 0;
        atomic_store(&failed, call);
        return fault;
}

void real_fail_nth(unsigned n, int code)
{
        atomic_store(&left, n);
        atomic_store(&failed, RS_SYS_COUNT);
        fault = code;
        rs_fault_hook = fail_nth;
}

enum rs_syscall real_failed(void)
{
        return atomic_load(&failed);
}
