/* SPDX-License-Identifier: MIT */
/* Connections opened and closed at random, by clients and servers that do all that peers do, with cancels at random
 * moments, servers that are replaced, and times without descriptors. In the end every task has ended, no descriptor is
 * left, and none was closed twice.
 *
 *     RESHA_STORM=1000000 build/tests/real/real-storm      so many connections [20000]
 *     RESHA_STORM_SEED=7                                   their luck [1]
 *
 * A descriptor that is closed twice is mostly somebody else's by then. So close(2) is this program's: it looks whether
 * what is closed is open and not a canary, and when it has closed a number it often puts a canary there: a descriptor
 * of /dev/null that nobody knows. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        CANARIES = 64,
        NUMBERS = 4096,
        WORKERS = 48,
        LONG = 3000, /* bytes of a message, at most */
};

static uint64_t luck = 1;

/* 0 .. below - 1 */
static unsigned roll(unsigned below)
{
        luck ^= luck << 13;
        luck ^= luck >> 7;
        luck ^= luck << 17;
        return (unsigned)((luck >> 20) % below);
}

/* ---- close(2) ---- */

int __real_close(int fd);
int __wrap_close(int fd);

static struct {
        bool on;
        bool is_canary[NUMBERS];
        int fds[CANARIES]; /* the oldest goes first; 0: none */
        unsigned next;
        unsigned closes, planted;
} canary;

/* It is what it was, and goes. */
static void release_canary(int fd)
{
        struct stat st, null;

        if (fd == 0)
                return;
        if (fstat(fd, &st) < 0 || stat("/dev/null", &null) < 0 || st.st_rdev != null.st_rdev)
                FAIL("descriptor %d was closed by who does not own it", fd);
        canary.is_canary[fd] = false;
        __real_close(fd);
}

static void plant_canary(void)
{
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        int *place = &canary.fds[canary.next++ % CANARIES];

        release_canary(*place);
        *place = 0;
        if (fd < 0 || fd >= NUMBERS) {
                if (fd >= 0)
                        __real_close(fd);
                return;
        }
        *place = fd;
        canary.is_canary[fd] = true;
        canary.planted++;
}

int __wrap_close(int fd)
{
        if (!canary.on)
                return __real_close(fd);
        canary.closes++;
        if (fcntl(fd, F_GETFD) < 0)
                FAIL("descriptor %d is closed, and is not open", fd);
        if (fd < NUMBERS && canary.is_canary[fd])
                FAIL("descriptor %d is closed by who does not own it", fd);
        int rc = __real_close(fd);
        if (roll(4) == 0)
                plant_canary();
        return rc;
}

/* ---- the world ---- */

struct storm {
        resha_listener *listener; /* NULL: there is none just now */
        resha_addr addr;
        unsigned left, done, cancelled, failed, handled, servers;
        unsigned serial; /* of the Unix name */
        struct rlimit plenty;
        unsigned pinches;
        int code;
        bool over;
};

static int say(resha_stream *s, size_t size)
{
        char data[LONG];

        memset(data, 'x', size);
        return resha_write_all(s, data, size, NULL);
}

static int read_all(resha_stream *s)
{
        char data[LONG];
        ssize_t n;

        while ((n = resha_read(s, data, 1 + roll(LONG))) > 0)
                ;
        return (int)n;
}

