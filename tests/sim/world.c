/* SPDX-License-Identifier: MIT */
/* The simulated world, asked through the backend's operations alone: no loop, no tasks. Each test names its seed. */

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/backend.h"
#include "io/sim.h"
#include "test.h"

#define MS INT64_C(1000000)

static struct rs_backend *world(uint64_t seed)
{
        struct rs_backend *b;

        ASSERT_OK(rs_sim_new(seed, &b));
        return b;
}

static void end(struct rs_backend *b)
{
        ASSERT_EQ(b->pending, 0);
        b->ops->destroy(b);
}

static resha_addr at(const char *host, uint16_t port)
{
        resha_addr a = { { 0 } };
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = 0 };

        if (strcmp(host, "127.0.0.1") == 0)
                in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else if (strcmp(host, "10.0.0.1") == 0)
                in.sin_addr.s_addr = htonl(0x0a000001);
        memcpy(&a, &in, sizeof in);
        a._[16] = sizeof in;
        return a;
}

static uint16_t port_of(const resha_addr *a)
{
        struct sockaddr_in in;

        memcpy(&in, a, sizeof in);
        return ntohs(in.sin_port);
}

static bool submit(struct rs_backend *b, struct rs_op *op)
{
        return b->ops->submit(b, op);
}

static void drain(struct rs_backend *b)
{
        struct rs_node *n;

        while ((n = rs_list_pop(&b->done)))
                ASSERT_EQ(RS_CONTAINER(n, struct rs_op, link)->state, RS_OP_DONE);
}

/* Lets the world go on until the operation is done. */
static ssize_t finish(struct rs_backend *b, struct rs_op *op)
{
        while (op->state == RS_OP_PENDING) {
                ASSERT_OK(b->ops->wait(b, INT64_MAX));
                drain(b);
        }
        ASSERT_EQ(op->state, RS_OP_DONE);
        return op->result;
}

static ssize_t run(struct rs_backend *b, struct rs_op *op)
{
        submit(b, op);
        return finish(b, op);
}

#define READ(f, buffer, n) ((struct rs_op){ .kind = RS_OP_READ, .file = (f), .buf = (buffer), .size = (n) })
#define WRITE(f, text, n) \
        ((struct rs_op){ .kind = RS_OP_WRITE, .file = (f), .buf = (void *)(uintptr_t)(text), .size = (n) })

static ssize_t read_op(struct rs_backend *b, struct rs_file *f, void *buf, size_t n)
{
        struct rs_op op = READ(f, buf, n);

        return run(b, &op);
}

static ssize_t write_op(struct rs_backend *b, struct rs_file *f, const void *text, size_t n)
{
        struct rs_op op = WRITE(f, text, n);

        return run(b, &op);
}

/* A listener and both ends of a connection. */
struct pair {
        struct rs_file *listener, *client, *server;
};

static struct pair join(struct rs_backend *b)
{
        struct pair p;
        resha_addr any = at("127.0.0.1", 0), real;

        ASSERT_OK(b->ops->tcp_listen(b, &any, 16, &p.listener));
        ASSERT_OK(b->ops->file_addr(p.listener, false, &real));
        ASSERT_OK(b->ops->tcp_socket(b, AF_INET, &p.client));
        struct rs_op connect_op = { .kind = RS_OP_CONNECT, .file = p.client, .addr = &real };
        ASSERT_EQ(run(b, &connect_op), 0);
        struct rs_op accept_op = { .kind = RS_OP_ACCEPT, .file = p.listener };
        ASSERT_EQ(run(b, &accept_op), 0);
        p.server = accept_op.ret_file;
        return p;
}

static void close_all(struct rs_backend *b, struct pair *p)
{
        if (p->client)
                b->ops->file_close(p->client);
        if (p->server)
                b->ops->file_close(p->server);
        if (p->listener)
                b->ops->file_close(p->listener);
        end(b);
}

/* ---- clock ---- */

TEST(clock_jumps_to_the_deadline_and_only_in_wait)
{
        struct rs_backend *b = world(0);
        int64_t t = b->ops->now(b);

        ASSERT_EQ(b->ops->now(b), t);
        ASSERT_OK(b->ops->wait(b, t + 3600 * 1000 * MS));
        ASSERT_EQ(b->ops->now(b), t + 3600 * 1000 * MS);
        ASSERT_OK(b->ops->wait(b, t));
        ASSERT_OK(b->ops->wait(b, INT64_MIN));
        ASSERT_EQ(b->ops->now(b), t + 3600 * 1000 * MS);
        end(b);
}

