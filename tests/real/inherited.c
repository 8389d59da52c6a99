/* SPDX-License-Identifier: MIT */
/* Listeners from elsewhere: descriptors that are adopted, and those that systemd would have opened. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- as systemd does ---- */

/* Child process: the descriptors become those from 3 on; the variables for them, with NULL for none; "self" for the
 * process's own number. */
static void activate(const int *fds, int n, const char *pid, const char *count, const char *names)
{
        char self[16];

        for (int i = 0; i < n; i++)
                ASSERT_EQ(dup2(fds[i], 100 + i), 100 + i);
        for (int i = 0; i < n; i++) {
                ASSERT_EQ(dup2(100 + i, 3 + i), 3 + i);
                close(100 + i);
        }
        snprintf(self, sizeof self, "%d", (int)getpid());
        unsetenv("LISTEN_FDNAMES");
        if (pid)
                setenv("LISTEN_PID", strcmp(pid, "self") == 0 ? self : pid, 1);
        if (count)
                setenv("LISTEN_FDS", count, 1);
        if (names)
                setenv("LISTEN_FDNAMES", names, 1);
}

static uint16_t port_of(resha_listener *n)
{
        resha_addr a;

        ASSERT_OK(resha_listener_addr(n, &a));
        return resha_addr_port(&a);
}

#define PLAN(p, c, ns, f) \
        { \
                .pid = p, .count = c, .names = ns, .fn = f \
        }
struct plan {
        const char *pid, *count, *names;
        resha_fn *fn;
        uint16_t ports[2];
        int fds[8], n;
};

static int in_child(void *arg)
{
        struct plan *p = arg;

        activate(p->fds, p->n, p->pid, p->count, p->names);
        return test_run_opts(p->fn, p, NULL) < 0;
}

/* The plan's function as main task of a process that has two listeners, and after them what the plan has. */
static void run_activated(struct plan *p)
{
        struct test_child c;
        int more = p->n;

        for (int i = more - 1; i >= 0; i--)
                p->fds[i + 2] = p->fds[i];
        for (int i = 0; i < 2; i++)
                p->fds[i] = real_listen(10, &p->ports[i]);
        p->n = more + 2;
        test_child(in_child, p, &c);
        for (int i = 0; i < p->n; i++)
                close(p->fds[i]);
        if (c.status != 0)
                FAIL("status %d: %s", c.status, c.text);
}

