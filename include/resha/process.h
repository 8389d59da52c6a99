/* SPDX-License-Identifier: MIT */
#ifndef RESHA_PROCESS_H
#define RESHA_PROCESS_H

/* Processes of other programs: started, fed and read, waited for, ended. Guide: docs/processes.md.
 *
 *     resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
 *     const char *argv[] = { "sort", "-u", NULL };
 *     int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv, .in = RESHA_PIPE, .out = RESHA_PIPE }, &p);
 *
 * A process belongs to the block that has declared it: however that block is left, the process has ended and been
 * reaped when resha_process_close() returns. Declare it before the group whose tasks use it.
 *
 * Only its own process is ever waited for, and no signal goes to one that has been reaped. For that the kernel must
 * keep the status until it is fetched: SIGCHLD must not be ignored (SIG_IGN, SA_NOCLDWAIT), and nobody else may wait
 * for "any child" (waitpid(-1), wait()). Both are detected, and -ECHILD says so. */

#include <resha/base.h>
#include <resha/stream.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

typedef struct resha_process resha_process;

/* What the process has as its standard input, output or error. */
enum resha_stdio {
        RESHA_INHERIT,    /* what this process has; /dev/null if that is closed */
        RESHA_PIPE,       /* a pipe, whose other end is a stream here */
        RESHA_NULL,       /* /dev/null: nothing to read, and what is written is dropped */
        RESHA_DESCRIPTOR, /* in_fd, out_fd, err_fd: borrowed, and still open here afterwards */
        RESHA_TO_STDOUT,  /* of err only: where its standard output goes */
};

/* All is borrowed for the call. */
typedef struct resha_process_opts {
        /* The program and its arguments, NULL at the end. A program without a slash is looked for in the PATH of this
         * process; one with a slash is that file, from `dir` on if it is relative. */
        const char *const *argv;
        const char *const *env;     /* all of its environment, "NAME=value", NULL at the end [that of this process] */
        const char *const *add_env; /* "NAME=value" is set, "NAME" is taken away; NULL at the end [no change] */
        const char *dir;            /* its working directory [that of this process] */
        enum resha_stdio in, out, err; /* [RESHA_INHERIT] */
        int in_fd, out_fd, err_fd;     /* of RESHA_DESCRIPTOR; as blocking as they are */
        const int *fds;                /* n_fds descriptors that become its 3, 4, ...; it has no others */
        size_t n_fds;                  /* at most 1,024 */
        /* A process group of its own: signals, and the end, are for all of the group. What is left of it when the
         * process itself has ended is killed by resha_process_close(). */
        bool group;
        bool session; /* a session of its own, without a terminal; and so a group, as above */
        /* how long it may take to end from SIGTERM to SIGKILL; negative: no time, SIGKILL at once [3 s] */
        resha_duration grace;
        /* how long resha_process_communicate() goes on when the process has ended, but another one holds its pipes
         * open; negative: no time, RESHA_FOREVER: until they end [1 s] */
        resha_duration held;
        uint64_t _reserved[4];
} resha_process_opts;

/* How a process has ended. */
typedef struct resha_exit {
        bool signalled; /* a signal ended it */
        bool core;      /* that left a core file */
        int code;       /* the signal's number, or the exit status (0..255) */
} resha_exit;

/* Starts a program. This thread stands still until the program is there, which is some 0.5 ms, or longer where its file
 * comes from a slow disk. It starts with the umask, limits, credentials and priority of this process; no signal is
 * blocked, and each is handled in the default way, but that SIGHUP, SIGINT and SIGQUIT are ignored still if they are
 * here (nohup, background jobs of a shell). Descriptors that are not among the options are closed there, also those
 * that were opened here without close-on-exec.
 *
 * 0. No process is left over after a failure, and its record says what was wrong: -ENOENT (the program, the interpreter
 * or loader that its file asks for, or the directory is not there), -EACCES (not executable, or a directory may not be
 * entered), -ENOEXEC (the file is no program), -E2BIG (arguments and environment are too long), -ETXTBSY, -EBADF (a
 * descriptor of the options is not open), -EAGAIN (no more processes or threads: RLIMIT_NPROC, the pids of the control
 * group), -EMFILE, -ENFILE, -ENOMEM, -EINVAL (options), -ECHILD (SIGCHLD is ignored). Simulated: programs of
 * resha_test_program() by their names, else real ones as here. [task] cancellation point: before it starts */
RESHA_API RESHA_MUST int resha_process_spawn(const resha_process_opts *opts, resha_process **ret_process);

/* Our ends of its pipes: its standard input is written to, its standard output and error are read. They belong to the
 * process: never close them. They stay as they are when it has ended: what it has written can still be read, and a
 * process that it has started may still hold its end, so that the end is not read yet. NULL: not a pipe, or closed. All
 * [loop] */