TEST(wake_ends_a_wait_without_moving_the_clock)
{
        struct rs_backend *b = world(0);
        int64_t t = b->ops->now(b);

        b->ops->wake(b);
        b->ops->wake(b);
        ASSERT_OK(b->ops->wait(b, t + MS));
        ASSERT_EQ(b->ops->now(b), t);
        ASSERT_OK(b->ops->wait(b, t + MS));
        ASSERT_EQ(b->ops->now(b), t + MS);
        end(b);
}

TEST(wait_for_ever_with_nothing_to_come_is_a_deadlock)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char c;
        struct rs_op op = READ(p.client, &c, 1);

        ASSERT_FALSE(submit(b, &op));
        ASSERT_EQ(b->ops->wait(b, INT64_MAX), -EDEADLK);
        b->outside = 1;
        b->ops->wake(b);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_TRUE(b->ops->cancel(b, &op));
        close_all(b, &p);
}

TEST(random_depends_on_the_seed_alone)
{
        struct rs_backend *a = world(7), *b = world(7), *c = world(8);
        struct pair p = join(b); /* the world's own dice are others */
        unsigned same = 0;

        for (int i = 0; i < 100; i++) {
                uint64_t x = a->ops->random(a);
                ASSERT_EQ(x, b->ops->random(b));
                same += x == c->ops->random(c);
        }
        ASSERT_EQ(same, 0);
        close_all(b, &p);
        end(a);
        end(c);
}

/* ---- connecting ---- */

TEST(ports_are_given_from_40000_and_taken_ones_refused)
{
        struct rs_backend *b = world(0);
        struct rs_file *f[4], *none = NULL;
        resha_addr any = at("", 0), one = at("10.0.0.1", 80), all = at("", 80), got;

        for (int i = 0; i < 2; i++) {
                ASSERT_OK(b->ops->tcp_listen(b, &any, 1, &f[i]));
                ASSERT_OK(b->ops->file_addr(f[i], false, &got));
                ASSERT_EQ(port_of(&got), 40000 + i);
        }
        ASSERT_OK(b->ops->tcp_listen(b, &one, 1, &f[2]));
        ASSERT_EQ(b->ops->tcp_listen(b, &one, 1, &none), -EADDRINUSE);
        ASSERT_EQ(b->ops->tcp_listen(b, &all, 1, &none), -EADDRINUSE);
        one = at("127.0.0.1", 80);
        ASSERT_OK(b->ops->tcp_listen(b, &one, 1, &f[3]));
        ASSERT_TRUE(!none);
        for (int i = 0; i < 4; i++)
                b->ops->file_close(f[i]);
        ASSERT_OK(b->ops->tcp_listen(b, &all, 1, &f[0])); /* free again */
        b->ops->file_close(f[0]);
        end(b);
}

static ssize_t try_connect(struct rs_backend *b, const char *host, uint16_t port)
{
        resha_addr to = at(host, port);
        struct rs_file *f;

        ASSERT_OK(b->ops->tcp_socket(b, AF_INET, &f));
        struct rs_op op = { .kind = RS_OP_CONNECT, .file = f, .addr = &to };
        ssize_t rc = run(b, &op);
        b->ops->file_close(f);
        return rc;
}

TEST(connect_needs_somebody_who_listens_there)
{
        struct rs_backend *b = world(0);
        resha_addr one = at("10.0.0.1", 80);
        struct rs_file *l;

        ASSERT_EQ(try_connect(b, "10.0.0.1", 80), -ECONNREFUSED);
        ASSERT_OK(b->ops->tcp_listen(b, &one, 16, &l));
        ASSERT_EQ(try_connect(b, "10.0.0.1", 80), 0);
        ASSERT_EQ(try_connect(b, "10.0.0.1", 81), -ECONNREFUSED);
        ASSERT_EQ(try_connect(b, "127.0.0.1", 80), -ECONNREFUSED);
        b->ops->file_close(l);
        ASSERT_EQ(try_connect(b, "10.0.0.1", 80), -ECONNREFUSED);
        end(b);
}

