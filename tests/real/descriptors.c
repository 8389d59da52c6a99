/* SPDX-License-Identifier: MIT */
/* Descriptors from elsewhere as streams, and back: sockets, pipes, FIFOs, terminals, files; with the flags that others
 * see, and ends that are not final. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <resha/alloc.h>
#include <resha/fd.h>

static void close_fd(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

#define FD(fd) int fd RESHA_CLEANUP(close_fd)
#define STREAM(s) resha_stream *s RESHA_CLEANUP(resha_stream_closep)

static void expect(resha_stream *s, const char *text)
{
        char buf[64];

        ASSERT_EQ(resha_read_exactly(s, buf, strlen(text)), strlen(text));
        ASSERT_EQ(memcmp(buf, text, strlen(text)), 0);
}

static void say(resha_stream *s, const char *text)
{
        ASSERT_OK(resha_write_all(s, text, strlen(text), NULL));
}

static void put(int fd, const char *text)
{
        ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
}

static bool blocks(int fd)
{
        return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* ---- there and back ---- */

static void round_trip(int ours, int theirs, const char *kind, bool was_blocking)
{
        STREAM(s) = NULL;
        char buf[16];
        int fd = -1;

        ASSERT_EQ(blocks(ours), was_blocking);
        ASSERT_OK(resha_stream_adopt(ours, &s));
        ASSERT_STR(resha_stream_kind(s), kind);
        ASSERT_FALSE(blocks(ours));
        ASSERT_TRUE(fcntl(ours, F_GETFD) & FD_CLOEXEC);
        put(theirs, "hello\nrest");
        ASSERT_EQ(resha_read_line(s, buf, sizeof buf), 6);
        ASSERT_EQ(resha_stream_release(s, &fd), -EBUSY); /* bytes are in it */
        ASSERT_EQ(fd, -1);
        expect(s, "rest");
        ASSERT_EQ(resha_fd_wait(ours, POLLIN), -EBUSY); /* it is the stream's */
        ASSERT_OK(resha_stream_release(s, &fd));
        s = NULL;
        ASSERT_EQ(fd, ours);
        ASSERT_EQ(blocks(ours), was_blocking);
        put(theirs, "x");
        ASSERT_EQ(resha_fd_wait(ours, POLLIN), POLLIN);
        ASSERT_EQ(read(ours, buf, 1), 1);
        /* And again, after a wait for it as somebody else's. */
        ASSERT_OK(resha_stream_adopt(ours, &s));
        put(theirs, "y");
        expect(s, "y");
}

static int wait_and_put(void *arg)
{
        int rc = resha_sleep(RESHA_MS(5));

        put(*(int *)arg, "late");
        return rc;
}

TASK(a_socket_is_adopted_and_given_back_as_it_was)
{
        for (int flags = 0; flags <= SOCK_NONBLOCK; flags += SOCK_NONBLOCK) {
                int fds[2];
                ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | flags, 0, fds));
                FD(theirs) = fds[1];
                round_trip(fds[0], theirs, "unix", flags == 0);
        }
        return 0;
}

TASK(a_pipe_is_adopted_and_given_back_as_it_was)
{
        int fds[2];

        ASSERT_OK(pipe(fds));
        FD(theirs) = fds[1];
        round_trip(fds[0], theirs, "pipe", true);
        return 0;
}

TASK(what_was_waited_for_before_it_was_adopted_can_be_waited_for)
{
        int fds[2];
        STREAM(s) = NULL;
        RESHA_GROUP(g);

        ASSERT_OK(pipe(fds));
        FD(theirs) = fds[1];
        resha_group_begin(&g, NULL);
        put(theirs, "a");
        ASSERT_EQ(resha_fd_wait(fds[0], POLLIN), POLLIN);
        ASSERT_OK(resha_stream_adopt(fds[0], &s));
        expect(s, "a");
        resha_spawn(&g, wait_and_put, &theirs);
        expect(s, "late");
        return resha_group_end(&g, 0);
}

static int read_one(void *arg)
{
        char c;

        return (int)resha_read(arg, &c, 1);
}

