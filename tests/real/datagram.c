/* SPDX-License-Identifier: MIT */
/* Datagrams on the real kernel: how many system calls they need, and what only it can do. */

#include "common.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/dgram.h"

enum { MANY = 100 };

TASK(many_datagrams_in_few_calls)
{
        resha_addr server, mine;
        resha_dgram *s = dgram_at("127.0.0.1", &(resha_dgram_opts){ .receive_buffer = 1 << 20 }, &server);
        resha_dgram *c = dgram_at("127.0.0.1", NULL, &mine);
        resha_message out[MANY], in[MANY];
        unsigned char bytes[MANY][4];
        size_t sent = 0, got = 0;

        for (size_t i = 0; i < MANY; i++) {
                bytes[i][0] = (unsigned char)i;
                out[i] = (resha_message){ .data = bytes[i], .size = i % 5, .addr = server };
        }
        real_count();
        ASSERT_OK(resha_dgram_send_many(c, out, MANY, &sent));
        ASSERT_EQ(sent, MANY);
        ASSERT_TRUE(real_calls[RS_SYS_SEND] <= 4);
        unsigned char room[MANY][3];
        for (size_t i = 0; i < MANY; i++)
                in[i] = (resha_message){ .data = room[i], .size = 3 };
        while (got < MANY) {
                ssize_t n = resha_dgram_recv_many(s, in + got, MANY - got);
                ASSERT_TRUE(n >= 1);
                got += (size_t)n;
        }
        ASSERT_TRUE(real_calls[RS_SYS_RECV] <= 8);
        for (size_t i = 0; i < MANY; i++) {
                ASSERT_EQ(in[i].whole, i % 5);
                ASSERT_EQ(in[i].truncated, i % 5 > 3);
                ASSERT_EQ(in[i].length, i % 5 > 3 ? 3 : i % 5);
                ASSERT_TRUE(resha_addr_equal(&in[i].addr, &mine));
                if (i % 5)
                        ASSERT_EQ(room[i][0], i);
        }
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

static int no_room_first(enum rs_syscall call)
{
        static int times;

        if (call != RS_SYS_SEND)
                return 0;
        real_calls[call]++;
        return times++ < 6 ? -ENOBUFS : 0;
}

TASK(a_full_queue_on_the_way_is_waited_out_without_spinning)
{
        resha_addr server;
        resha_dgram *s = dgram_at("127.0.0.1", NULL, &server), *c = dgram_to(&server);
        char buf[8];

        memset(real_calls, 0, sizeof real_calls);
        rs_fault_hook = no_room_first;
        resha_instant t = resha_now();
        ASSERT_OK(resha_dgram_send(c, "x", 1, NULL));
        rs_fault_hook = NULL;
        ASSERT_EQ(real_calls[RS_SYS_SEND], 7);
        ASSERT_TRUE(test_ms_since(t) >= 31); /* 0.5, 1, 2, 4, 8, 16 */
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, NULL), 1);
        resha_dgram_close(c);
        resha_dgram_close(s);
        return 0;
}

TASK(a_unix_sender_without_a_name_has_no_address)
{
        resha_addr server = addr_of_unix("none"), from;
        resha_dgram *s;
        size_t size;
        char buf[8];

        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &server }, &s));
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const struct sockaddr *to = resha_addr_sockaddr(&server, &size);
        ASSERT_EQ(sendto(fd, "x", 1, 0, to, (socklen_t)size), 1);
        close(fd);
        memset(&from, 0xaa, sizeof from);
        ASSERT_EQ(resha_dgram_recv(s, buf, sizeof buf, &from), 1);
        ASSERT_STR(addr_text(&from), "none");
        resha_dgram_close(s);
        return 0;
}

TASK(the_file_of_a_unix_socket_goes_with_it_and_a_dead_one_is_replaced)
{
        char path[64];
        resha_addr a;
        resha_dgram *one, *two;
        struct stat st;

        snprintf(path, sizeof path, "/tmp/resha-dgram-%d", (int)getpid());
        ASSERT_OK(resha_addr_unix(path, &a));
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        size_t size;
        const struct sockaddr *name = resha_addr_sockaddr(&a, &size);
        ASSERT_EQ(bind(fd, name, (socklen_t)size), 0);
        ASSERT_EQ(resha_dgram_open(&(resha_dgram_opts){ .local = &a }, &one), -EADDRINUSE);
        close(fd);
        ASSERT_OK(resha_dgram_open(&(resha_dgram_opts){ .local = &a, .mode = 0600 }, &one));
        ASSERT_EQ(stat(path, &st), 0);
        ASSERT_EQ(st.st_mode & 0777, 0600);
        ASSERT_EQ(resha_dgram_open(&(resha_dgram_opts){ .local = &a }, &two), -EADDRINUSE);
        resha_dgram_close(one);
        ASSERT_EQ(stat(path, &st), -1);
        return 0;
}