TEST(both_ends_agree_on_their_addresses)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        resha_addr x, y;

        ASSERT_OK(b->ops->file_addr(p.client, false, &x));
        ASSERT_OK(b->ops->file_addr(p.server, true, &y));
        ASSERT_EQ(memcmp(&x, &y, sizeof x), 0);
        ASSERT_EQ(port_of(&x), 50000);
        ASSERT_OK(b->ops->file_addr(p.client, true, &x));
        ASSERT_OK(b->ops->file_addr(p.server, false, &y));
        ASSERT_EQ(memcmp(&x, &y, sizeof x), 0);
        ASSERT_EQ(port_of(&x), 40000);
        ASSERT_EQ(b->ops->file_addr(p.listener, true, &x), -ENOTCONN);
        close_all(b, &p);
}

/* More callers than the backlog takes: they wait, and get in after an accept; or are refused when the listener goes. */
static void full_backlog(bool close_listener)
{
        struct rs_backend *b = world(0);
        resha_addr to = at("127.0.0.1", 80);
        struct rs_file *l, *f[4];
        struct rs_op op[4], accept_op;

        ASSERT_OK(b->ops->tcp_listen(b, &to, 1, &l));
        for (int i = 0; i < 4; i++) {
                ASSERT_OK(b->ops->tcp_socket(b, AF_INET, &f[i]));
                op[i] = (struct rs_op){ .kind = RS_OP_CONNECT, .file = f[i], .addr = &to };
                ASSERT_EQ(submit(b, &op[i]), i < 2);
        }
        ASSERT_TRUE(b->ops->cancel(b, &op[2]));
        ASSERT_EQ(op[2].result, -ECANCELED);
        if (close_listener) {
                b->ops->file_close(l);
                ASSERT_EQ(finish(b, &op[3]), -ECONNREFUSED);
                char c;
                ASSERT_EQ(read_op(b, f[0], &c, 1), -ECONNRESET);
        } else {
                accept_op = (struct rs_op){ .kind = RS_OP_ACCEPT, .file = l };
                ASSERT_EQ(run(b, &accept_op), 0);
                ASSERT_EQ(finish(b, &op[3]), 0);
                b->ops->file_close(accept_op.ret_file);
                b->ops->file_close(l);
        }
        for (int i = 0; i < 4; i++)
                b->ops->file_close(f[i]);
        end(b);
}

TEST(connect_waits_while_the_backlog_is_full)
{
        full_backlog(false);
}
TEST(closing_a_listener_turns_its_callers_away)
{
        full_backlog(true);
}

TEST(no_memory_for_a_connection_is_an_error_of_the_connect)
{
        for (int n = 1; n <= 3; n++) {
                struct rs_backend *b = world(0);
                resha_addr to = at("127.0.0.1", 80);
                struct rs_file *l, *f;
                ASSERT_OK(b->ops->tcp_listen(b, &to, 1, &l));
                ASSERT_OK(b->ops->tcp_socket(b, AF_INET, &f));
                struct rs_op op = { .kind = RS_OP_CONNECT, .file = f, .addr = &to };
                rs_alloc_fail_after(n, false);
                ASSERT_EQ(run(b, &op), -ENOMEM);
                ASSERT_EQ(run(b, &op), 0); /* nothing was left half done */
                b->ops->file_close(f);
                b->ops->file_close(l);
                end(b);
        }
}

/* ---- bytes ---- */

TEST(without_a_seed_bytes_are_there_at_once)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        int64_t t = b->ops->now(b);
        char buf[16];

        struct rs_op w = WRITE(p.client, "hello", 5), r = READ(p.server, buf, sizeof buf);
        ASSERT_TRUE(submit(b, &w));
        ASSERT_EQ(w.result, 5);
        ASSERT_TRUE(submit(b, &r));
        ASSERT_EQ(r.result, 5);
        ASSERT_EQ(memcmp(buf, "hello", 5), 0);
        ASSERT_EQ(b->ops->now(b), t);
        close_all(b, &p);
}

TEST(a_pending_read_is_finished_by_wait_alone)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];
        struct rs_op r = READ(p.server, buf, sizeof buf), w = WRITE(p.client, "x", 1);

        ASSERT_FALSE(submit(b, &r));
        ASSERT_EQ(b->pending, 1);
        ASSERT_TRUE(submit(b, &w));
        ASSERT_EQ(r.state, RS_OP_PENDING);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_EQ(r.state, RS_OP_DONE);
        ASSERT_EQ(b->pending, 0);
        ASSERT_PTR(b->done.first, &r.link);
        drain(b);
        close_all(b, &p);
}

