/* SPDX-License-Identifier: MIT */
/* Who may look at a process: its user and root, by a folder and a socket that are only theirs. Each test is a user of
 * its own, so that no other process has to do with its folder; so they are for root. */

#include "inspector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Nobody's, on most machines. */
enum { SOMEBODY = 641230000, OTHER = 641240000 };

static char folder[64];

static void remove_folder(void)
{
        DIR *d = lchown(folder, 0, 0) == 0 ? opendir(folder) : NULL;

        for (const struct dirent *e; d && (e = readdir(d));)
                (void)unlinkat(dirfd(d), e->d_name, 0); /* not "." and ".." */
        if (d)
                closedir(d);
        if (unlink(folder) < 0)
                (void)rmdir(folder);
}

/* A user that has nothing yet; the folder that it will have. */
static unsigned new_user(void)
{
        if (real_under_tsan())
                test_skip("TSan knows no threads in a forked child");
        if (geteuid() != 0)
                test_skip("needs root, to be other users");
        unsigned uid = SOMEBODY + (unsigned)getpid() % 9999;
        snprintf(folder, sizeof folder, "/tmp/resha-%u", uid);
        remove_folder();
        return uid;
}

static void become(unsigned uid)
{
        ASSERT_EQ(setresgid(uid, uid, uid), 0);
        ASSERT_EQ(setresuid(uid, uid, uid), 0);
}

/* ---- a program of that user ---- */

struct program {
        unsigned uid;
        int go_on[2], ready[2]; /* it goes on until go_on is closed; says "y" or "n" when it runs */
        pid_t pid;
        bool has; /* an inspector */
        char why[512];
};

static void note_report(const resha_report *r, void *arg)
{
        struct program *p = arg;

        if (r->kind == RESHA_REPORT_INSPECT)
                snprintf(p->why, sizeof p->why, "%s", r->text);
}

static int goes_on(void *arg)
{
        const struct program *p = arg;
        struct stat st;
        char path[128], said[sizeof p->why + 1];

        inspector_path(p->uid, getpid(), path, sizeof path);
        snprintf(said, sizeof said, "%c%s", lstat(path, &st) == 0 && !*p->why ? 'y' : 'n', p->why);
        ASSERT_EQ(write(p->ready[1], said, sizeof said), (ssize_t)sizeof said);
        int rc = resha_fd_wait(p->go_on[0], POLLIN);
        return rc < 0 ? rc : 0;
}

static void program_start(struct program *p, unsigned uid)
{
        char said[sizeof p->why + 1];

        *p = (struct program){ .uid = uid };
        ASSERT_EQ(pipe(p->go_on), 0);
        ASSERT_EQ(pipe(p->ready), 0);
        p->pid = fork();
        if (p->pid == 0) {
                close(p->go_on[1]);
                become(uid);
                _exit(test_run_opts(goes_on, p,
                                    &(resha_run_opts){ .inspect = true, .report = note_report, .report_arg = p }) < 0);
        }
        close(p->go_on[0]);
        close(p->ready[1]);
        ASSERT_EQ(read(p->ready[0], said, sizeof said), (ssize_t)sizeof said);
        p->has = said[0] == 'y';
        memcpy(p->why, said + 1, sizeof p->why);
}

/* The run ends well, whether it has an inspector or not. */
static void program_end(struct program *p)
{
        int status;

        close(p->go_on[1]);
        close(p->ready[0]);
        ASSERT_EQ(waitpid(p->pid, &status, 0), p->pid);
        ASSERT_EQ(status, 0);
}

/* ---- clients ---- */

/* Of a user: 0: an answer; else an errno of connect(), or 1000: it was hung up on. In a process of its own. */
static int asks_as(unsigned uid, const struct program *p)
{
        char byte;
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                if (uid)
                        become(uid);
                int fd = inspector_connect(p->uid, p->pid);
                if (fd < 0)
                        _exit(-fd);
                (void)!send(fd, "snapshot\n", 9, MSG_NOSIGNAL);
                _exit(read(fd, &byte, 1) == 1 ? 0 : 200);
        }
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_TRUE(WIFEXITED(status));
        return WEXITSTATUS(status) == 200 ? 1000 : WEXITSTATUS(status);
}

TEST(the_user_and_root_are_answered_and_nobody_else_comes_in)
{
        unsigned uid = new_user();
        struct program p;

        program_start(&p, uid);
        ASSERT_TRUE(p.has);
        ASSERT_EQ(asks_as(uid, &p), 0);
        ASSERT_EQ(asks_as(0, &p), 0);
        ASSERT_EQ(asks_as(OTHER, &p), EACCES);
        program_end(&p);
        remove_folder();
}

/* Even where somebody has opened folder and socket to all. */
TEST(another_user_who_can_connect_is_hung_up_on)
{
        unsigned uid = new_user();
        struct program p;
        char path[128];

        program_start(&p, uid);
        inspector_path(uid, p.pid, path, sizeof path);
        ASSERT_EQ(chmod(folder, 0755), 0);
        ASSERT_EQ(chmod(path, 0666), 0);
        ASSERT_EQ(asks_as(OTHER, &p), 1000);
        ASSERT_EQ(asks_as(uid, &p), 0);
        program_end(&p);
        remove_folder();
}

/* ---- folders that are not private ---- */

static void expect_refused(unsigned uid, const char *why)
{
        struct program p;

        program_start(&p, uid);
        ASSERT_FALSE(p.has);
        ASSERT_HAS(p.why, folder);
        ASSERT_HAS(p.why, why);
        program_end(&p);
}