static int echo(resha_stream *s, unsigned times)
{
        char data[LONG];
        ssize_t n = 1;

        while (times-- > 0 && (n = resha_read(s, data, sizeof data)) > 0) {
                int rc = resha_write_all(s, data, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return n < 0 ? (int)n : 0;
}

static int handler(resha_stream *s, void *arg)
{
        struct storm *w = arg;

        w->handled++;
        switch (roll(7)) {
        case 0: return 0;
        case 1: return resha_fail(-EIO, "the handler has no luck");
        case 2: return say(s, 1 + roll(LONG));
        case 3: return resha_sleep(RESHA_US(roll(2000)));
        case 4: resha_stream_abort(s); return 0;
        case 5: return echo(s, 1);
        default: return echo(s, UINT32_MAX);
        }
}

static int talk(resha_stream *s)
{
        int rc = 0;

        switch (roll(6)) {
        case 0: return 0;
        case 1: resha_stream_abort(s); return 0;
        case 2: return resha_sleep(RESHA_US(roll(2000)));
        case 3: return say(s, 1 + roll(LONG));
        case 4: rc = read_all(s); break;
        default: rc = say(s, 1 + roll(LONG));
        }
        if (rc == 0)
                rc = resha_stream_shutdown(s);
        return rc < 0 ? rc : read_all(s);
}

/* One connection; what it may fail with is that the other side has done something. */
static int client(void *arg)
{
        struct storm *w = arg;
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_addr addr = w->addr;
        int rc = resha_connect(&addr, NULL, &s);

        if (rc < 0)
                return rc;
        return talk(s);
}

static void count(struct storm *w, int rc)
{
        switch (rc) {
        case -ECANCELED: w->cancelled++; break;
        case -ECONNREFUSED:
        case -ECONNRESET:
        case -EPIPE:
        case -ENOTCONN:
        case -EMFILE:
        case -EADDRNOTAVAIL:
        case -ECONNABORTED:
        case -ENOENT: w->failed++; break; /* there is no server just now, no descriptor, no port */
        default:
                if (rc < 0)
                        FAIL("a client ends with %d: %s", rc, resha_error_of(rc)->text);
                w->done++;
        }
}

/* Cancelled at once, or within a millisecond; perhaps it has ended by then. */
static int cancelled_client(struct storm *w)
{
        resha_task task = { 0 };
        int result = 0;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn_task(&g, client, w, &task);
        if (roll(2))
                ASSERT_OK(resha_sleep(RESHA_US(roll(1000))));
        resha_task_cancel(&task);
        ASSERT_OK(resha_task_wait(&task, &result));
        (void)!resha_group_end(&g, 0);
        return result;
}

static int worker(void *arg)
{
        struct storm *w = arg;

        while (w->left > 0) {
                w->left--;
                int rc = roll(4) == 0 ? cancelled_client(w) : resha_timeout(RESHA_S(60), client, w);
                count(w, rc);
                if (rc == -ECONNREFUSED || rc == -EMFILE || rc == -ENOENT || rc == -EADDRNOTAVAIL)
                        ASSERT_OK(resha_sleep(RESHA_MS(1)));
        }
        return 0;
}

/* ---- servers, one after the other ---- */

static int open_listener(struct storm *w)
{
        char name[64];

        if (roll(2) == 0) {
                snprintf(name, sizeof name, "@resha-storm-%d-%u", (int)getpid(), w->serial++);
                ASSERT_OK(resha_addr_unix(name, &w->addr));
        } else {
                ASSERT_OK(resha_addr_parse("127.0.0.1", 0, &w->addr));
        }
        int rc = resha_listen(&w->addr, NULL, &w->listener);
        return rc < 0 ? rc : resha_listener_addr(w->listener, &w->addr);
}

static int serve(void *arg)
{
        struct storm *w = arg;
        resha_serve_opts opts = { .max_connections = 1 + roll(60),
                                  .abort_failed = roll(2),
                                  .grace = RESHA_MS(roll(2) * 20) };

        w->code = resha_serve(w->listener, handler, w, &opts);
        return 0;
}

/* Serves for a while; then it is shut down, or cancelled, or its listener closed. */
static int server(void *arg)
{
        struct storm *w = arg;

        while (!w->over) {
                resha_task task = { 0 };
                RESHA_GROUP(g);
                if (open_listener(w) < 0) { /* no descriptors, just now */
                        ASSERT_OK(resha_sleep(RESHA_MS(1)));
                        continue;
                }
                w->servers++;
                resha_group_begin(&g, NULL);
                resha_spawn_task(&g, serve, w, &task);
                for (unsigned ms = 20 + roll(200); ms > 0 && !w->over; ms--)
                        ASSERT_OK(resha_sleep(RESHA_MS(1)));
                switch (roll(3)) {
                case 0: resha_listener_shutdown(w->listener); break;
                case 1: resha_task_cancel(&task); break;
                default: resha_listener_closep(&w->listener);
                }
                ASSERT_OK(resha_group_end(&g, 0));
                ASSERT_TRUE(w->code == 0 || w->code == -ECANCELED);
                resha_listener_closep(&w->listener);
        }
        return 0;
}

/* Now and then there are hardly any descriptors left. */
static int pinch(void *arg)
{
        struct storm *w = arg;

        while (!w->over) {
                struct rlimit tight = w->plenty;
                ASSERT_OK(resha_sleep(RESHA_MS(50)));
                tight.rlim_cur = real_fds() / 2 + roll(20);
                ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
                ASSERT_OK(resha_sleep(RESHA_MS(5)));
                ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &w->plenty), 0);
                w->pinches++;
        }
        return 0;
}

