/* SPDX-License-Identifier: MIT */
/* The simulated world: a backend without a kernel. Time is a number that jumps, sockets are buffers in memory
 * (sim_net.c, sim_stream.c), luck comes from a seed. A run in it takes no longer than its computing, and the same seed
 * gives the same run, to the byte.
 *
 * Clock      starts at SIM_START and moves only in wait(), only when nothing can be done now, to the next event or to
 *            the caller's deadline, whichever is earlier. Computing takes no time.
 * Events     are timers in a heap: bytes that arrive, operations whose turn comes. A pending operation is finished by
 *            an event, so only inside wait(), as backend.h promises.
 * Luck       two xoshiro256** generators: one for the world's decisions, one that random() hands to the layers above.
 *            Seed 0 has no faults and no delays: everything happens at once and in order.
 * Foreign    A POLL is about a real descriptor, which lives outside of this world: it is asked with poll(2) at submit
 * fds        and in each wait(). Before the clock jumps over d, the outside gets up to d of real time, but at most
 *            REAL_SLICE_MS; if nothing else can happen, as much as it needs. Runs with such descriptors depend on the
 *            outside and are not covered by the promise above.
 * The end    wait() without a limit, with no event to come, no foreign descriptor and nothing under way outside the
 *            loop (rs_backend.outside), is -EDEADLK: nothing can ever happen. */

#include "io/sim.h"

#include <assert.h>
#include <errno.h>

#include <resha/alloc.h>

#include "io/sim_file.h"
#include "io/sim_hosts.h"
#include "sys/ready.h"

enum {
        REAL_SLICE_MS = 10,
        POLL_CHUNK = 64,
        NS_PER_MS = 1000000,
        ROUND_NS = 100000,
};

static const int64_t SIM_START = INT64_C(1000) * 1000 * NS_PER_MS; /* 1000 s: not 0, which reads like "never set" */

/* ---- luck: Blackman and Vigna's xoshiro256**, filled by splitmix64, as they recommend ---- */

