/* SPDX-License-Identifier: MIT */
/* Listeners on Unix sockets, and what becomes of their files: a live one is never removed, a dead one is replaced, our
 * own goes when we do. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each test runs in a process and a folder of its own. */
static char folder[64];

static const char *at(const char *name)
{
        static char path[128];

        if (!folder[0]) {
                snprintf(folder, sizeof folder, "/tmp/resha-unix-XXXXXX");
                ASSERT_TRUE(mkdtemp(folder));
        }
        snprintf(path, sizeof path, "%s/%s", folder, name);
        return path;
}

static unsigned files(void)
{
        char command[128];
        unsigned n = 0;

        snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
        FILE *f = popen(command, "r");
        ASSERT_EQ(fscanf(f, "%u", &n), 1);
        pclose(f);
        return n;
}

static void clean(void)
{
        ASSERT_EQ(files(), 0);
        rmdir(folder);
}

static bool exists(const char *path)
{
        struct stat st;

        return lstat(path, &st) == 0;
}

static unsigned mode_of(const char *path)
{
        struct stat st;

        ASSERT_EQ(lstat(path, &st), 0);
        return st.st_mode & 07777;
}

static int raw_bind(const char *path, int type)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

        snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
        if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) < 0)
                FAIL("bind to %s: %s", path, strerror(errno));
        return fd;
}

static void leave_dead(const char *path)
{
        close(raw_bind(path, SOCK_STREAM));
}

static int raw_connect(const char *path)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
                return fd;
        int rc = -errno;
        close(fd);
        return rc;
}

/* That somebody who connects there talks to n. */
static void assert_answers(resha_listener *n, const char *path)
{
        int fd = raw_connect(path);
        resha_stream *s;
        char c = 'x';

        ASSERT_TRUE(fd >= 0);
        ASSERT_EQ(resha_accept(n, &s), 1);
        ASSERT_EQ(write(fd, &c, 1), 1);
        ASSERT_EQ(resha_read(s, &c, 1), 1);
        ASSERT_OK(resha_write_all(s, "y", 1, NULL));
        ASSERT_EQ(read(fd, &c, 1), 1);
        ASSERT_EQ(c, 'y');
        close(fd);
        resha_stream_close(s);
}

/* ---- our own ---- */

TASK(a_server_at_a_path_answers_there_and_its_file_goes_with_it)
{
        char text[RESHA_ADDR_TEXT_MAX];
        resha_listener *n;
        resha_addr a;

        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        ASSERT_OK(resha_listener_addr(n, &a));
        ASSERT_STR(resha_addr_format(&a, text, sizeof text), at("x"));
        assert_answers(n, at("x"));
        resha_listener_shutdown(n);
        ASSERT_FALSE(exists(at("x")));
        resha_listener_close(n);
        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        resha_listener_close(n);
        clean();
        return 0;
}

/* semantics 267 better
 * asyncio: a server on a Unix socket removes its file at the end, unless somebody replaced it.
 * resha: so does a listener, at its shutdown; and when it begins it replaces the file of a server that is no more, but
 * never that of one that is there. */
TASK(semantics_267_file_that_somebody_replaced_is_not_removed)
{
        resha_listener *n, *other;

        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        ASSERT_EQ(unlink(at("x")), 0);
        ASSERT_OK(resha_unix_listen(at("x"), NULL, &other));
        resha_listener_close(n);
        ASSERT_TRUE(exists(at("x")));
        assert_answers(other, at("x"));
        resha_listener_close(other);
        ASSERT_FALSE(exists(at("x")));
        clean();
        return 0;
}

TASK(the_mode_is_exact_whatever_the_umask_says)
{
        static const unsigned modes[] = { 0600, 0660, 0666, 0777 };
        mode_t before = umask(077);
        resha_listener *n;

        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
                ASSERT_OK(resha_unix_listen(at("x"), &(resha_listen_opts){ .mode = modes[i] }, &n));
                ASSERT_EQ(mode_of(at("x")), modes[i]);
                resha_listener_close(n);
        }
        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        ASSERT_EQ(mode_of(at("x")), 0700);
        resha_listener_close(n);
        umask(before);
        clean();
        return 0;
}

static unsigned early_mode;

/* What others may do with it between bind(2) and the end. */
static int look_at_chmod(enum rs_syscall call)
{
        if (call == RS_SYS_LISTEN || call == RS_SYS_CHMOD)
                if (exists(at("x")))
                        early_mode |= mode_of(at("x"));
        return 0;
}

TASK(the_file_is_never_more_open_than_it_should_be)
{
        mode_t before = umask(0);
        resha_listener *n;

        rs_fault_hook = look_at_chmod;
        ASSERT_OK(resha_unix_listen(at("x"), &(resha_listen_opts){ .mode = 0600 }, &n));
        rs_fault_hook = NULL;
        ASSERT_EQ(early_mode, 0600);
        resha_listener_close(n);
        umask(before);
        clean();
        return 0;
}

