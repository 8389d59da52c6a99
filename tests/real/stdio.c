/* SPDX-License-Identifier: MIT */
/* Standard input and output, whatever they are: what they share with the shell stays as it is, and nothing that was
 * written is lost. Each case is a process of its own. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

/* ---- the program ---- */

/* Whether reading and writing the three block, as bits: what others who share them see. */
static unsigned blocking(void)
{
        unsigned bits = 0;

        for (int fd = 0; fd < 3; fd++) {
                int flags = fcntl(fd, F_GETFL);
                bits |= (unsigned)(flags >= 0 && !(flags & O_NONBLOCK)) << fd;
        }
        return bits;
}

static int copy_streams(resha_stream *in, resha_stream *out, unsigned before)
{
        char buf[1000];
        ssize_t n;
        int rc = resha_stream_buffer(out, 3000);

        while (rc == 0 && (n = resha_read(in, buf, sizeof buf)) != 0) {
                rc = n < 0 ? (int)n : resha_write_all(out, buf, (size_t)n, NULL);
                if (blocking() != before)
                        return resha_fail(-EBADMSG, "flags have changed");
        }
        return rc < 0 ? rc : resha_stream_finish(out);
}

/* Copies input to output. */
static int copy(void *unused)
{
        resha_stream *in RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_stream *out RESHA_CLEANUP(resha_stream_closep) = NULL;
        unsigned before = blocking();
        int rc = resha_stream_stdio(0, &in);

        (void)unused;
        if (rc == 0)
                rc = resha_stream_stdio(1, &out);
        if (rc == 0)
                rc = copy_streams(in, out, before);
        resha_stream_closep(&in);
        resha_stream_closep(&out);
        if (rc == 0 && blocking() != before)
                rc = -EBADMSG;
        return rc;
}

/* The program as a child with these as its input and output (-1: none). */
struct program {
        resha_fn *fn;
        void *arg;
        int in, out, closed[2];
        pid_t pid;
};

static void become(int fd, int number)
{
        if (fd < 0)
                close(number);
        else if (dup2(fd, number) < 0)
                _exit(99);
}

static void start(struct program *p)
{
        fflush(NULL);
        p->pid = fork();
        ASSERT_TRUE(p->pid >= 0);
        if (p->pid > 0)
                return;
        int in = p->in < 0 ? -1 : fcntl(p->in, F_DUPFD, 100), out = p->out < 0 ? -1 : fcntl(p->out, F_DUPFD, 100);
        become(in, 0);
        become(out, 1);
        close(in);
        close(out);
        for (int i = 0; i < 2; i++)
                if (p->closed[i] > 2)
                        close(p->closed[i]);
        signal(SIGPIPE, SIG_DFL);
        int rc = test_run_opts(p->fn, p->arg, &(resha_run_opts){ .backend = NULL });
        _exit(rc < 0 ? -rc : rc);
}

/* Its exit code: 0, or the number of an error. */
static int result(const struct program *p)
{
        int status = 0;

        ASSERT_EQ(waitpid(p->pid, &status, 0), p->pid);
        if (!WIFEXITED(status))
                FAIL("ended by signal %d", WTERMSIG(status));
        return WEXITSTATUS(status);
}

/* ---- what there can be ---- */

enum { SIZE = 200000 };

static char data[SIZE], got[SIZE + 1];

static void make_data(void)
{
        for (size_t i = 0; i < SIZE; i++)
                data[i] = (char)(i * 13 + i / 256);
}

