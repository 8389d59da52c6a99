/* SPDX-License-Identifier: MIT */
/* Datagrams of the simulated world. What is expected without luck was seen on Linux. */

#include "world.h"

static struct rs_file *udp_at(struct rs_backend *b, const char *host, uint16_t port)
{
        resha_addr a = at(host, port);
        struct rs_file *f = new_socket(b, AF_INET, SOCK_DGRAM);

        ASSERT_OK(b->ops->bind(f, &a, 0));
        return f;
}

static struct rs_file *unix_dgram(struct rs_backend *b, const char *name)
{
        resha_addr a = unix_at(name);
        struct rs_file *f = new_socket(b, AF_UNIX, SOCK_DGRAM);

        ASSERT_OK(b->ops->bind(f, &a, 0));
        return f;
}

static struct rs_op send_op(struct rs_file *f, struct rs_datagram *d, size_t n)
{
        return (struct rs_op){ .kind = RS_OP_SEND, .file = f, .buf = d, .size = n };
}

static struct rs_op receive_op(struct rs_file *f, struct rs_datagram *d, size_t n)
{
        return (struct rs_op){ .kind = RS_OP_RECEIVE, .file = f, .buf = d, .size = n };
}

/* to: NULL: the peer. */
static ssize_t send_one(struct rs_backend *b, struct rs_file *f, const char *text, const resha_addr *to)
{
        struct rs_datagram d = { .data = (void *)(uintptr_t)text, .size = strlen(text) };

        if (to)
                d.addr = *to;
        struct rs_op op = send_op(f, &d, 1);
        return run(b, &op);
}

static char text[70000];

static ssize_t receive_one(struct rs_backend *b, struct rs_file *f, size_t room, struct rs_datagram *ret)
{
        *ret = (struct rs_datagram){ .data = text, .size = room };
        memset(text, 0, 16);
        struct rs_op op = receive_op(f, ret, 1);
        return run(b, &op);
}

static void receives(struct rs_backend *b, struct rs_file *f, const char *want)
{
        struct rs_datagram d;

        ASSERT_EQ(receive_one(b, f, sizeof text, &d), 1);
        ASSERT_EQ(d.length, strlen(want));
        ASSERT_EQ(memcmp(text, want, strlen(want)), 0);
}

static bool has_nothing(struct rs_backend *b, struct rs_file *f)
{
        struct rs_datagram d = { .data = text, .size = sizeof text };
        struct rs_op op = receive_op(f, &d, 1);

        if (submit(b, &op))
                return false;
        b->ops->cancel(b, &op);
        return true;
}

/* ---- UDP ---- */

TEST(a_datagram_comes_whole_with_its_sender_or_says_that_it_was_cut)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 9), got, back;
        struct rs_file *r = udp_at(b, "", 9), *s = new_socket(b, AF_INET, SOCK_DGRAM);
        struct rs_datagram d;

        ASSERT_EQ(send_one(b, s, "hello", &to), 1);
        ASSERT_EQ(send_one(b, s, "", &to), 1);
        ASSERT_EQ(send_one(b, s, "hello", &to), 1);
        ASSERT_EQ(receive_one(b, r, 5, &d), 1);
        ASSERT_EQ(d.length, 5);
        ASSERT_FALSE(d.truncated);
        ASSERT_EQ(memcmp(text, "hello", 5), 0);
        back = d.addr;
        ASSERT_OK(b->ops->file_addr(s, false, &got));
        ASSERT_TRUE(port_of(&got) != 0);
        ASSERT_EQ(port_of(&got), port_of(&back));
        ASSERT_EQ(receive_one(b, r, 5, &d), 1);
        ASSERT_EQ(d.length, 0);
        ASSERT_EQ(receive_one(b, r, 2, &d), 1);
        ASSERT_EQ(d.length, 2);
        ASSERT_TRUE(d.truncated);
        ASSERT_TRUE(has_nothing(b, r));
        ASSERT_EQ(send_one(b, r, "yes", &back), 1);
        ASSERT_EQ(receive_one(b, s, 9, &d), 1);
        ASSERT_EQ(memcmp(&d.addr, &to, sizeof to), 0);
        b->ops->file_close(r);
        b->ops->file_close(s);
        end(b);
}