TASK(a_stream_with_a_task_inside_or_kept_bytes_is_not_released)
{
        struct real_pair p;
        int fd = -1;
        RESHA_GROUP(g);

        real_pair(&p);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, read_one, p.here);
        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(resha_stream_release(p.here, &fd), -EBUSY);
        say(p.there, "x");
        ASSERT_OK(resha_group_end(&g, 0));
        ASSERT_OK(resha_stream_buffer(p.here, 10));
        say(p.here, "kept");
        ASSERT_EQ(resha_stream_release(p.here, &fd), -EBUSY);
        ASSERT_OK(resha_flush(p.here));
        ASSERT_OK(resha_stream_release(p.here, &fd)); /* made here: it can go, too */
        p.here = NULL;
        put(fd, "raw");
        expect(p.there, "keptraw");
        close(fd);
        real_pair_close(&p);
        return 0;
}

TASK(what_is_no_stream_is_refused_and_stays_the_caller_s)
{
        FD(listener) = socket(AF_INET, SOCK_STREAM, 0);
        FD(datagrams) = socket(AF_INET, SOCK_DGRAM, 0);
        resha_stream *s = NULL;
        STREAM(twice) = NULL;
        int fds[2];

        ASSERT_OK(listen(listener, 1));
        ASSERT_EQ(resha_stream_adopt(listener, &s), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "listens");
        ASSERT_EQ(resha_stream_adopt(datagrams, &s), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "datagrams");
        ASSERT_EQ(resha_stream_adopt(-1, &s), -EBADF);
        ASSERT_EQ(resha_stream_adopt(999, &s), -EBADF);
        ASSERT_OK(pipe(fds));
        close(fds[1]);
        ASSERT_OK(resha_stream_adopt(fds[0], &twice));
        ASSERT_EQ(resha_stream_adopt(fds[0], &s), -EBUSY);
        ASSERT_TRUE(fcntl(listener, F_GETFD) >= 0 && fcntl(datagrams, F_GETFD) >= 0);
        ASSERT_TRUE(blocks(datagrams));
        return 0;
}

/* ---- FIFOs ---- */

struct fifo {
        char folder[64], path[80];
};

static void fifo_make(struct fifo *f)
{
        snprintf(f->folder, sizeof f->folder, "/tmp/resha-fifo-XXXXXX");
        ASSERT_TRUE(mkdtemp(f->folder) != NULL);
        snprintf(f->path, sizeof f->path, "%s/fifo", f->folder);
        ASSERT_OK(mkfifo(f->path, 0600));
}

static void fifo_remove(struct fifo *f)
{
        unlink(f->path);
        rmdir(f->folder);
}

/* The next writer comes after the last one has gone. */
TASK(the_end_of_a_fifo_is_not_final)
{
        struct fifo f RESHA_CLEANUP(fifo_remove) = { "", "" };
        STREAM(s) = NULL;
        char buf[8];
        RESHA_GROUP(g);

        fifo_make(&f);
        int fd = open(f.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        ASSERT_OK(resha_stream_adopt(fd, &s));
        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++) {
                FD(writer) = open(f.path, O_WRONLY | O_CLOEXEC);
                put(writer, "again");
                expect(s, "again");
                resha_spawn(&g, wait_and_put, &writer); /* it waits, and is woken */
                expect(s, "late");
                close(writer);
                writer = -1;
                ASSERT_EQ(resha_read(s, buf, sizeof buf), 0);
                ASSERT_EQ(resha_read(s, buf, sizeof buf), 0);
        }
        return resha_group_end(&g, 0);
}

/* ---- terminals ---- */

struct terminal {
        int master, slave;
        char name[64];
};

/* A terminal forgets it when nobody has it open. */
static void make_raw(int fd)
{
        struct termios raw;

        ASSERT_TRUE(fd >= 0);
        ASSERT_OK(tcgetattr(fd, &raw));
        cfmakeraw(&raw);
        ASSERT_OK(tcsetattr(fd, TCSANOW, &raw));
}