static int clients(void *arg)
{
        struct storm *w = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < WORKERS; i++)
                resha_spawn(&g, worker, w);
        int rc = resha_group_end(&g, 0);
        w->over = true;
        return rc;
}

static int storm(void *arg)
{
        struct storm *w = arg;
        RESHA_GROUP(g);

        ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &w->plenty), 0);
        ASSERT_OK(resha_addr_parse("127.0.0.1", 1, &w->addr));
        unsigned before = real_fds();
        canary.on = true;
        resha_group_begin(&g, NULL);
        resha_spawn(&g, server, w);
        resha_spawn(&g, pinch, w);
        resha_spawn(&g, clients, w);
        int rc = resha_group_end(&g, 0);
        canary.on = false;
        for (int i = 0; i < CANARIES; i++)
                release_canary(canary.fds[i]);
        ASSERT_EQ(real_fds(), before);
        return rc;
}

static unsigned number(const char *variable, unsigned other)
{
        const char *text = getenv(variable);

        return text ? (unsigned)strtoul(text, NULL, 10) : other;
}

static void shortages_only(const resha_report *r, __attribute__((unused)) void *arg)
{
        ASSERT_EQ(r->kind, RESHA_REPORT_SHORTAGE);
}

TEST(storm_of_connections_leaves_nothing_and_closes_nothing_twice)
{
        struct storm w = { .left = number("RESHA_STORM", 20000) };
        unsigned all = w.left;

        luck = number("RESHA_STORM_SEED", 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
        ASSERT_EQ(test_run_opts(storm, &w, &(resha_run_opts){ .report = shortages_only }), 0);
        printf("%u connections: %u to their end, %u cancelled, %u failed; %u handlers of %u servers, %u times without "
               "descriptors; %u closes, %u canaries\n",
               all, w.done, w.cancelled, w.failed, w.handled, w.servers, w.pinches, canary.closes, canary.planted);
        ASSERT_EQ(w.done + w.cancelled + w.failed, all);
        ASSERT_TRUE(w.done > all / 20 && w.cancelled > all / 100 && w.servers > 2);
}

/* ---- that the canaries sing ---- */

static int closes_twice(__attribute__((unused)) void *arg)
{
        int fd = open("/dev/null", O_RDONLY);

        canary.on = true;
        for (int i = 0; i < 100; i++) {
                close(fd);
                close(fd);
                fd = open("/dev/null", O_RDONLY);
        }
        return 0;
}

TEST(a_descriptor_that_is_closed_twice_is_noticed)
{
        struct test_child c;

        test_child(closes_twice, NULL, &c);
        ASSERT_TRUE(c.status != 0);
        ASSERT_HAS(c.text, "descriptor ");
}