TEST(a_connected_socket_hears_its_peer_alone)
{
        struct rs_backend *b = world(0);
        resha_addr one = at("127.0.0.1", 1), two = at("127.0.0.1", 2), peer;
        struct rs_file *f = udp_at(b, "127.0.0.1", 1), *g = udp_at(b, "127.0.0.1", 2), *h = udp_at(b, "127.0.0.1", 3);

        ASSERT_EQ(send_one(b, f, "x", NULL), -EDESTADDRREQ);
        ASSERT_EQ(b->ops->file_shutdown(f), -ENOTCONN);
        b->ops->file_close(f);
        f = udp_at(b, "127.0.0.1", 1);
        ASSERT_EQ(connect_op(b, f, &two), 0);
        ASSERT_OK(b->ops->file_addr(f, true, &peer));
        ASSERT_EQ(memcmp(&peer, &two, sizeof peer), 0);
        ASSERT_EQ(send_one(b, h, "not you", &one), 1);
        ASSERT_EQ(send_one(b, g, "you", &one), 1);
        receives(b, f, "you");
        ASSERT_TRUE(has_nothing(b, f));
        ASSERT_EQ(send_one(b, f, "there", NULL), 1);
        receives(b, g, "there");
        ASSERT_OK(b->ops->file_shutdown(f));
        ASSERT_EQ(send_one(b, f, "x", NULL), -EPIPE);
        b->ops->file_close(f);
        b->ops->file_close(g);
        b->ops->file_close(h);
        end(b);
}

TEST(a_port_that_nobody_has_is_told_to_who_is_connected_by_the_next_call)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 9);
        struct rs_file *f = new_socket(b, AF_INET, SOCK_DGRAM), *g = new_socket(b, AF_INET, SOCK_DGRAM);
        struct rs_datagram d;

        ASSERT_EQ(connect_op(b, f, &to), 0);
        ASSERT_EQ(send_one(b, f, "1", NULL), 1);
        ASSERT_EQ(send_one(b, f, "2", NULL), -ECONNREFUSED);
        ASSERT_EQ(send_one(b, f, "3", NULL), 1);
        ASSERT_EQ(receive_one(b, f, 9, &d), -ECONNREFUSED);
        ASSERT_TRUE(has_nothing(b, f));
        ASSERT_EQ(send_one(b, g, "1", &to), 1); /* who is not connected is told nothing */
        ASSERT_EQ(send_one(b, g, "1", &to), 1);
        ASSERT_TRUE(has_nothing(b, g));
        int on = 1;
        ASSERT_OK(b->ops->option(g, RS_OPTION_RECEIVE_ERRORS, &on, true)); /* unless it asks */
        ASSERT_EQ(send_one(b, g, "1", &to), 1);
        ASSERT_EQ(receive_one(b, g, 9, &d), -ECONNREFUSED);
        b->ops->file_close(f);
        b->ops->file_close(g);
        end(b);
}

TEST(an_error_ends_a_receive_that_waits)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 9);
        struct rs_file *f = new_socket(b, AF_INET, SOCK_DGRAM);
        struct rs_datagram d = { .data = text, .size = 9 };
        struct rs_op r = receive_op(f, &d, 1);

        ASSERT_EQ(connect_op(b, f, &to), 0);
        ASSERT_FALSE(submit(b, &r));
        ASSERT_EQ(send_one(b, f, "1", NULL), 1);
        ASSERT_EQ(finish(b, &r), -ECONNREFUSED);
        b->ops->file_close(f);
        end(b);
}

TEST(what_udp_refuses_to_send)
{
        struct rs_backend *b = world(0);
        resha_addr none = at("127.0.0.1", 0), to = at("127.0.0.1", 9), all = at("", 9);
        struct rs_file *f = new_socket(b, AF_INET, SOCK_DGRAM), *r = udp_at(b, "", 9);
        static char large[65508];
        struct rs_datagram d = { .data = large, .size = sizeof large, .addr = to };
        struct rs_op op = send_op(f, &d, 1);
        struct sockaddr_in in;
        int on = 1;

        ASSERT_EQ(send_one(b, f, "x", &none), -EINVAL);
        ASSERT_EQ(run(b, &op), -EMSGSIZE);
        d.size--;
        ASSERT_EQ(run(b, &op), 1);
        memcpy(&in, &all, sizeof in);
        in.sin_addr.s_addr = htonl(INADDR_BROADCAST);
        memcpy(&all, &in, sizeof in);
        ASSERT_EQ(send_one(b, f, "x", &all), -EACCES);
        ASSERT_OK(b->ops->option(f, RS_OPTION_BROADCAST, &on, true));
        ASSERT_EQ(send_one(b, f, "all", &all), 1);
        ASSERT_EQ(receive_one(b, r, sizeof text, &d), 1);
        ASSERT_EQ(d.length, 65507);
        receives(b, r, "all");
        ASSERT_EQ(b->ops->listen(f, 1), -EOPNOTSUPP);
        b->ops->file_close(f);
        b->ops->file_close(r);
        end(b);
}