static int takes_all_in_order(void *arg)
{
        struct plan *p = arg;
        resha_listener *n[2], *none;

        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(resha_listener_inherited(NULL, &n[i]), 1);
                ASSERT_EQ(port_of(n[i]), p->ports[i]);
                ASSERT_EQ(fcntl(3 + i, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        }
        ASSERT_EQ(resha_listener_inherited(NULL, &none), 0);
        resha_listener_close(n[0]);
        ASSERT_EQ(resha_listener_inherited(NULL, &none), 0); /* each only once */

        int client = real_connect(p->ports[1]);
        resha_stream *s;
        ASSERT_EQ(resha_accept(n[1], &s), 1);
        resha_stream_close(s);
        close(client);
        resha_listener_close(n[1]);
        return 0;
}

TEST(inherited_listeners_are_taken_in_order_and_once)
{
        struct plan p = PLAN("self", "2", NULL, takes_all_in_order);

        run_activated(&p);
}

static int takes_by_name(void *arg)
{
        struct plan *p = arg;
        resha_listener *n, *m, *none;

        ASSERT_EQ(resha_listener_inherited("http", &n), 1);
        ASSERT_EQ(port_of(n), p->ports[1]);
        ASSERT_EQ(resha_listener_inherited("http", &none), 0);
        ASSERT_EQ(resha_listener_inherited("htt", &none), 0);
        ASSERT_EQ(fcntl(3, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC); /* that nobody has taken yet */
        ASSERT_EQ(resha_listener_inherited(NULL, &m), 1);
        ASSERT_EQ(port_of(m), p->ports[0]);
        resha_listener_close(n);
        resha_listener_close(m);
        return 0;
}

TEST(inherited_listeners_are_taken_by_name)
{
        struct plan p = PLAN("self", "2", "https:http", takes_by_name);

        run_activated(&p);
}

static int there_are_none(__attribute__((unused)) void *arg)
{
        resha_listener *none;

        ASSERT_EQ(resha_listener_inherited(NULL, &none), 0);
        ASSERT_EQ(fcntl(3, F_GETFD) & FD_CLOEXEC, 0); /* not touched */
        return 0;
}

TEST(listeners_for_another_process_are_not_ours)
{
        static struct plan plans[] = {
                PLAN(NULL, NULL, NULL, there_are_none),   PLAN("1", "2", NULL, there_are_none),
                PLAN("self", NULL, NULL, there_are_none), PLAN(NULL, "2", NULL, there_are_none),
                PLAN("self", "0", "", there_are_none),
        };

        unsetenv("LISTEN_PID");
        unsetenv("LISTEN_FDS");
        for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
                run_activated(&plans[i]);
}

static int is_nonsense(__attribute__((unused)) void *arg)
{
        resha_listener *none;

        ASSERT_EQ(resha_listener_inherited(NULL, &none), -EINVAL);
        puts(resha_error_of(-EINVAL)->text);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "inherited listeners: LISTEN_");
        return 0;
}

TEST(an_environment_that_says_nonsense_is_one_clear_error)
{
        static struct plan plans[] = {
                PLAN("x", "2", NULL, is_nonsense),     PLAN("self", "", NULL, is_nonsense),
                PLAN("self", "-1", NULL, is_nonsense), PLAN("self", "99999999999999999999", NULL, is_nonsense),
                PLAN("self", "2", "a", is_nonsense),   PLAN("self", "2", "a:b:c", is_nonsense),
        };

        for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
                run_activated(&plans[i]);
}

static int refuses_the_others(__attribute__((unused)) void *arg)
{
        resha_listener *n;

        ASSERT_EQ(resha_listener_inherited("datagrams", &n), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "descriptor 5 is no listener: it is a socket for datagrams");
        ASSERT_EQ(resha_listener_inherited("connection", &n), -EINVAL);
        ASSERT_HAS(resha_error_of(-EINVAL)->text, "descriptor 6 is no listener: it is a connection");
        ASSERT_EQ(fcntl(6, F_GETFL) & O_NONBLOCK, 0); /* as it was */
        ASSERT_EQ(resha_listener_inherited("file", &n), -ENOTSOCK);
        ASSERT_HAS(resha_error_of(-ENOTSOCK)->text, "descriptor 7 ");
        ASSERT_EQ(resha_listener_inherited("two", &n), 1);
        resha_listener_close(n);
        return 0;
}

TEST(inherited_descriptors_that_are_no_listeners_are_refused_with_their_number)
{
        struct plan p = PLAN("self", "5", "one:two:datagrams:connection:file", refuses_the_others);
        uint16_t port;
        int listener = real_listen(5, &port);

        p.fds[p.n++] = socket(AF_INET, SOCK_DGRAM, 0);
        p.fds[p.n++] = real_connect(port);
        p.fds[p.n++] = open("/dev/null", O_RDONLY);
        run_activated(&p);
        close(listener);
}

/* ---- adopted ---- */

TASK(a_descriptor_that_does_not_listen_is_refused)
{
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ends[2];
        resha_listener *n;

        ASSERT_EQ(resha_listener_adopt(fd, &n), -EINVAL);
        ASSERT_EQ(pipe(ends), 0);
        ASSERT_EQ(resha_listener_adopt(ends[0], &n), -ENOTSOCK);
        ASSERT_EQ(resha_listener_adopt(1234, &n), -EBADF);
        close(ends[0]);
        close(ends[1]);
        close(fd);
        return 0;
}

TASK(an_adopted_unix_listener_leaves_its_file)
{
        char folder[] = "/tmp/resha-adopt-XXXXXX";
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        resha_listener *n;
        struct stat st;

        ASSERT_TRUE(mkdtemp(folder));
        snprintf(a.sun_path, sizeof a.sun_path, "%s/x", folder);
        ASSERT_EQ(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
        ASSERT_EQ(listen(fd, 5), 0);
        ASSERT_OK(resha_listener_adopt(fd, &n));
        ASSERT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        ASSERT_EQ(resha_listener_adopt(fd, &n), -EBUSY);
        resha_listener_close(n);
        ASSERT_EQ(stat(a.sun_path, &st), 0);
        unlink(a.sun_path);
        rmdir(folder);
        return 0;
}

/* ---- one listener, several loops ---- */

enum { LOOPS = 2, CLIENTS = 200 };

struct share {
        int fd;
        unsigned served;
        resha_listener *listener;
};

static int take(resha_stream *s, void *arg)
{
        struct share *w = arg;
        char c;

        w->served++;
        ASSERT_EQ(resha_read(s, &c, 1), 1);
        if (c == 'q')
                resha_listener_shutdown(w->listener);
        return resha_write_all(s, &c, 1, NULL);
}

static int serve_share(void *arg)
{
        struct share *w = arg;

        ASSERT_OK(resha_listener_adopt(w->fd, &w->listener));
        int rc = resha_serve(w->listener, take, w, &(resha_serve_opts){ .grace = RESHA_S(5) });
        resha_listener_close(w->listener);
        return rc;
}

static void *loop_thread(void *arg)
{
        ASSERT_EQ(test_run_opts(serve_share, arg, NULL), 0);
        return NULL;
}

static void talk(uint16_t port, char c)
{
        int fd = real_connect(port);

        ASSERT_EQ(write(fd, &c, 1), 1);
        ASSERT_EQ(read(fd, &c, 1), 1);
        close(fd);
}

/* The first loop that ends its share must not make the listener a blocking one for the others. */
TEST(several_loops_share_a_listener_and_lose_no_connection)
{
        struct share w[LOOPS] = { 0 };
        pthread_t threads[LOOPS];
        uint16_t port;
        int fd = real_listen(100, &port);

        for (int i = 0; i < LOOPS; i++) {
                w[i].fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                ASSERT_EQ(pthread_create(&threads[i], NULL, loop_thread, &w[i]), 0);
        }
        for (int i = 0; i < CLIENTS; i++)
                talk(port, 'x');
        talk(port, 'q'); /* one of them ends */
        usleep(50000);
        for (int i = 0; i < CLIENTS; i++)
                talk(port, 'x');
        talk(port, 'q');
        for (int i = 0; i < LOOPS; i++)
                ASSERT_EQ(pthread_join(threads[i], NULL), 0);
        close(fd);
        printf("%u and %u\n", w[0].served, w[1].served);
        ASSERT_EQ(w[0].served + w[1].served, 2 * CLIENTS + 2);
}