static int temporary(const char *name_of)
{
        char name[64];

        snprintf(name, sizeof name, "/tmp/resha-%s-XXXXXX", name_of);
        int fd = mkostemp(name, O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        unlink(name);
        return fd;
}

/* A file, as a shell redirects it and as a here-document is. */
static int file_with_data(void)
{
        int fd = temporary("in");

        ASSERT_EQ(write(fd, data, SIZE), SIZE);
        ASSERT_EQ(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

static void expect_file(int fd, size_t size)
{
        ASSERT_EQ(pread(fd, got, sizeof got, 0), size);
        ASSERT_EQ(memcmp(got, data, size), 0);
}

static size_t read_all(int fd, size_t step)
{
        size_t n = 0;
        ssize_t one;

        while ((one = read(fd, got + n, sizeof got - n < step ? sizeof got - n : step)) > 0)
                n += (size_t)one;
        return n;
}

static void write_slowly(int fd)
{
        if (fork() != 0)
                return;
        for (size_t at = 0; at < SIZE; at += 10000) {
                if (write(fd, data + at, 10000) != 10000)
                        _exit(1);
                usleep(1000);
        }
        _exit(0);
}

TEST(files_are_copied)
{
        make_data();
        struct program p = { .fn = copy, .in = file_with_data(), .out = temporary("out") };
        start(&p);
        ASSERT_EQ(result(&p), 0);
        expect_file(p.out, SIZE);
        ASSERT_EQ(lseek(p.in, 0, SEEK_CUR), SIZE); /* the next program goes on there */
        close(p.in);
        close(p.out);
}

TEST(a_pipeline_is_copied_and_its_flags_stay)
{
        int in[2], out[2];

        make_data();
        ASSERT_OK(pipe(in));
        ASSERT_OK(pipe(out));
        struct program p = { .fn = copy, .in = in[0], .out = out[1], .closed = { in[1], out[0] } };
        start(&p);
        write_slowly(in[1]);
        close(in[1]);
        close(out[1]);
        ASSERT_EQ(read_all(out[0], 7000), SIZE);
        ASSERT_EQ(memcmp(got, data, SIZE), 0);
        ASSERT_EQ(result(&p), 0);
        ASSERT_FALSE(fcntl(in[0], F_GETFL) & O_NONBLOCK);
        ASSERT_FALSE(fcntl(out[0], F_GETFL) & O_NONBLOCK);
        wait(NULL);
        close(in[0]);
        close(out[0]);
}

/* As inetd starts a program: the socket is both. It is made non-blocking for nobody. */
TEST(a_socket_is_input_and_output)
{
        int fds[2];

        make_data();
        ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
        struct program p = { .fn = copy, .in = fds[0], .out = fds[0], .closed = { fds[1], -1 } };
        start(&p);
        write_slowly(fds[1]);
        for (size_t n = 0; n < SIZE;) {
                ssize_t one = read(fds[1], got + n, SIZE - n);
                ASSERT_TRUE(one > 0);
                n += (size_t)one;
        }
        ASSERT_EQ(memcmp(got, data, SIZE), 0);
        ASSERT_OK(shutdown(fds[1], SHUT_WR));
        ASSERT_EQ(read(fds[1], got, 1), 0); /* it has ended its side; fds[0] is open here still */
        ASSERT_EQ(result(&p), 0);
        ASSERT_FALSE(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
        wait(NULL);
        close(fds[0]);
        close(fds[1]);
}

TEST(a_terminal_is_input_and_output_and_its_flags_stay)
{
        struct termios raw;
        char name[64];
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

        make_data();
        ASSERT_OK(grantpt(master));
        ASSERT_OK(unlockpt(master));
        ASSERT_OK(ptsname_r(master, name, sizeof name));
        int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_OK(tcgetattr(slave, &raw));
        cfmakeraw(&raw);
        raw.c_lflag |= ICANON;
        raw.c_cc[VEOF] = 4;
        ASSERT_OK(tcsetattr(slave, TCSANOW, &raw));
        struct program p = { .fn = copy, .in = slave, .out = slave, .closed = { master, -1 } };
        start(&p);
        ASSERT_EQ(write(master, "one line\n\4", 10), 10);
        for (size_t n = 0; n < 9;) {
                ssize_t one = read(master, got + n, 9 - n);
                ASSERT_TRUE(one > 0);
                n += (size_t)one;
        }
        ASSERT_EQ(memcmp(got, "one line\n", 9), 0);
        ASSERT_EQ(result(&p), 0);
        ASSERT_FALSE(fcntl(slave, F_GETFL) & O_NONBLOCK);
        close(slave);
        close(master);
}

static int read_five(void *unused)
{
        resha_stream *in RESHA_CLEANUP(resha_stream_closep) = NULL;
        char buf[5];
        int rc = resha_stream_stdio(0, &in);

        (void)unused;
        if (rc == 0)
                rc = (int)resha_read_exactly(in, buf, sizeof buf);
        return rc == sizeof buf && memcmp(buf, "hello", 5) == 0 ? 0 : EPROTO;
}

/* Opened anew, it would be another terminal. */
TEST(the_side_of_a_terminal_s_emulator_is_input)
{
        struct termios raw;
        char name[64];
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);

        ASSERT_OK(grantpt(master));
        ASSERT_OK(unlockpt(master));
        ASSERT_OK(ptsname_r(master, name, sizeof name));
        int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_OK(tcgetattr(slave, &raw));
        cfmakeraw(&raw);
        ASSERT_OK(tcsetattr(slave, TCSANOW, &raw));
        ASSERT_EQ(write(slave, "hello", 5), 5);
        struct program p = { .fn = read_five, .in = master, .out = null };
        start(&p);
        ASSERT_EQ(result(&p), 0);
        ASSERT_FALSE(fcntl(master, F_GETFL) & O_NONBLOCK);
        close(slave);
        close(master);
        close(null);
}

TEST(devices_are_copied)
{
        int null = open("/dev/null", O_RDWR | O_CLOEXEC), full = open("/dev/full", O_RDWR | O_CLOEXEC);

        make_data();
        struct program nothing = { .fn = copy, .in = null, .out = temporary("out") };
        start(&nothing);
        ASSERT_EQ(result(&nothing), 0);
        expect_file(nothing.out, 0);
        struct program away = { .fn = copy, .in = file_with_data(), .out = null };
        start(&away);
        ASSERT_EQ(result(&away), 0);
        struct program no_room = { .fn = copy, .in = file_with_data(), .out = full };
        start(&no_room);
        ASSERT_EQ(result(&no_room), ENOSPC);
        close(nothing.out);
        close(away.in);
        close(no_room.in);
        close(null);
        close(full);
}

TEST(what_is_appended_to_is_appended_to)
{
        char name[] = "/tmp/resha-append-XXXXXX";
        int made = mkostemp(name, O_CLOEXEC), out = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);

        make_data();
        unlink(name);
        ASSERT_EQ(write(made, "before", 6), 6);
        struct program p = { .fn = copy, .in = file_with_data(), .out = out };
        start(&p);
        ASSERT_EQ(result(&p), 0);
        ASSERT_EQ(pread(made, got, 6, 0), 6);
        ASSERT_EQ(memcmp(got, "before", 6), 0);
        ASSERT_EQ(pread(made, got, sizeof got, 6), SIZE);
        ASSERT_EQ(memcmp(got, data, SIZE), 0);
        close(p.in);
        close(made);
        close(out);
}

TEST(a_reader_that_has_gone_is_an_error_and_no_signal)
{
        int out[2];

        make_data();
        ASSERT_OK(pipe(out));
        close(out[0]);
        struct program p = { .fn = copy, .in = file_with_data(), .out = out[1] };
        start(&p);
        ASSERT_EQ(result(&p), EPIPE);
        close(p.in);
        close(out[1]);
}

/* ---- none at all ---- */

static int without(void *arg)
{
        int fd = *(int *)arg;
        resha_stream *s = NULL, *other RESHA_CLEANUP(resha_stream_closep) = NULL;
        struct real_pair p;
        char c;

        ASSERT_EQ(resha_stream_stdio(fd, &s), -EBADF);
        ASSERT_HAS(resha_error_of(-EBADF)->text,
                   fd ? "standard output (descriptor 1) is closed" : "standard input (descriptor 0) is closed");
        ASSERT_HAS(resha_error_of(-EBADF)->text, fd ? "1>/dev/null" : "0</dev/null");
        /* What is opened meanwhile does not get its number: output would go there. */
        real_pair(&p);
        ASSERT_EQ(resha_stream_stdio(fd, &s), -EBADF);
        ASSERT_OK(resha_write_all(p.here, "x", 1, NULL));
        ASSERT_EQ(resha_read(p.there, &c, 1), 1);
        real_pair_close(&p);
        ASSERT_OK(resha_stream_stdio(fd ? 0 : 1, &other));
        return 0;
}

TEST(a_closed_descriptor_says_what_to_do)
{
        for (int fd = 0; fd < 2; fd++) {
                int null = open("/dev/null", O_RDWR | O_CLOEXEC);
                struct program p = { .fn = without, .arg = &fd, .in = fd ? null : -1, .out = fd ? -1 : null };
                start(&p);
                ASSERT_EQ(result(&p), 0);
                close(null);
        }
}

TASK(other_numbers_are_refused)
{
        resha_stream *s;

        ASSERT_EQ(resha_stream_stdio(3, &s), -EINVAL);
        ASSERT_EQ(resha_stream_stdio(-1, &s), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "resha_stream_adopt");
        return 0;
}

static int release(void *unused)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        int fd;

        (void)unused;
        ASSERT_OK(resha_stream_stdio(0, &s));
        ASSERT_EQ(resha_stream_release(s, &fd), -EOPNOTSUPP); /* it was never taken */
        ASSERT_EQ(resha_stream_shutdown(s), -EOPNOTSUPP);
        return 0;
}

TEST(standard_input_is_not_given_away)
{
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        struct program p = { .fn = release, .in = null, .out = null };

        start(&p);
        ASSERT_EQ(result(&p), 0);
        close(null);
}

/* ---- those who come after ---- */

static int read_a_few(void *unused)
{
        resha_stream *in RESHA_CLEANUP(resha_stream_closep) = NULL;
        char buf[4];
        int rc = resha_stream_stdio(0, &in);

        (void)unused;
        if (rc == 0)
                rc = (int)resha_read_exactly(in, buf, sizeof buf);
        return rc == sizeof buf && memcmp(buf, "four", 4) == 0 ? 0 : 1;
}

/* Two programs of a script read one after the other from one pipe, and the second one knows of no -EAGAIN. */
TEST(the_next_program_reads_on)
{
        int in[2], out[2];

        ASSERT_OK(pipe(in));
        ASSERT_OK(pipe(out));
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) {
                become(in[0], 0);
                become(out[1], 1);
                for (int i = 0; i < 2; i++) {
                        close(in[i]);
                        close(out[i]);
                }
                if (test_run_opts(read_a_few, NULL, &(resha_run_opts){ .backend = NULL }) != 0)
                        _exit(99);
                execlp("cat", "cat", (char *)NULL);
                _exit(98);
        }
        close(out[1]);
        ASSERT_EQ(write(in[1], "four", 4), 4);
        usleep(100000); /* cat waits */
        ASSERT_EQ(write(in[1], "rest", 4), 4);
        close(in[0]);
        close(in[1]);
        ASSERT_EQ(read_all(out[0], 100), 4);
        ASSERT_EQ(memcmp(got, "rest", 4), 0);
        int status;
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
        close(out[0]);
}