TEST(a_full_receiver_drops_and_the_sender_knows_nothing)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 9);
        struct rs_file *f = new_socket(b, AF_INET, SOCK_DGRAM), *r = udp_at(b, "", 9);
        int small = 5000, n = 0;

        ASSERT_OK(b->ops->option(r, RS_OPTION_RECEIVE_BUFFER, &small, true));
        for (int i = 0; i < 100; i++)
                ASSERT_EQ(send_one(b, f, "0123456789", &to), 1);
        while (!has_nothing(b, r)) /* each takes one */
                n++;
        ASSERT_TRUE(n > 5 && n < 20);
        ASSERT_EQ(send_one(b, f, "x", &to), 1);
        receives(b, r, "x");
        b->ops->file_close(f);
        b->ops->file_close(r);
        end(b);
}

TEST(many_datagrams_go_and_come_in_one_operation)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 9), bad = at("127.0.0.1", 0);
        struct rs_file *f = new_socket(b, AF_INET, SOCK_DGRAM), *r = udp_at(b, "", 9);
        struct rs_datagram d[40];
        char in[40];

        for (size_t i = 0; i < 40; i++)
                d[i] = (struct rs_datagram){ .data = &in[i], .size = 1, .addr = i == 5 ? bad : to };
        memset(in, 'a', sizeof in);
        struct rs_op s = send_op(f, d, 40), g = receive_op(r, d, 40);
        ASSERT_EQ(run(b, &s), 5); /* up to the error */
        s = send_op(f, d + 5, 35);
        ASSERT_EQ(run(b, &s), -EINVAL); /* told next time */
        s = send_op(f, d + 6, 34);
        ASSERT_EQ(run(b, &s), RS_DATAGRAMS_MAX);
        ASSERT_EQ(run(b, &g), RS_DATAGRAMS_MAX);
        ASSERT_EQ(run(b, &g), 5);
        b->ops->file_close(f);
        b->ops->file_close(r);
        end(b);
}

TEST(udp_of_both_families_meets_at_the_wildcard)
{
        struct rs_backend *b = world(0);
        struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
        resha_addr all = { { 0 } }, to = at("127.0.0.1", 9);
        struct rs_file *r = new_socket(b, AF_INET6, SOCK_DGRAM), *f = new_socket(b, AF_INET, SOCK_DGRAM);
        struct rs_datagram d;

        memcpy(&all, &six, sizeof six);
        all._[16] = sizeof six;
        ASSERT_OK(b->ops->bind(r, &all, 0));
        ASSERT_EQ(send_one(b, f, "four", &to), 1);
        ASSERT_EQ(receive_one(b, r, 9, &d), 1);
        ASSERT_EQ(send_one(b, r, "back", &d.addr), 1);
        receives(b, f, "back");
        six.sin6_addr = in6addr_loopback;
        memcpy(&all, &six, sizeof six);
        ASSERT_EQ(send_one(b, f, "x", &all), -EAFNOSUPPORT);
        b->ops->file_close(f);
        b->ops->file_close(r);
        end(b);
}

/* ---- Unix ---- */

TEST(a_unix_sender_that_is_connected_waits_for_room)
{
        struct rs_backend *b = world(0);
        resha_addr to = unix_at("@r");
        struct rs_file *r = unix_dgram(b, "@r"), *f = new_socket(b, AF_UNIX, SOCK_DGRAM);
        struct rs_datagram d = { .data = text, .size = 1 };
        struct rs_op s = send_op(f, &d, 1);

        ASSERT_EQ(connect_op(b, f, &to), 0);
        for (int i = 0; i < 11; i++)
                ASSERT_EQ(send_one(b, f, "x", NULL), 1);
        ASSERT_EQ(send_one(b, f, "x", &to), -ENOBUFS); /* by name there is nothing to wait for */
        ASSERT_FALSE(submit(b, &s));
        ASSERT_EQ(b->ops->wait(b, INT64_MAX), -EDEADLK);
        ASSERT_TRUE(b->ops->cancel(b, &s));
        ASSERT_FALSE(submit(b, &s));
        receives(b, r, "x");
        ASSERT_EQ(finish(b, &s), 1);
        ASSERT_FALSE(submit(b, &s));
        b->ops->file_close(r);
        ASSERT_EQ(finish(b, &s), -ECONNREFUSED);
        ASSERT_EQ(send_one(b, f, "x", NULL), -ENOTCONN);
        b->ops->file_close(f);
        end(b);
}