TASK(a_relative_path_is_removed_from_another_folder)
{
        char here[PATH_MAX];
        resha_listener *n;

        ASSERT_TRUE(getcwd(here, sizeof here));
        (void)at("");
        ASSERT_EQ(chdir(folder), 0);
        leave_dead("x");
        ASSERT_OK(resha_unix_listen("x", NULL, &n));
        ASSERT_EQ(chdir(here), 0);
        ASSERT_TRUE(exists(at("x")));
        resha_listener_close(n);
        clean();
        return 0;
}

TASK(an_abstract_name_has_no_file)
{
        char name[64];
        resha_listener *n, *other;

        snprintf(name, sizeof name, "@resha-test-%d", (int)getpid());
        (void)at("");
        ASSERT_OK(resha_unix_listen(name, NULL, &n));
        ASSERT_EQ(resha_unix_listen(name, NULL, &other), -EADDRINUSE);
        resha_listener_close(n);
        ASSERT_OK(resha_unix_listen(name, NULL, &n));
        resha_listener_close(n);
        clean();
        return 0;
}

static int child_that_closes(void *arg)
{
        resha_listener_shutdown(arg);
        resha_listener_close(arg);
        return 0;
}

TASK(a_forked_child_removes_nothing)
{
        struct test_child c;
        resha_listener *n;

        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        test_child(child_that_closes, n, &c);
        ASSERT_EQ(c.status, 0);
        assert_answers(n, at("x"));
        resha_listener_close(n);
        clean();
        return 0;
}

/* ---- others ---- */

TASK(a_live_server_is_left_alone)
{
        resha_listener *n, *other;

        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        ASSERT_EQ(resha_unix_listen(at("x"), NULL, &other), -EADDRINUSE);
        ASSERT_HAS(resha_error_of(-EADDRINUSE)->text, "/x: a server is there already");
        assert_answers(n, at("x")); /* the question was no connection */
        resha_listener_close(n);
        clean();
        return 0;
}

TASK(a_socket_of_any_kind_is_live_while_it_is_open)
{
        static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
        resha_listener *n;

        for (size_t i = 0; i < 3; i++) {
                int fd = raw_bind(at("x"), types[i]); /* it does not even listen yet */
                ASSERT_EQ(resha_unix_listen(at("x"), NULL, &n), -EADDRINUSE);
                ASSERT_TRUE(exists(at("x")));
                close(fd);
                ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
                assert_answers(n, at("x"));
                resha_listener_close(n);
        }
        clean();
        return 0;
}

TASK(a_full_server_is_live)
{
        resha_listener *n;
        int fd = raw_bind(at("x"), SOCK_STREAM), client;

        ASSERT_EQ(listen(fd, 0), 0);
        client = raw_connect(at("x"));
        ASSERT_EQ(resha_unix_listen(at("x"), NULL, &n), -EADDRINUSE);
        ASSERT_TRUE(exists(at("x")));
        close(client);
        close(fd);
        unlink(at("x"));
        clean();
        return 0;
}

TASK(what_is_no_socket_is_left_alone)
{
        resha_listener *n;

        close(open(at("file"), O_CREAT | O_WRONLY, 0600));
        ASSERT_EQ(resha_unix_listen(at("file"), NULL, &n), -ENOTSOCK);
        ASSERT_HAS(resha_error_of(-ENOTSOCK)->text, "/file: there is a file of that name that is not a socket");
        ASSERT_EQ(mkdir(at("folder"), 0700), 0);
        ASSERT_EQ(resha_unix_listen(at("folder"), NULL, &n), -ENOTSOCK);
        ASSERT_HAS(resha_error_of(-ENOTSOCK)->text, "/folder: there is a folder of that name");
        leave_dead(at("dead"));
        ASSERT_EQ(symlink("dead", at("link")), 0);
        ASSERT_EQ(resha_unix_listen(at("link"), NULL, &n), -ENOTSOCK);
        ASSERT_EQ(files(), 4);
        unlink(at("link"));
        unlink(at("dead"));
        rmdir(at("folder"));
        unlink(at("file"));
        clean();
        return 0;
}

TASK(paths_that_cannot_be_are_told_with_their_reason)
{
        char path[128];
        resha_listener *n;

        memset(path, 'x', sizeof path);
        path[108] = '\0';
        ASSERT_EQ(resha_unix_listen(path, NULL, &n), -ENAMETOOLONG);
        ASSERT_EQ(resha_unix_listen("", NULL, &n), -EINVAL);
        ASSERT_EQ(resha_unix_listen(at("no/such"), NULL, &n), -ENOENT);
        ASSERT_EQ(resha_unix_listen(at("x"), &(resha_listen_opts){ .mode = 010000 }, &n), -EINVAL);
        ASSERT_EQ(resha_unix_listen(at("x"), &(resha_listen_opts){ .reuse_port = true }, &n), -EINVAL);
        clean();
        return 0;
}

