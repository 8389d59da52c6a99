/* SPDX-License-Identifier: MIT */
/* The limit on io_uring: a bare loop of single receives and sends that are submitted in batches, one call of the kernel
 * for each turn. A connection has one operation in flight and a buffer of its own. */

#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw.h"

enum { ENTRIES = 4096, COMPLETIONS = 65536 };

struct connection {
        int fd;
        bool sending, ended;
        size_t done, size; /* of what is being sent */
        uint64_t count;    /* bytes that came, or went */
        char buffer[];
};

static struct raw raw;
static struct io_uring ring;

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

        c->sending = false;
        io_uring_prep_recv(e, c->fd, c->buffer, raw.size, 0);
        e->ioprio |= IORING_RECVSEND_POLL_FIRST;
        io_uring_sqe_set_data(e, c);
}

static void start_send(struct connection *c)
{
        struct io_uring_sqe *e = submission();

        c->sending = true;
        io_uring_prep_send(e, c->fd, c->buffer + c->done, c->size - c->done, MSG_NOSIGNAL);
        io_uring_sqe_set_data(e, c);
}

static void accepted(const struct io_uring_cqe *cqe)
{
        if (cqe->res >= 0) {
                struct connection *c = malloc(sizeof *c + raw.size);
                if (!c)
                        raw_die("malloc");
                *c = (struct connection){ .fd = cqe->res, .size = raw.size };
                raw_no_delay(c->fd);
                memset(c->buffer, 'x', raw.mode == RAW_SOURCE ? raw.size : 0);
                if (raw.mode == RAW_SOURCE)
                        start_send(c);
                else
                        start_receive(c);
        }
        if (!(cqe->flags & IORING_CQE_F_MORE))
                start_accept();
}

static void drop(struct connection *c)
{
        close(c->fd);
        free(c);
}

static void answer_count(struct connection *c)
{
        memcpy(c->buffer, &c->count, sizeof c->count);
        c->ended = true;
        c->done = 0;
        c->size = sizeof c->count;
        start_send(c);
}

static void received(struct connection *c, int n)
{
        if (n < 0 || (n == 0 && raw.mode == RAW_ECHO)) {
                drop(c);
        } else if (n == 0) {
                answer_count(c);
        } else if (raw.mode == RAW_ECHO) {
                c->done = 0;
                c->size = (size_t)n;
                start_send(c);
        } else {
                c->count += (size_t)n;
                start_receive(c);
        }
}

static void sent(struct connection *c, int n)
{
        if (n < 0) {
                drop(c);
                return;
        }
        c->done += (size_t)n;
        c->count += (size_t)n;
        if (c->done < c->size) {
                start_send(c);
        } else if (c->ended || (raw.mode == RAW_SOURCE && c->count >= RAW_ALL)) {
                drop(c);
        } else if (raw.mode == RAW_SOURCE) {
                c->done = 0;
                start_send(c);
        } else {
                start_receive(c);
        }
}

static void completed(const struct io_uring_cqe *cqe)
{
        struct connection *c = io_uring_cqe_get_data(cqe);

        if (!c)
                accepted(cqe);
        else if (c->sending)
                sent(c, cqe->res);
        else
                received(c, cqe->res);
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
