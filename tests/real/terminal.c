/* SPDX-License-Identifier: MIT */
/* Programs at a terminal: what its keys do, and its end. The terminal is a pseudo-terminal, whose keyboard and screen
 * are the test's. In between stands a shell in small: the leader of the terminal's session, which starts the program as
 * a job, gives it the terminal, and takes that back when it stops or ends, as shells do. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <resha/process.h>

#define KEY_INTERRUPT "\003"
#define KEY_QUIT "\034"
#define KEY_STOP "\032"

enum { TIME_MS = 20000 };

struct terminal {
        int keyboard;       /* the terminal's master side: also its screen */
        int slave;          /* of the description that the program has as 0, 1 and 2 */
        int command, event; /* to the shell: a letter; from it: what waitpid() told of the job */
        int note;           /* what the job says elsewhere than on the screen */
        pid_t shell;
        struct termios before;
        size_t have;
        char screen[8192];
};

/* ---- the shell ---- */

static void give_terminal(pid_t group)
{
        sigset_t ttou, before;

        sigemptyset(&ttou);
        sigaddset(&ttou, SIGTTOU);
        sigprocmask(SIG_BLOCK, &ttou, &before);
        (void)tcsetpgrp(0, group);
        sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool wants_workers;
static resha_workers *workers;

static int as_main(resha_fn *program)
{
        setenv("RESHA_BACKEND", test_backend(), 1);
        if (wants_workers)
                ASSERT_OK(resha_workers_start(&(resha_workers_opts){ .processes = 1 }, &workers));
        int status = resha_main(program, NULL);
        resha_workers_stop(workers);
        return status;
}

static pid_t start_job(resha_fn *program, bool foreground)
{
        pid_t pid = fork();

        if (pid == 0) {
                setpgid(0, 0);
                if (foreground)
                        give_terminal(getpid());
                _exit(as_main(program));
        }
        setpgid(pid, pid);
        return pid;
}

static void shell(resha_fn *program, bool foreground, int command, int event)
{
        pid_t job = start_job(program, foreground);
        int status;
        char c;

        while (waitpid(job, &status, WUNTRACED) == job) {
                give_terminal(getpgrp());
                if (write(event, &status, sizeof status) < 0 || !WIFSTOPPED(status) || read(command, &c, 1) != 1)
                        break;
                if (c == 'f')
                        give_terminal(job);
                kill(-job, SIGCONT);
        }
        _exit(0);
}

static int note_fd = -1;

static void start(struct terminal *t, resha_fn *program, bool foreground)
{
        int command[2], event[2], said[2];

        *t = (struct terminal){ .have = 0 };
        ASSERT_EQ(openpty(&t->keyboard, &t->slave, NULL, NULL, &(struct winsize){ .ws_row = 24, .ws_col = 80 }), 0);
        ASSERT_EQ(tcgetattr(t->slave, &t->before), 0);
        ASSERT_EQ(pipe(command) | pipe(event) | pipe(said), 0);
        fflush(NULL);
        t->shell = fork();
        if (t->shell == 0) {
                setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
                close(t->keyboard);
                close(command[1]);
                note_fd = said[1];
                setsid();
                ioctl(t->slave, TIOCSCTTY, 0);
                for (int fd = 0; fd < 3; fd++)
                        dup2(t->slave, fd);
                close(t->slave);
                shell(program, foreground, command[0], event[1]);
        }
        close(command[0]);
        close(event[1]);
        close(said[1]);
        t->command = command[1];
        t->event = event[0];
        t->note = said[0];
}

/* ---- the test's side ---- */

static bool readable(int fd, int ms)
{
        return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, ms) == 1;
}

/* Until it is on the screen; what was there before is forgotten. */
static void see(struct terminal *t, const char *text)
{
        char *found;

        while (!(found = strstr(t->screen, text))) {
                if (!readable(t->keyboard, TIME_MS))
                        FAIL("\"%s\" does not come, but: %s", text, t->screen);
                ssize_t n = read(t->keyboard, t->screen + t->have, sizeof t->screen - 1 - t->have);
                if (n <= 0)
                        FAIL("the terminal ends without \"%s\": %s", text, t->screen);
                t->have += (size_t)n;
                t->screen[t->have] = '\0';
        }
        found += strlen(text);
        t->have = strlen(found);
        memmove(t->screen, found, t->have + 1);
}

