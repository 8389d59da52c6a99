/* SPDX-License-Identifier: MIT */
/* The peer of `files`: a bare io_uring loop. files-uring FOLDER FILES IN_FLIGHT HOW.
 *
 * plain: openat, statx, read, close, each when the one before has come back. linked: openat into a place of the ring's
 * own table, read and close of that place, as one chain; the size is not asked for, a read of 4096 bytes is enough for
 * the files that there are (which flatters it: a program does not know that). */

#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "lib/bench.h"

enum { IN_FLIGHT_MAX = 256, ROOM = 4096 };

enum step { OPEN, STAT, READ, CLOSE };

struct slot {
        char path[FILES_PATH];
        struct statx st;
        char *data;
        int fd;
        enum step step;
        unsigned left; /* of a chain */
};

static struct {
        struct io_uring ring;
        struct slot slots[IN_FLIGHT_MAX];
        const char *folder;
        unsigned files, next, done;
        uint64_t bytes;
        bool linked, failed;
} work;

static struct io_uring_sqe *sqe_for(struct slot *s, enum step step)
{
        struct io_uring_sqe *sqe = io_uring_get_sqe(&work.ring);

        if (!sqe) {
                io_uring_submit(&work.ring);
                sqe = io_uring_get_sqe(&work.ring);
        }
        sqe->user_data = (uint64_t)(s - work.slots) << 2 | step;
        return sqe;
}

static void prepare(struct slot *s, struct io_uring_sqe *sqe)
{
        uint64_t data = sqe->user_data;

        switch (s->step) {
        case OPEN: io_uring_prep_openat(sqe, AT_FDCWD, s->path, O_RDONLY | O_CLOEXEC, 0); break;
        case STAT: io_uring_prep_statx(sqe, s->fd, "", AT_EMPTY_PATH, STATX_SIZE, &s->st); break;
        case READ: io_uring_prep_read(sqe, s->fd, s->data, (unsigned)s->st.stx_size + 1, 0); break;
        case CLOSE: io_uring_prep_close(sqe, s->fd); break;
        }
        sqe->user_data = data;
}

static void chain(struct slot *s)
{
        unsigned place = (unsigned)(s - work.slots);
        struct io_uring_sqe *sqe;

        if (io_uring_sq_space_left(&work.ring) < 3)
                io_uring_submit(&work.ring); /* a chain must not be cut */
        sqe = sqe_for(s, OPEN);
        uint64_t data = sqe->user_data;
        io_uring_prep_openat_direct(sqe, AT_FDCWD, s->path, O_RDONLY, 0, place);
        sqe->user_data = data;
        sqe->flags |= IOSQE_IO_LINK;
        sqe = sqe_for(s, READ);
        data = sqe->user_data;
        io_uring_prep_read(sqe, (int)place, s->data, ROOM, 0);
        sqe->user_data = data;
        sqe->flags |= IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK; /* a short read does not keep it open */
        sqe = sqe_for(s, CLOSE);
        data = sqe->user_data;
        io_uring_prep_close_direct(sqe, place);
        sqe->user_data = data;
        s->left = 3;
}

static void begin(struct slot *s)
{
        if (work.next >= work.files)
                return;
        files_path(s->path, work.folder, work.next++);
        s->step = OPEN;
        if (work.linked) {
                s->data = malloc(ROOM);
                chain(s);
        } else {
                prepare(s, sqe_for(s, OPEN));
        }
}

static void finish(struct slot *s)
{
        free(s->data);
        s->data = NULL;
        work.done++;
        begin(s);
}

static void completed(struct slot *s, enum step step, int res)
{
        if (res < 0)
                work.failed = true;
        if (step == READ)
                work.bytes += (uint64_t)res;
        if (work.linked) {
                if (--s->left == 0)
                        finish(s);
                return;
        }
        if (step == OPEN)
                s->fd = res;
        if (step == STAT)
                s->data = malloc((size_t)s->st.stx_size + 1);
        if (step == CLOSE) {
                finish(s);
                return;
        }
        s->step = step + 1;
        prepare(s, sqe_for(s, s->step));
}

static void loop(unsigned in_flight)
{
        for (unsigned i = 0; i < in_flight; i++)
                begin(&work.slots[i]);
        while (work.done < work.files && !work.failed) {
                struct io_uring_cqe *cqe;
                unsigned head, n = 0;
                io_uring_submit_and_wait(&work.ring, 1);
                io_uring_for_each_cqe(&work.ring, head, cqe)
                {
                        n++;
                        completed(&work.slots[cqe->user_data >> 2], (enum step)(cqe->user_data & 3), cqe->res);
                }
                io_uring_cq_advance(&work.ring, n);
        }
}

int main(int argc, char **argv)
{
        struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN };

        if (argc < 5)
                return 2;
        work.folder = argv[1];
        work.files = (unsigned)bench_argument(argc, argv, 2, 10000);
        unsigned in_flight = (unsigned)bench_argument(argc, argv, 3, 64);
        work.linked = strcmp(argv[4], "linked") == 0;
        in_flight = in_flight < IN_FLIGHT_MAX ? in_flight : IN_FLIGHT_MAX;
        if (io_uring_queue_init_params(1024, &work.ring, &p) < 0 ||
            io_uring_register_files_sparse(&work.ring, IN_FLIGHT_MAX) < 0)
                return 1;
        struct files_time start = files_start();
        loop(in_flight);
        return files_end("files-uring", &start, work.failed ? 0 : work.files, work.bytes);
}