/* Between the look and the removal another program does what it should not. */
static int replaces(enum rs_syscall call)
{
        if (call != RS_SYS_RENAME)
                return 0;
        rs_fault_hook = NULL;
        unlink(at("x"));
        ASSERT_EQ(listen(raw_bind(at("x"), SOCK_STREAM), 5), 0);
        return 0;
}

TASK(a_server_that_begins_between_the_look_and_the_removal_keeps_its_file)
{
        resha_listener *n;
        unsigned fds = real_fds();

        leave_dead(at("x"));
        rs_fault_hook = replaces;
        ASSERT_EQ(resha_unix_listen(at("x"), NULL, &n), -EADDRINUSE);
        ASSERT_HAS(resha_error_of(-EADDRINUSE)->text, "another server began to listen there just now");
        ASSERT_EQ(files(), 1);
        close(raw_connect(at("x")));
        ASSERT_EQ(real_fds(), fds + 1);
        for (int fd = 3; fd < 64; fd++) { /* the other server's */
                struct sockaddr_un a;
                socklen_t size = sizeof a;
                if (getsockname(fd, (struct sockaddr *)&a, &size) == 0 && a.sun_family == AF_UNIX && size > 2 &&
                    strcmp(a.sun_path, at("x")) == 0)
                        close(fd);
        }
        unlink(at("x"));
        clean();
        return 0;
}

static int goes_away(enum rs_syscall call)
{
        if (call != RS_SYS_CONNECT)
                return 0;
        rs_fault_hook = NULL;
        unlink(at("x"));
        return 0;
}

TASK(a_file_that_goes_while_it_is_looked_at_is_no_server)
{
        resha_listener *n;

        leave_dead(at("x"));
        rs_fault_hook = goes_away;
        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        ASSERT_PTR((void *)rs_fault_hook, NULL);
        resha_listener_close(n);
        clean();
        return 0;
}

static bool locked_at_the_rename;

static int try_to_lock(enum rs_syscall call)
{
        if (call == RS_SYS_RENAME && !locked_at_the_rename) {
                int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                locked_at_the_rename = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
                close(fd);
        }
        return 0;
}

TASK(the_folder_is_locked_while_a_dead_file_is_removed)
{
        resha_listener *n;

        leave_dead(at("x"));
        rs_fault_hook = try_to_lock;
        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        rs_fault_hook = NULL;
        ASSERT_TRUE(locked_at_the_rename);
        resha_listener_close(n);
        clean();
        return 0;
}

TASK(a_folder_that_somebody_has_locked_is_no_obstacle)
{
        resha_listener *n;

        leave_dead(at("x"));
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_EQ(flock(fd, LOCK_EX), 0);
        ASSERT_OK(resha_unix_listen(at("x"), NULL, &n));
        resha_listener_close(n);
        close(fd);
        clean();
        return 0;
}

/* ---- at once ---- */

enum { STARTERS = 6, ROUNDS = 40 };

static struct {
        int go[2], told[2], end[2];
} race;

static int listen_once(void *arg)
{
        resha_listener *n = NULL;
        int rc = resha_unix_listen(arg, NULL, &n);
        char c;

        ASSERT_TRUE(write(race.told[1], &rc, sizeof rc) == sizeof rc);
        (void)!read(race.end[0], &c, 1); /* all others have been told by then */
        if (n)
                _exit(0); /* it dies, and leaves its file */
        return 0;
}

static void starter(const char *path)
{
        char c;

        close(race.go[1]);
        close(race.end[1]);
        (void)!read(race.go[0], &c, 1);
        _exit(resha_run(listen_once, (void *)(uintptr_t)path, NULL) < 0);
}

static unsigned one_race(const char *path)
{
        unsigned winners = 0;

        if (pipe(race.go) < 0 || pipe(race.told) < 0 || pipe(race.end) < 0)
                FAIL("pipe");
        for (int i = 0; i < STARTERS; i++)
                if (fork() == 0)
                        starter(path);
        close(race.go[1]);
        for (int i = 0; i < STARTERS; i++) {
                int rc;
                ASSERT_EQ(read(race.told[0], &rc, sizeof rc), sizeof rc);
                winners += rc == 0;
                if (rc < 0)
                        ASSERT_EQ(rc, -EADDRINUSE);
        }
        close(raw_connect(path)); /* the winner is there under its name */
        close(race.end[1]);
        while (wait(NULL) > 0)
                ;
        close(race.go[0]);
        close(race.told[0]);
        close(race.told[1]);
        close(race.end[0]);
        return winners;
}

TEST(of_many_that_replace_a_dead_one_at_once_one_listens)
{
        leave_dead(at("x"));
        for (int i = 0; i < ROUNDS; i++) {
                ASSERT_EQ(one_race(at("x")), 1);
                ASSERT_EQ(files(), 1); /* dead, and nothing beside it */
        }
        unlink(at("x"));
        clean();
}
