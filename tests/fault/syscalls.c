/* SPDX-License-Identifier: MIT */
/* The real kernel, with its n-th system call failing, for every n: the run ends, with success or that error, and leaves
 * nothing behind. And with its n-th call interrupted by a signal: then nothing is to be seen of it at all. */

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "sys/sys.h"
#include "test.h"

static _Atomic int64_t countdown;
static _Atomic int hit; /* the call that failed, plus 1; 0: none */
static bool interrupt;  /* with -EINTR instead of an error */
static unsigned hits[RS_SYS_COUNT];
static unsigned stuck;

/* What the kernel may say to each, apart from what would mean a bug of ours. 0: it never fails for such reasons. */
static int code_of(enum rs_syscall call)
{
        switch (call) {
        case RS_SYS_EPOLL_CREATE:
        case RS_SYS_EVENTFD:
        case RS_SYS_TIMERFD:
        case RS_SYS_SOCKETPAIR:
        case RS_SYS_PIPE:
        case RS_SYS_OPEN:
        case RS_SYS_DUP:
        case RS_SYS_SOCKET: return -EMFILE;
        case RS_SYS_ACCEPT: return -ENFILE;
        case RS_SYS_EPOLL_CTL: return -ENOSPC;
        case RS_SYS_BIND: return -EADDRINUSE;
        case RS_SYS_LISTEN: return -EADDRINUSE;
        case RS_SYS_CONNECT: return -ENETUNREACH;
        case RS_SYS_RECV: return -ECONNRESET;
        case RS_SYS_SEND: return -EPIPE;
        case RS_SYS_SHUTDOWN: return -ENOTCONN;
        case RS_SYS_GETSOCKNAME:
        case RS_SYS_GETSOCKOPT:
        case RS_SYS_SETSOCKOPT: return -ENOBUFS;
        case RS_SYS_READ:
        case RS_SYS_FSYNC:
        case RS_SYS_GETDENTS:
        case RS_SYS_SENDFILE: return -EIO;
        case RS_SYS_FCNTL:
        case RS_SYS_STATX:
        case RS_SYS_FSTAT:
        case RS_SYS_LSTAT: return -ENOMEM;
        case RS_SYS_CHMOD: return -EROFS;
        case RS_SYS_UNLINK:
        case RS_SYS_MKDIR:
        case RS_SYS_LINK:
        case RS_SYS_SYMLINK:
        case RS_SYS_READLINK:
        case RS_SYS_RENAME: return -EACCES;
        case RS_SYS_FTRUNCATE:
        case RS_SYS_FALLOCATE:
        case RS_SYS_COPY_FILE: return -ENOSPC;
        case RS_SYS_FLOCK: return -ENOLCK;
        case RS_SYS_GETCWD: return -ENOENT;
        case RS_SYS_URING_SETUP: return -EPERM;
        case RS_SYS_URING_REGISTER: return -EINVAL;
        case RS_SYS_URING_ENTER: return -EAGAIN;
        case RS_SYS_GETRANDOM: return -ENOSYS;
        case RS_SYS_SPAWN:
        case RS_SYS_THREAD: return -EAGAIN;
        case RS_SYS_ACCESS: return -EACCES;
        case RS_SYS_PIDFD: return -EMFILE;
        case RS_SYS_WAIT: return -ECHILD;
        case RS_SYS_EPOLL_WAIT:
        case RS_SYS_WRITE:
        case RS_SYS_CLOSE:
        case RS_SYS_SIGACTION:
        case RS_SYS_GETADDRINFO:
        case RS_SYS_KILL:
        case RS_SYS_COUNT: return 0;
        }
        return 0;
}

/* Threads and look-ups are no system calls that a signal could interrupt; close is over then (see sys.c). */
static bool interruptible(enum rs_syscall call)
{
        return call != RS_SYS_THREAD && call != RS_SYS_SPAWN && call != RS_SYS_GETADDRINFO && call != RS_SYS_CLOSE;
}

static int hook(enum rs_syscall call)
{
        int code = interrupt ? interruptible(call) ? -EINTR : 0 : code_of(call);

        if (code == 0 || atomic_fetch_sub(&countdown, 1) != 1)
                return 0;
        atomic_store(&hit, (int)call + 1);
        return code;
}

static void on_report(const resha_report *report, void *arg)
{
        (void)arg;
        stuck += report->kind == RESHA_REPORT_STUCK || report->kind == RESHA_REPORT_DEADLOCK;
}