TEST(two_connected_to_each_other_have_room_for_many_bytes)
{
        struct rs_backend *b = world(0);
        struct rs_file *f[2];
        struct rs_datagram d = { .data = text, .size = 1 };
        struct rs_op s;
        int n = 0;

        ASSERT_OK(b->ops->pair(b, SOCK_DGRAM, f));
        for (s = send_op(f[0], &d, 1); submit(b, &s); n++)
                ASSERT_EQ(s.result, 1);
        ASSERT_TRUE(n > 200 && n < 300);
        b->ops->cancel(b, &s);
        struct rs_file *other = new_socket(b, AF_UNIX, SOCK_DGRAM);
        d.size = 212992;
        s = send_op(f[1], &d, 1);
        ASSERT_EQ(run(b, &s), -EMSGSIZE);
        b->ops->file_close(f[0]);
        ASSERT_FALSE(has_nothing(b, f[1])); /* what was sent is there, and then nothing, not even an end */
        ASSERT_EQ(send_one(b, f[1], "x", NULL), -ECONNREFUSED);
        ASSERT_EQ(send_one(b, f[1], "x", NULL), -ENOTCONN);
        ASSERT_OK(b->ops->file_shutdown(other));
        b->ops->file_close(f[1]);
        b->ops->file_close(other);
        end(b);
}

TEST(names_of_unix_datagram_sockets)
{
        struct rs_backend *b = world(0);
        resha_addr r_at = unix_at("/r"), nobody = unix_at("/none"), abstract = unix_at("@none"), s_at = unix_at("/s");
        struct rs_file *r = unix_dgram(b, "/r"), *s = unix_dgram(b, "/s"), *f = new_socket(b, AF_UNIX, SOCK_DGRAM);
        struct rs_file *stream = new_socket(b, AF_UNIX, SOCK_STREAM);
        struct rs_datagram d;

        ASSERT_EQ(send_one(b, f, "x", NULL), -ENOTCONN);
        ASSERT_EQ(send_one(b, f, "x", &nobody), -ENOENT);
        ASSERT_EQ(send_one(b, f, "x", &abstract), -ECONNREFUSED);
        ASSERT_EQ(connect_op(b, stream, &r_at), -EPROTOTYPE);
        ASSERT_EQ(send_one(b, f, "from nobody", &r_at), 1);
        ASSERT_EQ(receive_one(b, r, 99, &d), 1);
        ASSERT_EQ(d.addr._[16], 0);
        ASSERT_EQ(send_one(b, s, "from s", &r_at), 1);
        ASSERT_EQ(receive_one(b, r, 99, &d), 1);
        ASSERT_EQ(memcmp(&d.addr, &s_at, sizeof s_at), 0);
        ASSERT_EQ(connect_op(b, r, &s_at), 0);
        ASSERT_EQ(send_one(b, f, "x", &r_at), -EPERM); /* it listens to s alone */
        ASSERT_EQ(connect_op(b, f, &r_at), -EPERM);
        b->ops->file_close(r);
        b->ops->file_close(s);
        b->ops->file_close(f);
        b->ops->file_close(stream);
        end(b);
}

/* ---- luck ---- */

enum { SENT = 200 };

/* How often each number came, of SENT in their order; what came out of order. */
struct came {
        unsigned char times[SENT];
        unsigned late, all;
};

static struct came through(struct rs_backend *b, int family)
{
        struct came c = { .all = 0 };
        struct rs_file *f[2] = { NULL, NULL };
        int last = -1;