static void type(struct terminal *t, const char *keys)
{
        ASSERT_EQ(write(t->keyboard, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* What the shell has been told of the job: it has stopped or ended. */
static int next_event(struct terminal *t)
{
        int status = -1;

        if (!readable(t->event, TIME_MS))
                FAIL("the job goes on: %s", t->screen);
        ASSERT_EQ(read(t->event, &status, sizeof status), (ssize_t)sizeof status);
        return status;
}

static void stops_by(struct terminal *t, int sig)
{
        int status = next_event(t);

        ASSERT_TRUE(WIFSTOPPED(status));
        ASSERT_EQ(WSTOPSIG(status), sig);
}

static void exits_with(struct terminal *t, int code)
{
        int status = next_event(t);

        ASSERT_TRUE(WIFEXITED(status));
        ASSERT_EQ(WEXITSTATUS(status), code);
}

static void is_ended_by(struct terminal *t, int sig)
{
        int status = next_event(t);

        ASSERT_TRUE(WIFSIGNALED(status));
        ASSERT_EQ(WTERMSIG(status), sig);
}

/* The terminal is as it was: its settings, and the flags of the description that all its programs share. */
static void is_sane(struct terminal *t)
{
        struct termios now;

        ASSERT_EQ(tcgetattr(t->slave, &now), 0);
        ASSERT_EQ(now.c_lflag, t->before.c_lflag);
        ASSERT_EQ(now.c_iflag, t->before.c_iflag);
        ASSERT_EQ(now.c_oflag, t->before.c_oflag);
        ASSERT_EQ(fcntl(t->slave, F_GETFL) & O_NONBLOCK, 0);
}

static void done(struct terminal *t)
{
        is_sane(t);
        close(t->keyboard);
        close(t->slave);
        close(t->command);
        close(t->event);
        close(t->note);
        ASSERT_EQ(waitpid(t->shell, NULL, 0), t->shell);
}

/* ---- Ctrl-C ---- */

static void echo_back(bool *on)
{
        struct termios now;

        if (*on && tcgetattr(0, &now) == 0) {
                now.c_lflag |= ECHO;
                tcsetattr(0, TCSANOW, &now);
        }
}

/* Without echo, as where a password is asked for; it comes back on every way out. */
static int asks(void *arg)
{
        RESHA_CLEANUP(resha_stream_closep) resha_stream *in = NULL;
        RESHA_CLEANUP(echo_back) bool off = false;
        struct termios now;
        char c;

        (void)arg;
        ASSERT_EQ(tcgetattr(0, &now), 0);
        now.c_lflag &= ~(tcflag_t)ECHO;
        ASSERT_EQ(tcsetattr(0, TCSANOW, &now), 0);
        off = true;
        ASSERT_OK(resha_stream_stdio(0, &in));
        dprintf(1, "ready\n");
        ssize_t n = resha_read(in, &c, 1);
        dprintf(1, "cleaning up\n");
        return n < 0 ? (int)n : 0;
}

/* What the program has changed of the terminal is undone. */
TEST(semantics_307_ctrl_c_at_a_terminal_cancels_and_cleans_up)
{
        struct terminal t;

        start(&t, asks, true);
        see(&t, "ready");
        type(&t, KEY_INTERRUPT);
        see(&t, "cleaning up");
        exits_with(&t, 130);
        done(&t);
}

static int hangs_in_its_cleanup(void *arg)
{
        int rc = resha_sleep(RESHA_S(100));

        (void)arg;
        dprintf(1, "cleaning up\n");
        sleep(30); /* holds the loop, too */
        return rc;
}

static int sleeps(void *arg)
{
        dprintf(1, "ready\n");
        return hangs_in_its_cleanup(arg);
}

/* Also while the loop is held up. */
TEST(semantics_309_ctrl_c_twice_at_a_terminal_ends_at_once)
{
        struct terminal t;

        start(&t, sleeps, true);
        see(&t, "ready");
        type(&t, KEY_INTERRUPT);
        see(&t, "cleaning up");
        type(&t, KEY_INTERRUPT);
        is_ended_by(&t, SIGINT);
        done(&t);
}

TEST(ctrl_backslash_ends_at_once)
{
        struct terminal t;

        start(&t, sleeps, true);
        see(&t, "ready");
        type(&t, KEY_QUIT);
        is_ended_by(&t, SIGQUIT);
        done(&t);
}

/* ---- stopping and going on ---- */

static int waits_beside_a_child(void *arg)
{
        RESHA_CLEANUP(resha_stream_closep) resha_stream *in = NULL;
        char line[64];

        (void)arg;
        ASSERT_OK(resha_stream_stdio(0, &in));
        dprintf(1, "ready\n");
        resha_instant begun = resha_now();
        ASSERT_OK(resha_sleep(RESHA_MS(300)));
        dprintf(1, "slept %d\n", test_ms_since(begun) >= 300);
        ssize_t n = resha_read_line(in, line, sizeof line);
        dprintf(1, "line %zd\n", n);
        return n < 0 ? (int)n : 0;
}

/* In a sleep, whose time passes meanwhile, and in a read. */
TEST(ctrl_z_stops_and_fg_goes_on)
{
        struct terminal t;

        start(&t, waits_beside_a_child, true);
        see(&t, "ready");
        type(&t, KEY_STOP);
        stops_by(&t, SIGTSTP);
        is_sane(&t);
        usleep(400000);
        ASSERT_EQ(write(t.command, "f", 1), 1);
        see(&t, "slept 1");
        type(&t, KEY_STOP);
        stops_by(&t, SIGTSTP);
        ASSERT_EQ(write(t.command, "f", 1), 1);
        usleep(20000);
        type(&t, "hello\n");
        see(&t, "line 6");
        exits_with(&t, 0);
        done(&t);
}

static int reads(void *arg)
{
        RESHA_CLEANUP(resha_stream_closep) resha_stream *in = NULL;
        char line[64];

        (void)arg;
        ASSERT_OK(resha_stream_stdio(0, &in));
        ssize_t n = resha_read_line(in, line, sizeof line);
        dprintf(1, "line %zd\n", n);
        return n < 0 ? (int)n : 0;
}

/* It stops once there is something to read, which is the shell's; in the foreground it reads on. */
TEST(a_background_job_that_reads_stops_until_it_is_in_the_foreground)
{
        struct terminal t;

        start(&t, reads, false);
        usleep(20000);
        type(&t, "hello\n");
        stops_by(&t, SIGTTIN);
        ASSERT_EQ(write(t.command, "f", 1), 1);
        see(&t, "line 6");
        exits_with(&t, 0);
        done(&t);
}

static int writes(void *arg)
{
        RESHA_CLEANUP(resha_stream_closep) resha_stream *out = NULL;
        struct termios now;

        (void)arg;
        signal(SIGTTOU, SIG_IGN);
        ASSERT_EQ(tcgetattr(0, &now), 0);
        now.c_lflag |= TOSTOP;
        ASSERT_EQ(tcsetattr(0, TCSANOW, &now), 0);
        signal(SIGTTOU, SIG_DFL);
        ASSERT_OK(resha_stream_stdio(1, &out));
        int rc = resha_write_all(out, "written\n", 8, NULL);
        now.c_lflag &= ~(tcflag_t)TOSTOP;
        ASSERT_EQ(tcsetattr(0, TCSANOW, &now), 0);
        return rc;
}

TEST(a_background_job_that_writes_stops_where_the_terminal_says_so)
{
        struct terminal t;

        start(&t, writes, false);
        stops_by(&t, SIGTTOU);
        ASSERT_EQ(write(t.command, "f", 1), 1);
        see(&t, "written");
        exits_with(&t, 0);
        done(&t);
}

/* ---- the terminal itself ---- */

static int watches_the_size(void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
        resha_signal_info info;
        struct winsize size;

        (void)arg;
        ASSERT_OK(resha_signal_open((const int[]){ SIGWINCH }, 1, &s));
        dprintf(1, "ready\n");
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        ASSERT_EQ(ioctl(0, TIOCGWINSZ, &size), 0);
        dprintf(1, "%d columns by %d\n", size.ws_col, info.code == SI_KERNEL);
        return 0;
}

TEST(a_change_of_its_size_is_a_signal)
{
        struct terminal t;

        start(&t, watches_the_size, true);
        see(&t, "ready");
        ASSERT_EQ(ioctl(t.keyboard, TIOCSWINSZ, &(struct winsize){ .ws_row = 50, .ws_col = 132 }), 0);
        see(&t, "132 columns by 1");
        exits_with(&t, 0);
        done(&t);
}

static int lives_on(void *arg)
{
        RESHA_CLEANUP(resha_signal_closep) resha_signals *s = NULL;
        RESHA_CLEANUP(resha_stream_closep) resha_stream *in = NULL;
        resha_signal_info info;
        char c;

        (void)arg;
        ASSERT_OK(resha_signal_open((const int[]){ SIGHUP }, 1, &s));
        ASSERT_OK(resha_stream_stdio(0, &in));
        dprintf(1, "ready\n");
        ssize_t n = resha_read(in, &c, 1); /* the end, or an error, but no wait */
        ASSERT_TRUE(n == 0 || n == -EIO);
        ASSERT_EQ(resha_signal_next(s, &info), 1);
        dprintf(note_fd, "hung up");
        return 0;
}

/* The window is closed: by default that is the end of its programs, unless they ask for SIGHUP. */
static void hang_up(resha_fn *program, const char *said)
{
        struct terminal t;
        char text[32] = "";

        start(&t, program, true);
        see(&t, "ready");
        close(t.slave);
        close(t.keyboard);
        ASSERT_TRUE(readable(t.note, TIME_MS)); /* a note, or its end */
        ASSERT_TRUE(read(t.note, text, sizeof text - 1) >= 0);
        ASSERT_STR(text, said);
        close(t.command);
        close(t.event);
        close(t.note);
        ASSERT_EQ(waitpid(t.shell, NULL, 0), t.shell);
}

TEST(the_end_of_the_terminal_is_sighup)
{
        hang_up(lives_on, "hung up");
        hang_up(sleeps, "");
}

/* ---- children ---- */

static int how_it_ends(void *arg)
{
        resha_exit e;
        int rc = resha_process_wait(arg, &e);

        dprintf(1, "ended by %d\n", rc == 0 && e.signalled ? e.code : -1);
        return rc;
}

/* A pipeline of the shell, which is of the same job: the key is for all of it. The loop may see the key and the
 * pipeline's end at the same time; what is complete has not been cancelled, and the next wait is. */
static int with_a_pipeline(void *arg)
{
        const char *const argv[] = { "sh", "-c", "echo ready; cat /dev/zero | sleep 100", NULL };
        RESHA_CLEANUP(resha_process_closep) resha_process *p = NULL;

        (void)arg;
        ASSERT_OK(resha_process_spawn(&(resha_process_opts){ .argv = argv }, &p));
        int rc = resha_process_wait(p, NULL);
        if (rc == 0)
                rc = resha_sleep(RESHA_S(10));
        dprintf(1, "cancelled %d\n", rc == -ECANCELED);
        if (resha_shielded(RESHA_S(10), how_it_ends, p) < 0)
                dprintf(1, "it goes on\n");
        return rc;
}

TEST(ctrl_c_is_for_children_of_the_same_job_too)
{
        struct terminal t;

        start(&t, with_a_pipeline, true);
        see(&t, "ready");
        type(&t, KEY_INTERRUPT);
        see(&t, "cancelled 1");
        see(&t, "ended by 2");
        exits_with(&t, 130);
        done(&t);
}

/* In a group of its own it does not get the key, and is ended by its owner. */
static int with_an_own_group(void *arg)
{
        const char *const argv[] = { "sh", "-c",
                                     "trap 'echo got INT; exit' INT; trap 'echo got TERM; exit' TERM; "
                                     "echo ready; while :; do sleep 0.01; done",
                                     NULL };
        RESHA_CLEANUP(resha_process_closep) resha_process *p = NULL;

        (void)arg;
        ASSERT_OK(resha_process_spawn(&(resha_process_opts){ .argv = argv, .group = true }, &p));
        return resha_process_wait(p, NULL);
}

TEST(a_child_in_a_group_of_its_own_is_ended_by_its_owner)
{
        struct terminal t;

        start(&t, with_an_own_group, true);
        see(&t, "ready");
        type(&t, KEY_INTERRUPT);
        see(&t, "got TERM");
        exits_with(&t, 130);
        done(&t);
}

/* ---- workers ---- */

static int shows_itself(void *arg)
{
        dprintf(1, "item %d\n", *(int *)arg);
        usleep(*(int *)arg == 1 ? 100000 : 1000000000);
        return 0;
}

static int map_one(void *item)
{
        int rc = resha_workers_map(workers, shows_itself, item, 1, sizeof(int), NULL);

        dprintf(1, "mapped %d\n", rc);
        return rc;
}

static int maps_shielded(__attribute__((unused)) void *arg)
{
        return resha_shielded(RESHA_S(10), map_one, &(int){ 1 });
}

static int maps_for_ever(__attribute__((unused)) void *arg)
{
        return map_one(&(int){ 2 });
}

TEST(ctrl_c_does_not_reach_workers_but_their_program)
{
        struct terminal t;

        wants_workers = true;
        start(&t, maps_shielded, true);
        see(&t, "item 1");
        type(&t, KEY_INTERRUPT);
        see(&t, "mapped 0");
        exits_with(&t, 0);
        done(&t);
}

TEST(ctrl_c_cancels_a_map_whose_worker_is_killed)
{
        struct terminal t;

        wants_workers = true;
        ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        start(&t, maps_for_ever, true);
        see(&t, "item 2");
        type(&t, KEY_INTERRUPT);
        see(&t, "mapped -125");
        exits_with(&t, 130);
        done(&t);
        ASSERT_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
}