static unsigned descriptors(void)
{
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        ASSERT_TRUE(d != NULL);
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

static void run_with_fault(resha_fn *fn, int64_t n)
{
        static char context[64];
        unsigned fds = descriptors();
        int64_t live = rs_alloc_live();

        snprintf(context, sizeof context, " (%s of call %lld)", interrupt ? "interruption" : "failure", (long long)n);
        test_context(context);
        atomic_store(&hit, 0);
        atomic_store(&countdown, n);
        rs_fault_hook = hook;
        int rc = resha_run(fn, NULL, &(resha_run_opts){ .backend = "epoll", .report = on_report, .threads = 2 });
        rs_fault_hook = NULL;
        int call = atomic_load(&hit) - 1;
        ASSERT_EQ(stuck, 0);
        ASSERT_EQ(descriptors(), fds);
        ASSERT_EQ(rs_alloc_live() - live, 0);
        if (rc < 0 && (call < 0 || interrupt))
                FAIL("the run ended with %d (%s)", rc, resha_strerror(rc));
        if (call >= 0)
                hits[call]++;
}

/* All n until a run is over before its n-th call, three times: what runs on threads makes the number vary. */
static void run_with_all_faults(resha_fn *fn)
{
        rs_alloc_watch(true);
        for (int mode = 0; mode < 2; mode++) {
                unsigned missed = 0;
                interrupt = mode == 1;
                for (int64_t n = 1; missed < 3 && n < 1000; n++) {
                        run_with_fault(fn, n);
                        missed += atomic_load(&hit) == 0;
                }
                ASSERT_EQ(missed, 3);
        }
        test_context("");
}

/* ---- what runs ---- */

static int job(void *arg)
{
        (void)arg;
        usleep(100);
        return 0;
}

static int jobs_and_sleeps(void *arg)
{
        int rc = resha_sleep(RESHA_US(200));

        (void)arg;
        if (rc == 0)
                rc = resha_pool_run(NULL, job, NULL, NULL);
        return rc;
}

static int local_main(void *arg)
{
        static char items[4];

        (void)arg;
        return resha_gather(jobs_and_sleeps, items, 4, 1, NULL);
}

TEST(fault_syscalls_of_threads_and_timers)
{
        run_with_all_faults(local_main);
}

static int feed(void *arg)
{
        int rc = resha_sleep(RESHA_US(300));

        return rc < 0 ? rc : write(((int *)arg)[1], "x", 1) == 1 ? 0 : -EIO;
}

static void close_both(int (*fd)[2])
{
        close((*fd)[0]);
        close((*fd)[1]);
}

static int foreign_main(void *arg)
{
        int fd[2] __attribute__((cleanup(close_both)));

        (void)arg;
        if (pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, feed, fd);
        int rc = resha_fd_wait(fd[0], POLLIN);
        return resha_group_end(&g, rc < 0 ? rc : 0);
}

TEST(fault_syscalls_of_foreign_descriptors)
{
        run_with_all_faults(foreign_main);
}

static int echo(resha_stream *s, void *arg)
{
        char buf[512];
        ssize_t n;

        (void)arg;
        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int serve(void *arg)
{
        return resha_serve(arg, echo, NULL, NULL);
}

static int talk(void *arg)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char buf[6] = "";
        int rc = resha_tcp_connect_addr(arg, &s);

        if (rc < 0 || (rc = resha_write_all(s, "hello\n", 6, NULL)) < 0 || (rc = resha_stream_shutdown(s)) < 0)
                return rc;
        ssize_t n = resha_read_exactly(s, buf, sizeof buf);
        if (n < 0)
                return (int)n;
        return n == 6 && memcmp(buf, "hello\n", 6) == 0 ? 0 : -EPROTO;
}

static int client(void *arg)
{
        return resha_timeout(RESHA_MS(300), talk, arg);
}

static int net_main(void *arg)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at[2];
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        (void)arg;
        if (rc < 0 || (rc = resha_listener_addr(l, &at[0])) < 0)
                return rc;
        at[1] = at[0];
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serve, l);
        rc = resha_gather(client, at, 2, sizeof at[0], NULL);
        return resha_group_end(&g, rc);
}

TEST(fault_syscalls_of_the_net)
{
        run_with_all_faults(net_main);
        for (int call = RS_SYS_SOCKET; call <= RS_SYS_SHUTDOWN; call++)
                ASSERT_TRUE(hits[call] > 0);
}