static void terminal_open(struct terminal *t)
{
        t->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_TRUE(t->master >= 0);
        ASSERT_OK(grantpt(t->master));
        ASSERT_OK(unlockpt(t->master));
        ASSERT_OK(ptsname_r(t->master, t->name, sizeof t->name));
        t->slave = open(t->name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        make_raw(t->slave);
}

TASK(the_end_of_a_terminal_is_not_final)
{
        struct terminal t;
        STREAM(s) = NULL;
        char buf[64];

        terminal_open(&t);
        ASSERT_OK(resha_stream_adopt(t.master, &s));
        ASSERT_STR(resha_stream_kind(s), "terminal");
        for (int i = 0; i < 3; i++) {
                put(t.slave, "output");
                close(t.slave); /* hangs up, with bytes that were not read */
                expect(s, "output");
                ASSERT_EQ(resha_read(s, buf, sizeof buf), 0);
                ASSERT_EQ(resha_read(s, buf, sizeof buf), 0);
                t.slave = open(t.name, O_RDWR | O_NOCTTY | O_CLOEXEC);
                make_raw(t.slave);
                say(s, "input");
                ASSERT_EQ(read(t.slave, buf, sizeof buf), 5);
        }
        ASSERT_EQ(resha_stream_shutdown(s), -EOPNOTSUPP);
        ASSERT_OK(resha_stream_finish(s)); /* that is only to send what is kept */
        close(t.slave);
        return 0;
}

/* A terminal gives a line at a time, fewer bytes than there is room for; that says nothing of the end. */
TASK(a_short_read_of_a_terminal_is_no_end_though_it_has_hung_up)
{
        struct terminal t;
        STREAM(s) = NULL;
        size_t got = 0;
        char buf[300];
        ssize_t n;

        terminal_open(&t);
        ASSERT_OK(resha_stream_adopt(t.master, &s));
        for (int i = 0; i < 30; i++)
                put(t.slave, "0123456789012345678901234567890123456789012345678901234567890123456789");
        close(t.slave);
        while ((n = resha_read(s, buf, sizeof buf)) > 0)
                got += (size_t)n;
        ASSERT_EQ(n, 0);
        ASSERT_EQ(got, 30 * 70);
        return 0;
}

TASK(control_d_ends_a_line_of_input_and_no_more)
{
        struct terminal t;
        STREAM(s) = NULL;
        struct termios cooked;
        char buf[64];

        terminal_open(&t);
        ASSERT_OK(tcgetattr(t.slave, &cooked));
        cooked.c_lflag |= ICANON;
        ASSERT_OK(tcsetattr(t.slave, TCSANOW, &cooked));
        ASSERT_OK(resha_stream_adopt(t.slave, &s));
        put(t.master, "one\n\4two\n");
        ASSERT_EQ(resha_read(s, buf, sizeof buf), 4);
        ASSERT_EQ(resha_read(s, buf, sizeof buf), 0);
        ASSERT_EQ(resha_read_line(s, buf, sizeof buf), 4);
        ASSERT_STR(buf, "two\n");
        close(t.master);
        ASSERT_EQ(resha_read(s, buf, sizeof buf), 0);
        return 0;
}

/* ---- files ---- */

TASK(a_file_is_read_to_its_end_and_appended_to)
{
        char name[] = "/tmp/resha-file-XXXXXX", buf[64];
        FD(made) = mkostemp(name, O_CLOEXEC);
        STREAM(in) = NULL;
        STREAM(out) = NULL;

        put(made, "old\n");
        ASSERT_OK(resha_stream_adopt(open(name, O_WRONLY | O_APPEND | O_CLOEXEC), &out));
        ASSERT_OK(resha_stream_adopt(open(name, O_RDONLY | O_CLOEXEC), &in));
        unlink(name);
        ASSERT_STR(resha_stream_kind(in), "file");
        say(out, "new\n");
        put(made, "OLD"); /* in the middle */
        say(out, "last");
        ASSERT_EQ(resha_read_line(in, buf, sizeof buf), 4);
        ASSERT_EQ(resha_read_line(in, buf, sizeof buf), 4);
        ASSERT_STR(buf, "OLD\n");
        expect(in, "last");
        ASSERT_EQ(resha_read(in, buf, sizeof buf), 0);
        say(out, "more");
        expect(in, "more"); /* its end moves */
        ASSERT_EQ(resha_stream_shutdown(out), -EOPNOTSUPP);
        ASSERT_OK(resha_send_file(out, made, 0, 3, NULL)); /* the kernel does not send to where is appended */
        expect(in, "old");
        return 0;
}

static int no_space_once(enum rs_syscall call)
{
        if (call != RS_SYS_WRITE)
                return 0;
        rs_fault_hook = NULL;
        return -ENOSPC;
}

/* Somebody makes room, and the log goes on. */
TASK(a_full_disk_is_no_end)
{
        char name[] = "/tmp/resha-file-XXXXXX";
        FD(made) = mkostemp(name, O_CLOEXEC);
        STREAM(out) = NULL;
        STREAM(in) = NULL;
        size_t written = 1;

        ASSERT_OK(made);
        ASSERT_OK(resha_stream_adopt(open(name, O_WRONLY | O_CLOEXEC), &out));
        ASSERT_OK(resha_stream_adopt(open(name, O_RDONLY | O_CLOEXEC), &in));
        unlink(name);
        ASSERT_OK(resha_stream_buffer(out, 100));
        say(out, "kept, ");
        rs_fault_hook = no_space_once;
        ASSERT_EQ(resha_flush(out), -ENOSPC);
        ASSERT_EQ(resha_stream_buffered(out), 6);
        ASSERT_OK(resha_stream_buffer(out, 0));
        rs_fault_hook = no_space_once;
        ASSERT_EQ(resha_write_all(out, "new", 3, &written), -ENOSPC);
        ASSERT_EQ(written, 0);
        say(out, "new");
        expect(in, "kept, new");
        return 0;
}

enum { ROOM = 100000 };

/* Some io_uring made the next write where this one had begun, and nobody was told. */
static void write_over_the_limit(bool gathered)
{
        static char much[ROOM + 50000];
        const struct rlimit few = { .rlim_cur = ROOM, .rlim_max = RLIM_INFINITY };
        const struct iovec parts[2] = { { much, 60000 }, { much + 60000, sizeof much - 60000 } };
        FILE *made = tmpfile();
        struct rlimit before;
        STREAM(s) = NULL;
        size_t written;
        char first;
        int fd;

        ASSERT_TRUE(made);
        memset(much, 'a', ROOM);
        memset(much + ROOM, 'b', sizeof much - ROOM);
        ASSERT_OK(resha_stream_adopt(dup(fileno(made)), &s));
        ASSERT_OK(getrlimit(RLIMIT_FSIZE, &before));
        ASSERT_OK(setrlimit(RLIMIT_FSIZE, &few));
        int rc = gathered ? resha_write_vec(s, parts, 2, &written) : resha_write_all(s, much, sizeof much, &written);
        ASSERT_OK(setrlimit(RLIMIT_FSIZE, &before));
        ASSERT_EQ(rc, -EFBIG);
        ASSERT_EQ(written, ROOM);
        ASSERT_OK(resha_stream_release(s, &fd));
        s = NULL;
        ASSERT_EQ(lseek(fd, 0, SEEK_CUR), ROOM);
        ASSERT_EQ(pread(fd, &first, 1, 0), 1);
        ASSERT_EQ(first, 'a');
        close(fd);
        fclose(made);
}

TASK(what_a_file_did_not_take_is_told_of_and_what_it_took_stays)
{
        signal(SIGXFSZ, SIG_IGN);
        write_over_the_limit(false);
        write_over_the_limit(true);
        return 0;
}

enum { LINES = 2000, LINE = 50, LINES_MOST = 200000 };

struct other {
        int fd;
        atomic_bool stop;
        int lines;
};

static void fill_line(char *line, char c)
{
        memset(line, c, LINE - 1);
        line[LINE - 1] = '\n';
}

static void *write_lines(void *arg)
{
        struct other *o = arg;
        char line[LINE];

        fill_line(line, 'b');
        while (!atomic_load(&o->stop) && o->lines < LINES_MOST && write(o->fd, line, LINE) == LINE)
                o->lines++;
        return NULL;
}

/* Lines that begin with c, in the whole file. */
static int count_lines(int fd, char c)
{
        off_t size = lseek(fd, 0, SEEK_END);
        char *text = resha_malloc((size_t)size);
        int n = 0;

        ASSERT_TRUE(text);
        ASSERT_EQ(pread(fd, text, (size_t)size, 0), size);
        for (off_t at = 0; at < size; at += LINE)
                n += text[at] == c;
        resha_free(text);
        return n;
}

/* As the processes of a shell do whose output is a file. The position is theirs together. */
TASK(who_shares_an_open_file_loses_nothing)
{
        char name[] = "/dev/shm/resha-log-XXXXXX", elsewhere[] = "/tmp/resha-log-XXXXXX";
        FD(log) = mkostemp(name, O_CLOEXEC);
        struct other o = { .fd = log };
        char line[LINE];
        STREAM(s) = NULL;
        pthread_t thread;

        if (log < 0)
                o.fd = log = mkostemp(elsewhere, O_CLOEXEC);
        ASSERT_TRUE(log >= 0);
        (void)unlink(name);
        (void)unlink(elsewhere);
        ASSERT_OK(resha_stream_adopt(dup(log), &s));
        ASSERT_EQ(pthread_create(&thread, NULL, write_lines, &o), 0);
        fill_line(line, 'a');
        for (int i = 0; i < LINES; i++)
                ASSERT_OK(resha_write_all(s, line, sizeof line, NULL));
        atomic_store(&o.stop, true);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        ASSERT_EQ(count_lines(log, 'a'), LINES);
        ASSERT_EQ(count_lines(log, 'b'), o.lines);
        return 0;
}

static int read_the_file(void *arg)
{
        char c;
        ssize_t n;

        while ((n = resha_read(arg, &c, 1)) > 0)
                ;
        return (int)n;
}

/* A reader that never waits would make the loop deaf. */
TASK(a_reader_that_never_waits_lets_others_run)
{
        FD(fd) = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        STREAM(s) = NULL;

        ASSERT_OK(resha_stream_adopt(fd, &s));
        fd = -1;
        resha_instant start = resha_now();
        ASSERT_EQ(resha_timeout(RESHA_MS(20), read_the_file, s), -ETIME);
        ASSERT_TRUE(test_ms_since(start) < 20 * 50 * test_stretch());
        return 0;
}

/* ---- what cannot be had ---- */

static void try_all(void)
{
        resha_stream *two[2], *s;
        int fds[2], fd;

        if (resha_stream_pair(two) == 0) {
                resha_stream_close(two[0]);
                resha_stream_close(two[1]);
        }
        if (resha_pipe(&two[0], &two[1]) == 0) {
                resha_stream_close(two[0]);
                resha_stream_close(two[1]);
        }
        if (resha_stream_stdio(0, &s) == 0)
                resha_stream_close(s);
        ASSERT_OK(pipe(fds));
        close(fds[1]);
        if (resha_stream_adopt(fds[0], &s) < 0)
                close(fds[0]); /* it has stayed the caller's */
        else if (resha_stream_release(s, &fd) == 0)
                close(fd);
        else
                resha_stream_close(s);
}

/* It is wrong to close it; but where the file lives on under another number, its events find no stream any more. */
TASK(a_descriptor_that_the_program_has_closed_harms_nobody)
{
        STREAM(s) = NULL;
        char buf[8];
        int pair[2];

        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        FD(other) = dup(pair[0]);
        FD(theirs) = pair[1];
        ASSERT_TRUE(other >= 0);
        ASSERT_OK(resha_stream_adopt(pair[0], &s));
        RESHA_SCOPE(soon);
        resha_timeout_begin(&soon, RESHA_MS(1));
        ASSERT_EQ(resha_scope_end(&soon, (int)resha_read(s, buf, sizeof buf)), -ETIME);
        close(pair[0]);
        resha_stream_closep(&s);
        put(theirs, "x");
        for (int i = 0; i < 3; i++)
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        return 0;
}

TASK(nothing_is_left_of_a_stream_that_could_not_begin)
{
        unsigned before = real_fds(), n = 0;

        do {
                real_fail_nth(++n, -EMFILE);
                try_all();
                ASSERT_EQ(real_fds(), before);
        } while (real_failed() != RS_SYS_COUNT);
        ASSERT_TRUE(n > 10);
        return 0;
}
