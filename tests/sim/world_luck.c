/* SPDX-License-Identifier: MIT */
/* Luck in the simulated world: seeds, delays, faults. What holds under every seed, and that a seed repeats a run. */

#include "world.h"

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

static bool moved(const struct pump *p)
{
        return p->w.state == RS_OP_DONE || p->r.state == RS_OP_DONE;
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
        for (;;) {
                pump(b, there, seed);
                pump(b, back, seed);
                if (there->done && back->done)
                        break;
                if (!moved(there) && !moved(back)) {
                        ASSERT_OK(b->ops->wait(b, INT64_MAX));
                        drain(b);
                }
                hash = (hash ^ (uint64_t)b->ops->now(b) ^ there->read << 32 ^ back->written) * 1099511628211u;
        }
        ASSERT_EQ(there->read, there->total);
        ASSERT_EQ(back->read, back->total);
        for (unsigned k = 0; k < RS_FAULT_KINDS; k++)
                fired[k] += rs_sim_plan(b)->fired[k];
        resha_free(there);
        close_all(b, &p);
        return hash;
}

TEST(no_byte_is_lost_doubled_or_out_of_order_under_any_seed)
{
        uint64_t fired[RS_FAULT_KINDS] = { 0 };

        for (uint64_t seed = 0; seed < 300; seed++)
                both_ways(seed, fired);
        for (unsigned k = RS_FAULT_LATENCY; k <= RS_FAULT_SMALL_BUFFER; k++)
                if (fired[k] < 100)
                        FAIL("\"%s\" happened only %llu times", rs_fault_name((enum rs_fault_kind)k),
                             (unsigned long long)fired[k]);
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
        for (unsigned k = 0; k < RS_FAULT_KINDS; k++)
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
        ASSERT_OK(b->ops->socket(b, AF_INET, SOCK_STREAM, &f));
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
        for (unsigned k = RS_FAULT_RESET; k <= RS_FAULT_ACCEPT; k++)
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

        ASSERT_EQ(plan->operations, 5); /* socket, bind, socket, connect, accept */
        plan->fail_operation = 7;
        ASSERT_EQ(write_op(b, p.client, "x", 1), 1);
        ASSERT_EQ(read_op(b, p.server, &c, 1), -EIO);
        ASSERT_EQ(read_op(b, p.server, &c, 1), 1);
        ASSERT_EQ(plan->fired[RS_FAULT_NTH], 1);
        close_all(b, &p);
}

TEST(a_world_that_ends_frees_what_is_open)
{
        struct rs_backend *b = world(0);

        join(b);
        ASSERT_TRUE(rs_alloc_live() > 0);
        end(b);
        ASSERT_EQ(rs_alloc_live(), 0);
}