TEST(a_cancelled_read_takes_nothing)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16] = "";
        struct rs_op r = READ(p.server, buf, sizeof buf);

        ASSERT_FALSE(submit(b, &r));
        ASSERT_EQ(write_op(b, p.client, "x", 1), 1);
        ASSERT_TRUE(b->ops->cancel(b, &r));
        ASSERT_EQ(r.state, RS_OP_IDLE);
        ASSERT_EQ(r.result, -ECANCELED);
        ASSERT_EQ(b->pending, 0);
        ASSERT_EQ(buf[0], 0);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 1);
        close_all(b, &p);
}

TEST(a_writer_waits_while_the_reader_does_not_read)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        static char data[65536 + 100], buf[1000];
        struct rs_op w = WRITE(p.client, data, 100);

        ASSERT_EQ(write_op(b, p.client, data, sizeof data), 65536);
        ASSERT_FALSE(submit(b, &w));
        ASSERT_EQ(b->ops->wait(b, INT64_MAX), -EDEADLK);
        ASSERT_EQ(read_op(b, p.server, buf, 60), 60);
        ASSERT_EQ(finish(b, &w), 60);
        close_all(b, &p);
}

/* ---- ends and resets ---- */

TEST(half_close_leaves_the_other_way_open)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];

        ASSERT_EQ(write_op(b, p.client, "ab", 2), 2);
        ASSERT_OK(b->ops->file_shutdown(p.client));
        ASSERT_OK(b->ops->file_shutdown(p.client));
        ASSERT_EQ(write_op(b, p.client, "x", 1), -EPIPE);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 2);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        ASSERT_EQ(write_op(b, p.server, "cde", 3), 3);
        ASSERT_EQ(read_op(b, p.client, buf, sizeof buf), 3);
        ASSERT_EQ(b->ops->file_shutdown(p.listener), -ENOTCONN);
        close_all(b, &p);
}

TEST(an_orderly_close_is_an_end_after_the_bytes_then_epipe)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];

        ASSERT_EQ(write_op(b, p.client, "ab", 2), 2);
        b->ops->file_close(p.client);
        p.client = NULL;
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 2);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        ASSERT_EQ(write_op(b, p.server, "xyz", 3), 3); /* it cannot know yet */
        ASSERT_EQ(write_op(b, p.server, "xyz", 3), -EPIPE);
        ASSERT_EQ(write_op(b, p.server, "xyz", 3), -EPIPE);
        ASSERT_EQ(read_op(b, p.server, buf, sizeof buf), 0);
        close_all(b, &p);
}

TEST(a_close_with_unread_bytes_resets_the_other_end_once)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        char buf[16];

        ASSERT_EQ(write_op(b, p.server, "seen", 4), 4);
        ASSERT_EQ(write_op(b, p.client, "ab", 2), 2);
        b->ops->file_close(p.server);
        p.server = NULL;
        ASSERT_EQ(read_op(b, p.client, buf, 4), 4); /* it had arrived */
        ASSERT_EQ(read_op(b, p.client, buf, 4), -ECONNRESET);
        ASSERT_EQ(read_op(b, p.client, buf, 4), 0);
        ASSERT_EQ(write_op(b, p.client, "x", 1), -EPIPE);
        close_all(b, &p);
}

TEST(a_reset_ends_those_who_wait)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        static char data[70000], buf[16];
        struct rs_op r = READ(p.client, buf, sizeof buf), w = WRITE(p.client, data, 10);

        ASSERT_EQ(write_op(b, p.client, data, sizeof data), 65536);
        ASSERT_FALSE(submit(b, &r));
        ASSERT_FALSE(submit(b, &w));
        b->ops->file_close(p.server);
        p.server = NULL;
        ssize_t x = finish(b, &r), y = finish(b, &w);
        ASSERT_TRUE((x == -ECONNRESET && y == -EPIPE) || (x == 0 && y == -ECONNRESET));
        close_all(b, &p);
}

/* ---- foreign descriptors ---- */

TEST(poll_asks_the_real_descriptor)
{
        struct rs_backend *b = world(0);
        int fd[2];
        int64_t t = b->ops->now(b);

        ASSERT_OK(pipe2(fd, O_CLOEXEC));
        struct rs_op out = { .kind = RS_OP_POLL, .fd = fd[1], .events = POLLOUT };
        ASSERT_TRUE(submit(b, &out));
        ASSERT_EQ(out.result, POLLOUT);

        struct rs_op in = { .kind = RS_OP_POLL, .fd = fd[0], .events = POLLIN };
        ASSERT_FALSE(submit(b, &in));
        ASSERT_OK(b->ops->wait(b, t + 5 * MS)); /* real time, but no more than that */
        ASSERT_EQ(b->ops->now(b), t + 5 * MS);
        ASSERT_EQ(in.state, RS_OP_PENDING);
        ASSERT_EQ(write(fd[1], "x", 1), 1);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        ASSERT_EQ(in.state, RS_OP_DONE);
        ASSERT_EQ(in.result, POLLIN);
        drain(b);
        close(fd[0]);
        close(fd[1]);
        struct rs_op bad = { .kind = RS_OP_POLL, .fd = fd[0], .events = POLLIN };
        ASSERT_TRUE(submit(b, &bad));
        ASSERT_EQ(bad.result, -EBADF);
        end(b);
}

