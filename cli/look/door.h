/* SPDX-License-Identifier: MIT */
#ifndef CLI_DOOR_H
#define CLI_DOOR_H

/* The socket at which a running program tells about itself, from outside. */

#include <sys/types.h>

#include "text.h"

/* What /proc says of a process. */
struct process {
        pid_t pid, inner; /* inner: its number in its own namespace of processes */
        uid_t uid;        /* effective */
        char state;       /* as in ps: 'T' is stopped */
        char name[64];
};

/* 0, -ESRCH (or it has ended, and nobody has waited for it), or another error. A thread's number means its process. */
int process_look(pid_t pid, struct process *ret_process);

/* The folder of sockets of a user: the nth of those where it may be; false behind the last. */
bool door_folder(uid_t uid, unsigned nth, char *ret_path, size_t size);

struct door {
        int fd; /* -1: closed */
        const struct process *process;
        char *buf; /* what has come: from start to end, a line of it being looked at from `seen` on */
        size_t start, seen, end, cap;
        uint64_t bytes;     /* that came */
        int64_t patience;   /* ns without a byte after which it is given up */
        int key;            /* a descriptor that ends the wait when there is something to read; -1 */
        struct text why[1]; /* what went wrong, in one line */
};

#define DOOR(d) struct door d RESHA_CLEANUP(door_close) = { .fd = -1, .key = -1 }

/* Connects to a process and asks. EXIT_DONE, or how the command ends, with one line in `why`. `command`: what to say
 * where it says how to go on, as "tree". */
int door_open(struct door *d, const struct process *p, const char *command, const char *request);
void door_close(struct door *d);

/* The next line, without its newline, 0 behind it: valid until the next call, and the caller's to change. 1; 0: the
 * answer has ended; negative: nothing came for too long, or a line is too long, with one line in `why`; -EINTR: Ctrl-C
 * or a key came. */
int door_line(struct door *d, char **ret_line, size_t *ret_size);

/* As much as there is, at least one byte; as door_line(). For text without lines. */
int door_bytes(struct door *d, char **ret_data, size_t *ret_size);

#endif
