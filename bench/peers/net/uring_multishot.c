/* SPDX-License-Identifier: MIT */
/* The other way of io_uring: one receive of each connection goes on for ever and takes its buffers from a ring that all
 * share; a message is sent from the buffer that it came in. Echo only. */

#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

enum { ENTRIES = 4096, COMPLETIONS = 65536, BUFFERS = 4096 };

struct connection {
        int fd;
};

static struct raw raw;
static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static char *memory;
static struct connection *sender[BUFFERS]; /* whose bytes are in a buffer that is being sent */
static size_t sent_from[BUFFERS], sent_to[BUFFERS];

static char *buffer_of(unsigned id)
{
        return memory + (size_t)id * raw.size;
}

static struct io_uring_sqe *submission(void)
{
        struct io_uring_sqe *e;

        while (!(e = io_uring_get_sqe(&ring)))
                io_uring_submit(&ring);
        return e;
}

static void start_accept(void)
{
        struct io_uring_sqe *e = submission();

        io_uring_prep_multishot_accept(e, raw.listener, NULL, NULL, SOCK_CLOEXEC);
        io_uring_sqe_set_data(e, NULL);
}

static void start_receive(struct connection *c)
{
        struct io_uring_sqe *e = submission();

        io_uring_prep_recv_multishot(e, c->fd, NULL, 0, 0);
        e->flags |= IOSQE_BUFFER_SELECT;
        e->buf_group = 0;
        io_uring_sqe_set_data(e, c);
}

/* Sends are told from receives by the lowest bit of what they carry: the number of their buffer. */
static void start_send(unsigned id)
{
        struct io_uring_sqe *e = submission();

        io_uring_prep_send(e, sender[id]->fd, buffer_of(id) + sent_from[id], sent_to[id] - sent_from[id], MSG_NOSIGNAL);
        io_uring_sqe_set_data64(e, (uint64_t)id << 1 | 1);
}

static void give_back(unsigned id)
{
        io_uring_buf_ring_add(buffers, buffer_of(id), (unsigned)raw.size, (unsigned short)id,
                              io_uring_buf_ring_mask(BUFFERS), 0);
        io_uring_buf_ring_advance(buffers, 1);
}

static void accepted(const struct io_uring_cqe *cqe)
{
        if (cqe->res >= 0) {
                struct connection *c = malloc(sizeof *c);
                if (!c)
                        raw_die("malloc");
                c->fd = cqe->res;
                raw_no_delay(c->fd);
                start_receive(c);
        }
        if (!(cqe->flags & IORING_CQE_F_MORE))
                start_accept();
}

static void received(struct connection *c, const struct io_uring_cqe *cqe)
{
        if (cqe->res > 0) {
                unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
                sender[id] = c;
                sent_from[id] = 0;
                sent_to[id] = (size_t)cqe->res;
                start_send(id);
        }
        if (cqe->flags & IORING_CQE_F_MORE)
                return;
        if (cqe->res > 0 || cqe->res == -ENOBUFS) {
                start_receive(c);
        } else {
                close(c->fd);
                free(c);
        }
}

static void sent(unsigned id, int n)
{
        if (n > 0)
                sent_from[id] += (size_t)n;
        if (n > 0 && sent_from[id] < sent_to[id])
                start_send(id);
        else
                give_back(id);
}

static void completed(const struct io_uring_cqe *cqe)
{
        if (cqe->user_data & 1)
                sent((unsigned)(cqe->user_data >> 1), cqe->res);
        else if (cqe->user_data)
                received(io_uring_cqe_get_data(cqe), cqe);
        else
                accepted(cqe);
}

static void make_buffers(void)
{
        size_t size = BUFFERS * sizeof(struct io_uring_buf);

        memory = malloc(BUFFERS * raw.size);
        buffers = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
        if (!memory || buffers == MAP_FAILED)
                raw_die("memory");
        struct io_uring_buf_reg r = { .ring_addr = (uintptr_t)buffers, .ring_entries = BUFFERS, .bgid = 0 };
        if (io_uring_register_buf_ring(&ring, &r, 0) < 0)
                raw_die("io_uring_register_buf_ring");
        io_uring_buf_ring_init(buffers);
        for (unsigned i = 0; i < BUFFERS; i++)
                give_back(i);
}

int main(int argc, char **argv)
{
        struct io_uring_params p = {
                .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
                .cq_entries = COMPLETIONS,
        };
        int rc = io_uring_queue_init_params(ENTRIES, &ring, &p);

        if (rc < 0) {
                fprintf(stderr, "io_uring: %s\n", strerror(-rc));
                return 1;
        }
        io_uring_register_ring_fd(&ring);
        raw_begin(&raw, argc, argv);
        make_buffers();
        start_accept();
        for (;;) {
                struct io_uring_cqe *cqe;
                unsigned head, n = 0;

                io_uring_submit_and_wait(&ring, 1);
                io_uring_for_each_cqe(&ring, head, cqe)
                {
                        completed(cqe);
                        n++;
                }
                io_uring_cq_advance(&ring, n);
        }
}