TEST(poll_can_be_cancelled_and_more_than_a_chunk_can_wait)
{
        struct rs_backend *b = world(0);
        enum { N = 150 };
        static struct rs_op op[N];
        int fd[2];

        ASSERT_OK(pipe2(fd, O_CLOEXEC));
        for (int i = 0; i < N; i++) {
                op[i] = (struct rs_op){ .kind = RS_OP_POLL, .fd = fd[0], .events = POLLIN };
                ASSERT_FALSE(submit(b, &op[i]));
        }
        ASSERT_TRUE(b->ops->cancel(b, &op[N - 2]));
        ASSERT_EQ(write(fd[1], "x", 1), 1);
        ASSERT_OK(b->ops->wait(b, INT64_MAX));
        drain(b);
        for (int i = 0; i < N; i++)
                ASSERT_EQ(op[i].state, i == N - 2 ? RS_OP_IDLE : RS_OP_DONE);
        close(fd[0]);
        close(fd[1]);
        end(b);
}

/* ---- seeds ---- */

/* The byte at place i of the stream in this direction. */
static unsigned char byte_at(uint64_t seed, bool back, size_t i)
{
        return (unsigned char)((i * 131 + i / 251 + seed * 7) ^ (back ? 0x5a : 0));
}

struct pump {
        struct rs_file *from, *to;
        size_t total, written, read;
        bool back, shut, done;
        struct rs_op w, r;
        unsigned char wbuf[9000], rbuf[7000];
};

/* Moves one way on as far as it goes now; checks each byte. */
static void pump(struct rs_backend *b, struct pump *p, uint64_t seed)
{
        if (p->w.state == RS_OP_DONE) {
                ASSERT_TRUE(p->w.result > 0 && (size_t)p->w.result <= p->w.size);
                p->written += (size_t)p->w.result;
                p->w.state = RS_OP_IDLE;
        }
        if (p->r.state == RS_OP_DONE) {
                ASSERT_TRUE(p->r.result >= 0 && (size_t)p->r.result <= p->r.size);
                for (size_t i = 0; i < (size_t)p->r.result; i++)
                        ASSERT_EQ(p->rbuf[i], byte_at(seed, p->back, p->read + i));
                p->read += (size_t)p->r.result;
                p->done = p->r.result == 0;
                p->r.state = RS_OP_IDLE;
        }
        if (p->w.state == RS_OP_IDLE && p->written < p->total) {
                size_t n = 1 + b->ops->random(b) % sizeof p->wbuf;
                n = n < p->total - p->written ? n : p->total - p->written;
                for (size_t i = 0; i < n; i++)
                        p->wbuf[i] = byte_at(seed, p->back, p->written + i);
                p->w = WRITE(p->from, p->wbuf, n);
                submit(b, &p->w);
        } else if (p->written == p->total && !p->shut) {
                ASSERT_OK(b->ops->file_shutdown(p->from));
                p->shut = true;
        }
        if (p->r.state == RS_OP_IDLE && !p->done) {
                p->r = READ(p->to, p->rbuf, 1 + b->ops->random(b) % sizeof p->rbuf);
                submit(b, &p->r);
        }
}

/* Both ways at once, in the world of a seed; a number that stands for all that happened, and when. */
static uint64_t both_ways(uint64_t seed, uint64_t fired[RS_FAULT_KINDS])
{
        struct rs_backend *b = world(seed);
        struct pair p = join(b);
        struct pump *there = resha_calloc(2, sizeof *there), *back = there + 1;
        uint64_t hash = seed ? 1469598103934665603u : 0;

        *there = (struct pump){ .from = p.client, .to = p.server, .total = 30000 };
        *back = (struct pump){ .from = p.server, .to = p.client, .total = 20000, .back = true };
        while (!there->done || !back->done) {
                pump(b, there, seed);
                pump(b, back, seed);
                if (there->r.state == RS_OP_PENDING && back->r.state == RS_OP_PENDING) {
                        ASSERT_OK(b->ops->wait(b, INT64_MAX));
                        drain(b);
                }
                hash = (hash ^ (uint64_t)b->ops->now(b) ^ there->read << 32 ^ back->written) * 1099511628211u;
        }
        ASSERT_EQ(there->read, there->total);
        ASSERT_EQ(back->read, back->total);
        for (int k = 0; k < RS_FAULT_KINDS; k++)
                fired[k] += rs_sim_plan(b)->fired[k];
        resha_free(there);
        close_all(b, &p);
        return hash;
}

