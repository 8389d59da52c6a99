/* SPDX-License-Identifier: MIT */
/* See raw.h. The sockets are set up as those of resha: no Nagle, a backlog of 1024, SO_REUSEADDR. */

#include "raw.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/bench.h"

_Noreturn void raw_die(const char *what)
{
        perror(what);
        exit(1);
}

void raw_no_delay(int fd)
{
        int on = 1;

        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
                raw_die("TCP_NODELAY");
}

int raw_listen(void)
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t size = sizeof at;
        int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
            bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, 1024) < 0 ||
            getsockname(fd, (struct sockaddr *)&at, &size) < 0)
                raw_die("listen");
        printf("%d\n", ntohs(at.sin_port));
        fflush(stdout);
        return fd;
}

void raw_begin(struct raw *r, int argc, char **argv)
{
        static const char *const names[] = { "echo", "sink", "source" };

        for (int i = 0; argc > 1 && i < 3; i++) {
                if (strcmp(argv[1], names[i]) != 0)
                        continue;
                r->mode = (enum raw_mode)i;
                r->size = bench_argument(argc, argv, 2, 4096);
                if (r->size > RAW_LARGE)
                        break;
                r->listener = raw_listen();
                return;
        }
        fprintf(stderr, "usage: %s echo|sink|source SIZE (at most %d)\n", argv[0], RAW_LARGE);
        exit(2);
}