TEST(a_symbolic_link_in_place_of_the_folder)
{
        unsigned uid = new_user();
        char target[80];

        snprintf(target, sizeof target, "%s-target", folder);
        (void)rmdir(target);
        ASSERT_EQ(mkdir(target, 0700), 0);
        ASSERT_EQ(chown(target, uid, uid), 0);
        ASSERT_EQ(symlink(target, folder), 0);
        ASSERT_EQ(lchown(folder, uid, uid), 0);
        expect_refused(uid, "symbolic link");
        ASSERT_EQ(rmdir(target), 0); /* nothing is in it */
        remove_folder();
}

TEST(a_folder_of_another_user)
{
        unsigned uid = new_user();

        ASSERT_EQ(mkdir(folder, 0700), 0);
        ASSERT_EQ(chown(folder, OTHER, OTHER), 0);
        expect_refused(uid, "another user");
        remove_folder();
}

TEST(a_folder_that_others_may_look_into)
{
        static const mode_t modes[] = { 0755, 0710, 0701, 0702, 0770, 0777, 0600, 0500, 0 };
        unsigned uid = new_user();

        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
                ASSERT_EQ(mkdir(folder, 0700), 0);
                ASSERT_EQ(chown(folder, uid, uid), 0);
                ASSERT_EQ(chmod(folder, modes[i]), 0);
                expect_refused(uid, "chmod 700");
                remove_folder();
        }
}

TEST(a_file_in_place_of_the_folder)
{
        unsigned uid = new_user();

        int fd = open(folder, O_CREAT | O_EXCL | O_WRONLY, 0700);
        ASSERT_TRUE(fd >= 0);
        ASSERT_EQ(fchown(fd, uid, uid), 0);
        close(fd);
        expect_refused(uid, "no folder");
        remove_folder();
}

/* ---- too few descriptors ---- */

static int nothing(void *arg)
{
        (void)arg;
        return 0;
}

/* Each number of descriptors from too few for a loop to enough for all: how often there were too few for the door. */
static int runs_on_few_descriptors(void *arg)
{
        struct program p = { .uid = *(unsigned *)arg };
        resha_run_opts o = { .backend = test_backend(), .inspect = true, .report = note_report, .report_arg = &p };
        int too_few = 0;

        become(p.uid);
        for (rlim_t n = 4; n < 32; n++) {
                p.why[0] = '\0';
                ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ n, 32 }), 0);
                (void)resha_run(nothing, NULL, &o);
                too_few += p.why[0] != '\0';
                if (p.why[0])
                        ASSERT_HAS(p.why, "Too many open files");
        }
        return too_few >= 2 ? 0 : 1;
}

TEST(without_descriptors_it_says_so)
{
        unsigned uid = new_user();
        struct test_child c;

        test_child(runs_on_few_descriptors, &uid, &c);
        ASSERT_STR(c.text, "");
        ASSERT_EQ(c.status, 0);
        remove_folder();
}

/* ---- what processes leave behind ---- */

static int bound(const char *name, bool listens)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(a.sun_path, sizeof a.sun_path, "%.60s/%.30s", folder, name);
        ASSERT_EQ(bind(fd, (const struct sockaddr *)&a, sizeof a), 0);
        ASSERT_EQ(chmod(a.sun_path, 0666), 0);
        if (listens)
                ASSERT_EQ(listen(fd, 1), 0);
        return fd;
}

static bool is_there(const char *name)
{
        char path[128];
        struct stat st;

        snprintf(path, sizeof path, "%.60s/%.30s", folder, name);
        return lstat(path, &st) == 0;
}

TEST(sockets_of_processes_that_are_gone_are_swept)
{
        unsigned uid = new_user();
        char alive[32];
        struct program p;

        ASSERT_EQ(mkdir(folder, 0700), 0);
        ASSERT_EQ(chown(folder, uid, uid), 0);
        snprintf(alive, sizeof alive, "%d.sock", getpid());
        int fds[] = { bound("2147483646.sock", false), bound(alive, false), bound("2147483647.sock", true),
                      bound("notes.sock", false), bound("12x.sock", false) };
        for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
                if (i != 2)
                        close(fds[i]);
        program_start(&p, uid);
        ASSERT_TRUE(p.has);
        ASSERT_FALSE(is_there("2147483646.sock"));
        ASSERT_TRUE(is_there(alive));             /* its process is there */
        ASSERT_TRUE(is_there("2147483647.sock")); /* somebody listens, wherever it is */
        ASSERT_TRUE(is_there("notes.sock"));
        ASSERT_TRUE(is_there("12x.sock"));
        program_end(&p);
        close(fds[2]);
        remove_folder();
}

/* A process that was killed leaves its socket; the next one sweeps it. */
TEST(a_killed_program)
{
        unsigned uid = new_user();
        struct program p, next;
        char name[32];
        int status;

        program_start(&p, uid);
        snprintf(name, sizeof name, "%d.sock", p.pid);
        ASSERT_TRUE(p.has);
        ASSERT_EQ(kill(p.pid, SIGKILL), 0);
        ASSERT_EQ(waitpid(p.pid, &status, 0), p.pid);
        close(p.go_on[1]);
        close(p.ready[0]);
        ASSERT_TRUE(is_there(name));
        program_start(&next, uid);
        ASSERT_TRUE(next.has);
        ASSERT_FALSE(is_there(name));
        program_end(&next);
        remove_folder();
}