RESHA_API resha_stream *resha_process_stdin(resha_process *p);  /* [loop] */
RESHA_API resha_stream *resha_process_stdout(resha_process *p); /* [loop] */
RESHA_API resha_stream *resha_process_stderr(resha_process *p); /* [loop] */

/* Closes our end of its standard input: it reads the end there. What is kept in the stream's buffer is dropped, as by
 * resha_stream_close(). Twice is fine. [task] not a cancellation point */
RESHA_API void resha_process_close_stdin(resha_process *p);

/* Its number, also when it has ended: for messages, not for kill(2), which may hit another one by then. [loop] */
RESHA_API int resha_process_pid(const resha_process *p);

/* Sends a signal to it, with `group` or `session` to all of its group. 0, also if it has ended in this very moment;
 * -ESRCH: it has ended and been reaped (of a group: resha_process_close() reaps, and until then the others get it);
 * -EINVAL: no such signal; -EPERM: it has other credentials. [loop] */
RESHA_API int resha_process_signal(resha_process *p, int sig);

/* Waits until it has ended; any number of tasks may, and all get the same; again later, too. It ends with the process
 * and not with its pipes: who does not read what it writes may wait for ever, because the pipe is full
 * (resha_process_communicate() reads). A cancel leaves the process as it is: its owner ends it. 0 and *ret_exit (may be
 * NULL); -ECHILD: its status is lost, see the top. [task] cancellation point */
RESHA_API RESHA_MUST int resha_process_wait(resha_process *p, resha_exit *ret_exit);

/* The same, and every status but 0 is a failure: RESHA_EPROCESS with "sort: exit status 2" or "sort: killed by signal 9
 * (SIGKILL)". [task] cancellation point */
RESHA_API RESHA_MUST int resha_process_check(resha_process *p);

/* The end of the process, for its owner. If it still runs: its standard input is closed, it gets SIGTERM, and SIGCONT
 * in case it was stopped; after the grace SIGKILL; it is reaped. Then its pipes are closed: with a process that holds
 * the other end of one, too, which does not hold up this call. Waits that are left get -EBADF. One that may not be
 * signalled, because it has taken other credentials, is left behind and reported (RESHA_REPORT_STUCK). NULL is fine.
 * What is not closed when the run ends is closed then, and reported (RESHA_REPORT_LEFT_OPEN). [task] not a cancellation
 * point */
RESHA_API void resha_process_close(resha_process *p);
RESHA_API void resha_process_closep(resha_process **p);

/* ---- all at once ---- */

/* What a process has written. All zero at the beginning; RESHA_CLEANUP(resha_output_free). */
typedef struct resha_output {
        char *data;  /* NULL: nothing; else with a 0 behind that does not count */
        size_t size; /* bytes */
        bool held;   /* it had not ended when reading was given up: another process has the pipe open, see opts.held */
        size_t _capacity;
} resha_output;

/* Frees the bytes; all zero again. [any-thread] */
RESHA_API void resha_output_free(resha_output *o);

/* What may come back of each output if `limit` is 0. */
#define RESHA_OUTPUT_LIMIT ((size_t)64 << 20)

/* Writes n bytes to its standard input and closes that, reads its standard output and error meanwhile, and waits for
 * it. What comes is put behind what is in *out and *err (NULL: it is read and dropped). A process that does not read
 * all of its input is no failure. One that it has started may hold the pipes open longer than it runs: that one is
 * waited for as long as `held` of the options says, and then what has been written by then, with all of the process
 * itself, is read and is the output (out->held says so).
 *
 * 0; -EMSGSIZE: one of the outputs has more than `limit` bytes [0: RESHA_OUTPUT_LIMIT]; -EBUSY: another task does the
 * same, or reads or writes a pipe; -EINVAL: there are bytes, and no pipe for them; what reading, writing and waiting
 * say. What has come until then is in *out and *err also after a failure or cancel, and the process goes on. Called
 * again, with the same input, it goes on where it was: what has been written is not written again. [task] cancellation
 * point */
RESHA_API RESHA_MUST int resha_process_communicate(resha_process *p, const void *input, size_t n, size_t limit,
                                                   resha_output *out, resha_output *err);

/* The whole of it: starts, communicates, waits, ends the process if one of these fails or is cancelled. Where the
 * options say RESHA_INHERIT: its standard input is a pipe with the input, or RESHA_NULL if `input` is NULL; its output
 * and error are pipes if `out` and `err` are not NULL. *ret_exit is its status; if ret_exit is NULL a status but 0 is
 * RESHA_EPROCESS, as of resha_process_check(). 0 or negative. [task] cancellation point */
RESHA_API RESHA_MUST int resha_process_run(const resha_process_opts *opts, const void *input, size_t n, size_t limit,
                                           resha_output *out, resha_output *err, resha_exit *ret_exit);

RESHA_END_DECLS
#endif