static uint64_t splitmix(uint64_t *x)
{
        uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static uint64_t rotate(uint64_t x, int k)
{
        return (x << k) | (x >> (64 - k));
}

static uint64_t xoshiro(uint64_t s[4])
{
        uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotate(s[3], 45);
        return result;
}

uint64_t sim_roll(struct sim *s, uint64_t below)
{
        assert(below > 0);
        return xoshiro(s->dice) % below; /* the bias is below 2^-40 for all that is asked here */
}

bool sim_fires(struct sim *s, enum rs_fault_kind kind)
{
        if (!s->plan.per_mille[kind] || sim_roll(s, 1000) >= s->plan.per_mille[kind])
                return false;
        s->plan.fired[kind]++;
        return true;
}

/* Half of them end at a round instant, so that things happen at the same time as others, and as timeouts. */
int64_t sim_delay(struct sim *s, enum rs_fault_kind kind)
{
        if (s->plan.latency_max <= 0 || !sim_fires(s, kind))
                return 0;
        int64_t d = 1 + (int64_t)sim_roll(s, (uint64_t)s->plan.latency_max);
        int64_t over = (s->now + d) % ROUND_NS;
        return d > over && sim_roll(s, 2) ? d - over : d;
}

bool sim_nth(struct sim *s)
{
        if (++s->plan.operations != s->plan.fail_operation)
                return false;
        s->plan.fired[RS_FAULT_NTH]++;
        return true;
}

bool rs_sim_operation(struct rs_backend *b)
{
        return sim_nth(sim_world(b));
}

struct rs_sim_plan *rs_sim_plan(struct rs_backend *b)
{
        return b->ops->simulated ? &sim_world(b)->plan : NULL;
}

const char *rs_fault_name(enum rs_fault_kind kind)
{
        static const char *const names[RS_FAULT_KINDS] = {
                [RS_FAULT_LATENCY] = "latency",
                [RS_FAULT_STALL] = "stall",
                [RS_FAULT_SHORT_READ] = "short read",
                [RS_FAULT_SHORT_WRITE] = "short write",
                [RS_FAULT_SMALL_BUFFER] = "small buffer",
                [RS_FAULT_RESET] = "reset",
                [RS_FAULT_REFUSED] = "refused",
                [RS_FAULT_ACCEPT] = "accept",
                [RS_FAULT_LOSS] = "loss",
                [RS_FAULT_DUPLICATE] = "duplicate",
                [RS_FAULT_REORDER] = "reorder",
                [RS_FAULT_NTH] = "n-th operation",
        };

        return kind < RS_FAULT_KINDS ? names[kind] : "?";
}

/* ---- operations ---- */

/* What the call that an operation stands for gives when the system has run out of something. */
static int nth_code(enum rs_op_kind kind)
{
        switch (kind) {
        case RS_OP_ACCEPT: return -ENFILE;
        case RS_OP_CONNECT: return -ENETUNREACH;
        case RS_OP_POLL:
        case RS_OP_RECEIVE:
        case RS_OP_SEND: return -ENOMEM;
        default: return -EIO;
        }
}

/* The ready mask now, 0 if none, negative if poll(2) cannot tell. */
static int poll_now(int fd, short events)
{
        struct pollfd p = { .fd = fd, .events = events };
        int rc = rs_ready_wait(&p, 1, 0);

        if (rc <= 0)
                return rc;
        return p.revents & POLLNVAL ? -EBADF : p.revents;
}

/* Somebody waits for it already, or it is a file's: as the kernel backends have it. */
static bool is_taken(const struct sim *s, int fd)
{
        for (const struct rs_node *n = s->polls.first; n; n = n->next) {
                const struct rs_op *op = RS_CONTAINER(n, const struct rs_op, link);
                if (op->kind == RS_OP_POLL && op->fd == fd)
                        return true;
        }
        return kn_owns(&s->real, fd);
}

static bool sim_submit(struct rs_backend *b, struct rs_op *op)
{
        struct sim *s = sim_world(b);
        int rc;

        assert(op->state != RS_OP_PENDING);
        if (sim_nth(s)) {
                op->result = op->kind == RS_OP_DISK ? sim_disk_fails(op) : nth_code(op->kind);
                op->state = RS_OP_DONE;
                return true;
        }
        if (op->kind == RS_OP_DISK)
                return sim_disk_submit(s, op);
        if (op->kind != RS_OP_POLL)
                return sim_net_submit(s, op);
        rc = op->fd < 0            ? -EBADF /* which poll(2) passes over */
             : is_taken(s, op->fd) ? -EBUSY
                                   : poll_now(op->fd, op->events);
        if (rc != 0) {
                op->result = rc;
                op->state = RS_OP_DONE;
                return true;
        }
        op->state = RS_OP_PENDING;
        b->pending++;
        rs_list_push(&s->polls, &op->link);
        return false;
}

/* Nothing in here is owned by a kernel: it always lets go at once. */
static bool sim_cancel(struct rs_backend *b, struct rs_op *op)
{
        struct sim *s = sim_world(b);

        assert(op->state == RS_OP_PENDING);
        if (op->kind == RS_OP_POLL)
                rs_list_remove(&s->polls, &op->link);
        else if (op->kind == RS_OP_DISK)
                sim_disk_cancel(s, op);
        else
                sim_net_cancel(s, op);
        op->result = -ECANCELED;
        op->state = RS_OP_IDLE;
        b->pending--;
        return true;
}

/* ---- waiting ---- */

static struct pollfd asked_for(const struct rs_op *op)
{
        if (op->kind == RS_OP_POLL)
                return (struct pollfd){ .fd = op->fd, .events = op->events };
        return (struct pollfd){ .fd = op->file->fd, .events = kn_direction(op) == KN_READING ? POLLIN : POLLOUT };
}

/* What poll(2) said of the operation's descriptor; rc: of the whole call. */
static void answered(struct sim *s, struct rs_op *op, int rc, short events)
{
        if (op->kind == RS_OP_POLL)
                op->result = rc < 0 ? rc : events & POLLNVAL ? -EBADF : events;
        else if (!sim_outside_try(op))
                return;
        rs_list_remove(&s->polls, &op->link);
        rs_backend_done(&s->base, op, op->result);
}

/* Asks for all real descriptors that are waited for, in chunks, giving the first chunk up to timeout_ms. */
static void poll_foreign(struct sim *s, int timeout_ms)
{
        struct rs_node *n = s->polls.first;

        while (n) {
                struct pollfd fds[POLL_CHUNK];
                struct rs_op *ops[POLL_CHUNK];
                size_t count = 0;
                for (; n && count < POLL_CHUNK; n = n->next, count++) {
                        ops[count] = RS_CONTAINER(n, struct rs_op, link);
                        fds[count] = asked_for(ops[count]);
                }
                int rc = rs_ready_wait(fds, count, n && timeout_ms > 1 ? 1 : timeout_ms);
                for (size_t i = 0; rc != 0 && i < count; i++)
                        if (rc < 0 || fds[i].revents)
                                answered(s, ops[i], rc, fds[i].revents);
                timeout_ms = 0;
        }
}

/* Real time for what is outside of this world: until something comes from there, at most timeout_ms. */
static void let_outside_run(struct sim *s, int timeout_ms)
{
        if (rs_list_empty(&s->polls))
                rs_ready_wait(NULL, 0, timeout_ms);
        else
                poll_foreign(s, timeout_ms);
}

static void fire_due(struct sim *s)
{
        struct rs_timer *t;

        while ((t = rs_heap_first(&s->events)) && t->deadline <= s->now) {
                rs_heap_remove(&s->events, t);
                t->fire(t);
        }
}

static int sim_wait(struct rs_backend *b, int64_t deadline)
{
        struct sim *s = sim_world(b);
        bool given = false; /* the outside has had its time since the clock last moved */

        for (;;) {
                bool woken = atomic_exchange_explicit(&s->woken, false, memory_order_acq_rel);
                if (!given)
                        poll_foreign(s, 0);
                fire_due(s);
                if (woken || !rs_list_empty(&b->done) || deadline <= s->now)
                        return 0;

                const struct rs_timer *t = rs_heap_first(&s->events);
                int64_t next = t && t->deadline < deadline ? t->deadline : deadline;
                bool foreign = !rs_list_empty(&s->polls);
                if (next == INT64_MAX && !foreign && !b->outside)
                        return -EDEADLK;
                if (next == INT64_MAX || (foreign && !given)) {
                        int64_t ms = (next - s->now + NS_PER_MS - 1) / NS_PER_MS;
                        let_outside_run(s, ms < REAL_SLICE_MS ? (int)ms : REAL_SLICE_MS);
                        if (b->stepped && next == INT64_MAX)
                                deadline = s->now; /* one more look */
                        given = true;
                        continue;
                }
                s->now = next;
                given = false;
        }
}

static void sim_wake(struct rs_backend *b)
{
        atomic_store_explicit(&sim_world(b)->woken, true, memory_order_release);
}

static int64_t sim_now(struct rs_backend *b)
{
        return sim_world(b)->now;
}

static uint64_t sim_random(struct rs_backend *b)
{
        return xoshiro(sim_world(b)->handed);
}

/* ---- the world itself ---- */

static void sim_destroy(struct rs_backend *b)
{
        struct sim *s = sim_world(b);

        sim_net_done(s);
        sim_hosts_done(s);
        resha_free(s);
}

static const struct rs_backend_ops sim_ops = {
        .name = "sim",
        .simulated = true,
        .now = sim_now,
        .random = sim_random,
        .submit = sim_submit,
        .cancel = sim_cancel,
        .wait = sim_wait,
        .wake = sim_wake,
        .socket = sim_socket,
        .bind = sim_bind,
        .listen = sim_listen,
        .pair = sim_pair,
        .pipe = sim_pipe,
        .adopt = sim_adopt,
        .release = sim_release,
        .option = sim_option,
        .file_addr = sim_file_addr,
        .file_error = sim_dgram_error,
        .file_shutdown = sim_file_shutdown,
        .file_close = sim_file_close,
        .destroy = sim_destroy,
};

int rs_sim_new(uint64_t seed, struct rs_backend **ret_backend)
{
        struct sim *s = resha_calloc(1, sizeof *s);
        uint64_t x = seed;

        if (!s)
                return -ENOMEM;
        s->base.ops = &sim_ops;
        s->now = SIM_START;
        s->next_port = 40000;
        s->next_client_port = 50000;
        s->plan.seed = seed;
        for (int i = 0; i < 4; i++)
                s->dice[i] = splitmix(&x);
        for (int i = 0; i < 4; i++)
                s->handed[i] = splitmix(&x);
        if (seed != 0) {
                s->plan.latency_max = INT64_C(3) * NS_PER_MS;
                s->plan.per_mille[RS_FAULT_LATENCY] = 700;
                s->plan.per_mille[RS_FAULT_STALL] = 200;
                s->plan.per_mille[RS_FAULT_SHORT_READ] = 400;
                s->plan.per_mille[RS_FAULT_SHORT_WRITE] = 400;
                s->plan.per_mille[RS_FAULT_SMALL_BUFFER] = 250;
        }
        *ret_backend = &s->base;
        return 0;
}