/* ---- a Unix socket in the place of a dead one ---- */

static char folder[] = "/tmp/resha-fault-XXXXXX";

static int unix_main(void *arg)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        resha_listener *l;

        (void)arg;
        snprintf(a.sun_path, sizeof a.sun_path, "%s/x", folder);
        int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)!bind(dead, (struct sockaddr *)&a, sizeof a); /* it is there already where the last run has left it */
        close(dead);
        int rc = resha_unix_listen(a.sun_path, &(resha_listen_opts){ .mode = 0600 }, &l);
        if (rc < 0)
                return rc;
        resha_listener_close(l);
        return 0;
}

TEST(fault_syscalls_of_unix_listeners)
{
        char path[512];

        ASSERT_TRUE(mkdtemp(folder) != NULL);
        run_with_all_faults(unix_main);
        for (int call = RS_SYS_LSTAT; call <= RS_SYS_FLOCK; call++)
                ASSERT_TRUE(hits[call] > 0);
        DIR *d = opendir(folder);
        for (const struct dirent *e; (e = readdir(d));) {
                snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
                unlink(path);
        }
        closedir(d);
        ASSERT_EQ(rmdir(folder), 0);
}

/* ---- files: each is what it was or what it was to be, and nothing is beside it ---- */

static char files_folder[] = "/tmp/resha-fault-XXXXXX";

static int use_file(const char *path)
{
        resha_file *f RESHA_CLEANUP(resha_file_closep) = NULL;
        char buf[8];
        int rc = resha_file_open(path, O_RDWR, 0, &f);
        ssize_t n = rc < 0 ? rc : resha_file_read(f, buf, sizeof buf, 0);

        if (n < 0)
                return (int)n;
        ASSERT_EQ(n, 3);
        rc = resha_file_write(f, "abc", 3, 0, NULL);
        return rc < 0 ? rc : resha_file_sync(f);
}

static int list_files(void)
{
        resha_dir *d RESHA_CLEANUP(resha_dir_closep) = NULL;
        resha_dir_entry e;
        int rc = resha_dir_open(files_folder, &d);

        while (rc >= 0 && (rc = resha_dir_next(d, &e)) > 0)
                if (e.name[0] == '.')
                        FAIL("%s was left", e.name);
        return rc;
}

static int files_main(void *arg)
{
        char a[64], b[64];
        void *data;
        int rc;

        (void)arg;
        snprintf(a, sizeof a, "%s/a", files_folder);
        snprintf(b, sizeof b, "%s/b", files_folder);
        if ((rc = resha_file_save(a, "abc", 3, NULL)) < 0 || (rc = use_file(a)) < 0 ||
            (rc = resha_file_load(a, 0, &data, NULL)) < 0)
                return rc;
        resha_free(data);
        rc = resha_file_copy(a, b, NULL, NULL);
        if (rc < 0 || (rc = list_files()) < 0)
                return rc;
        return resha_path_unlink(b);
}

TEST(fault_syscalls_of_files)
{
        char path[64];

        ASSERT_TRUE(mkdtemp(files_folder) != NULL);
        run_with_all_faults(files_main);
        ASSERT_TRUE(hits[RS_SYS_FSYNC] && hits[RS_SYS_RENAME] && hits[RS_SYS_STATX] && hits[RS_SYS_GETDENTS]);
        for (const char *name = "ab"; *name; name++) {
                snprintf(path, sizeof path, "%s/%c", files_folder, *name);
                unlink(path);
        }
        ASSERT_EQ(rmdir(files_folder), 0);
}

/* ---- processes ---- */

static int with_a_process(void)
{
        static const char *const argv[] = { "cat", NULL };
        resha_output out RESHA_CLEANUP(resha_output_free) = { 0 };
        int rc = resha_process_run(&(resha_process_opts){ .argv = argv }, "abc", 3, 0, &out, NULL, NULL);

        if (rc == 0)
                ASSERT_STR(out.data, "abc");
        return rc;
}

static int process_main(void *arg)
{
        static const char *const argv[] = { "/nowhere/at/all", NULL };
        resha_process *p = NULL;

        (void)arg;
        int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv, .err = RESHA_NULL }, &p);
        resha_process_close(p); /* where exec's failure is not known */
        return rc < 0 && rc != -ENOENT ? rc : with_a_process();
}

TEST(fault_syscalls_of_processes)
{
        run_with_all_faults(process_main);
}