        if (family == AF_UNIX) {
                ASSERT_OK(b->ops->pair(b, SOCK_DGRAM, f));
        } else {
                resha_addr to = at("127.0.0.1", 9);
                f[1] = udp_at(b, "", 9);
                f[0] = new_socket(b, AF_INET, SOCK_DGRAM);
                ASSERT_EQ(connect_op(b, f[0], &to), 0);
        }
        for (int i = 0; i < SENT; i++) {
                char data[2] = { (char)(i + 1 > 127 ? i - 127 : i + 1), (char)(i + 1 > 127) };
                struct rs_datagram d = { .data = data, .size = 2 };
                struct rs_op op = send_op(f[0], &d, 1);
                ASSERT_EQ(run(b, &op), 1);
        }
        b->ops->wait(b, b->ops->now(b) + 1000 * MS);
        for (struct rs_datagram d;;) {
                struct rs_op op = receive_op(f[1], &d, 1);
                d = (struct rs_datagram){ .data = text, .size = 9 };
                rs_sim_plan(b)->per_mille[RS_FAULT_STALL] = 0;
                if (!submit(b, &op)) {
                        b->ops->cancel(b, &op);
                        break;
                }
                ASSERT_EQ(d.length, 2);
                int i = text[0] - 1 + (text[1] ? 128 : 0);
                c.times[i]++;
                c.all++;
                c.late += i < last;
                last = i > last ? i : last;
        }
        b->ops->file_close(f[0]);
        b->ops->file_close(f[1]);
        return c;
}

TEST(without_a_plan_every_seed_brings_all_datagrams_once_in_order)
{
        for (uint64_t seed = 0; seed < 100; seed++)
                for (int k = 0; k < 2; k++) {
                        struct rs_backend *b = world(seed);
                        struct came c = through(b, k ? AF_UNIX : AF_INET);
                        ASSERT_EQ(c.all, SENT);
                        ASSERT_EQ(c.late, 0);
                        for (int i = 0; i < SENT; i++)
                                ASSERT_EQ(c.times[i], 1);
                        end(b);
                }
}

static struct came with_fault(enum rs_fault_kind kind, int family, unsigned *ret_fired)
{
        struct rs_backend *b = world(3);

        rs_sim_plan(b)->per_mille[kind] = 300;
        struct came c = through(b, family);
        *ret_fired = (unsigned)rs_sim_plan(b)->fired[kind];
        end(b);
        return c;
}

TEST(datagrams_are_lost_doubled_and_overtaken_as_planned)
{
        unsigned fired;
        struct came c = with_fault(RS_FAULT_LOSS, AF_INET, &fired);

        ASSERT_TRUE(fired > 30);
        ASSERT_EQ(c.all, SENT - fired);
        ASSERT_EQ(c.late, 0);
        c = with_fault(RS_FAULT_DUPLICATE, AF_INET, &fired);
        ASSERT_TRUE(fired > 30);
        ASSERT_EQ(c.all, SENT + fired);
        c = with_fault(RS_FAULT_REORDER, AF_INET, &fired);
        ASSERT_TRUE(fired > 30);
        ASSERT_EQ(c.all, SENT);
        ASSERT_TRUE(c.late > 10);
        for (enum rs_fault_kind k = RS_FAULT_LOSS; k <= RS_FAULT_REORDER; k++) {
                c = with_fault(k, AF_UNIX, &fired); /* never there */
                ASSERT_EQ(fired, 0);
                ASSERT_EQ(c.all, SENT);
                ASSERT_EQ(c.late, 0);
        }
}

TEST(no_memory_for_a_datagram_is_an_error_of_the_send)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 9);
        struct rs_file *f = udp_at(b, "", 8), *r = udp_at(b, "", 9);

        rs_alloc_fail_after(1, false);
        ASSERT_EQ(send_one(b, f, "x", &to), -ENOMEM);
        ASSERT_TRUE(has_nothing(b, r));
        b->ops->file_close(f);
        b->ops->file_close(r);
        end(b);
        ASSERT_EQ(rs_alloc_live(), 0);
}

TEST(what_was_not_received_goes_with_the_socket)
{
        struct rs_backend *b = world(5);
        resha_addr to = at("127.0.0.1", 9);
        struct rs_file *f = udp_at(b, "", 8), *r = udp_at(b, "", 9);

        for (int i = 0; i < 50; i++)
                ASSERT_EQ(send_one(b, f, "x", &to), 1); /* some are on their way, some there */
        b->ops->file_close(r);
        b->ops->file_close(f);
        end(b);
        ASSERT_EQ(rs_alloc_live(), 0);
}