/* ---- where it cannot be opened anew ---- */

static int deny_open(enum rs_syscall call)
{
        return call == RS_SYS_OPEN ? -EACCES : 0;
}

static int while_it_is_open(void *unused)
{
        resha_stream *in;
        char c;

        (void)unused;
        rs_fault_hook = deny_open;
        ASSERT_OK(resha_stream_stdio(0, &in));
        ASSERT_EQ(blocking() & 1, 0);
        ASSERT_EQ(resha_read(in, &c, 1), 1);
        resha_stream_close(in);
        ASSERT_EQ(blocking() & 1, 1);
        return 0;
}

TEST(flags_that_had_to_be_changed_are_put_back)
{
        int in[2];

        ASSERT_OK(pipe(in));
        ASSERT_EQ(write(in[1], "x", 1), 1);
        struct program p = { .fn = while_it_is_open, .in = in[0], .out = in[1] };
        start(&p);
        ASSERT_EQ(result(&p), 0);
        ASSERT_FALSE(fcntl(in[0], F_GETFL) & O_NONBLOCK);
        close(in[0]);
        close(in[1]);
}

/* ---- several of one description ---- */

static int read_eight(void *in)
{
        char eight[8];

        return (int)resha_read(in, eight, sizeof eight);
}

/* Both are of one description, that cannot be opened anew. The one that made it non-blocking ends first. */
static int the_other_reads_on(void *unused)
{
        resha_stream *in, *out;

        (void)unused;
        ASSERT_OK(resha_stream_stdio(1, &out));
        ASSERT_OK(resha_stream_stdio(0, &in));
        resha_stream_close(out);
        ASSERT_EQ(blocking() & 1, 0);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), read_eight, in), -ETIME);
        resha_stream_close(in);
        ASSERT_EQ(blocking() & 1, 1);
        return 0;
}

TEST(flags_are_put_back_by_the_last_that_needs_them)
{
        int both = eventfd(0, EFD_CLOEXEC);
        struct program p = { .fn = the_other_reads_on, .in = both, .out = both };

        start(&p);
        ASSERT_EQ(result(&p), 0);
        ASSERT_FALSE(fcntl(both, F_GETFL) & O_NONBLOCK);
        close(both);
}