TEST(no_byte_is_lost_doubled_or_out_of_order_under_any_seed)
{
        uint64_t fired[RS_FAULT_KINDS] = { 0 };

        for (uint64_t seed = 0; seed < 150; seed++)
                both_ways(seed, fired);
        for (int k = RS_FAULT_LATENCY; k <= RS_FAULT_SMALL_BUFFER; k++)
                if (fired[k] < 100)
                        FAIL("\"%s\" happened only %llu times", rs_fault_name(k), (unsigned long long)fired[k]);
}

TEST(the_same_seed_is_the_same_world)
{
        uint64_t fired[RS_FAULT_KINDS] = { 0 };
        uint64_t a = both_ways(42, fired), b = both_ways(42, fired), c = both_ways(43, fired);

        ASSERT_TRUE(a == b);
        ASSERT_TRUE(a != c);
}

TEST(seed_0_has_no_faults_and_takes_no_time)
{
        uint64_t fired[RS_FAULT_KINDS] = { 0 };

        both_ways(0, fired);
        for (int k = 0; k < RS_FAULT_KINDS; k++)
                ASSERT_EQ(fired[k], 0);
}

TEST(faults_happen_when_the_plan_asks_for_them)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        struct rs_sim_plan *plan = rs_sim_plan(b);
        resha_addr to;
        char c;

        ASSERT_OK(b->ops->file_addr(p.listener, false, &to));
        plan->per_mille[RS_FAULT_REFUSED] = 1000;
        ASSERT_EQ(try_connect(b, "127.0.0.1", port_of(&to)), -ECONNREFUSED);
        plan->per_mille[RS_FAULT_REFUSED] = 0;

        struct rs_file *f;
        ASSERT_OK(b->ops->tcp_socket(b, AF_INET, &f));
        struct rs_op connect_op = { .kind = RS_OP_CONNECT, .file = f, .addr = &to };
        ASSERT_EQ(run(b, &connect_op), 0);
        plan->per_mille[RS_FAULT_ACCEPT] = 1000;
        struct rs_op accept_op = { .kind = RS_OP_ACCEPT, .file = p.listener };
        ASSERT_EQ(run(b, &accept_op), -EMFILE);
        plan->per_mille[RS_FAULT_ACCEPT] = 0;
        ASSERT_EQ(run(b, &accept_op), 0); /* the connection was kept */

        plan->per_mille[RS_FAULT_RESET] = 1000;
        ASSERT_EQ(write_op(b, f, "x", 1), -ECONNRESET);
        plan->per_mille[RS_FAULT_RESET] = 0;
        ASSERT_EQ(read_op(b, accept_op.ret_file, &c, 1), -ECONNRESET);
        for (int k = RS_FAULT_RESET; k <= RS_FAULT_ACCEPT; k++)
                ASSERT_EQ(plan->fired[k], 1);
        b->ops->file_close(f);
        b->ops->file_close(accept_op.ret_file);
        close_all(b, &p);
}

TEST(the_nth_operation_fails)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        struct rs_sim_plan *plan = rs_sim_plan(b);
        char c;

        ASSERT_EQ(plan->operations, 4); /* listen, socket, connect, accept */
        plan->fail_operation = 6;
        ASSERT_EQ(write_op(b, p.client, "x", 1), 1);
        ASSERT_EQ(read_op(b, p.server, &c, 1), -EIO);
        ASSERT_EQ(read_op(b, p.server, &c, 1), 1);
        ASSERT_EQ(plan->fired[RS_FAULT_NTH], 1);
        close_all(b, &p);
}

TEST(a_world_that_ends_frees_what_is_open)
{
        struct rs_backend *b = world(0);

        rs_alloc_watch(true);
        int64_t before = rs_alloc_live();
        join(b);
        end(b);
        ASSERT_EQ(rs_alloc_live(), before);
}
