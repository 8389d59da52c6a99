/* SPDX-License-Identifier: MIT */
#ifndef RS_PROGRAM_H
#define RS_PROGRAM_H

/* Programs of the simulated world, for the files of this folder and for the public module <resha/test.h>. */

#include <resha/test.h>

#include "process/process.h"

enum { RS_PROGRAM_SIGNALS = 64 };

/* One descriptor of a program, or several of them: the same stream. */
struct rs_program_end {
        resha_stream *stream;
        unsigned holders; /* numbers of descriptors of all members; the last one closes it */
};

/* What is started at once: the program itself, and what it leaves behind, have this in common. */
struct rs_program {
        struct rs_programs *world;
        resha_process *process; /* NULL: its owner has let go */
        unsigned members;       /* that have not ended */
        bool group;             /* signals are for all of them */
        bool ended;             /* the first member has */
        bool told;              /* and was looked at */
        resha_exit exit;
        const char *const *argv, *const *env;
        const char *dir;                /* or NULL */
        void *block;                    /* what these three point to */
        size_t n;                       /* descriptors */
        struct rs_program_end *which[]; /* of each number; several may have the same */
};

/* One of these, with a task of its own. */
struct resha_test_process {
        struct rs_node node; /* in the world's members */
        struct rs_program *program;
        struct rs_task *task;
        resha_test_program_fn *fn;
        void *arg;
        const char *name;       /* of the program */
        struct rs_wait *waits;  /* for a signal that it keeps */
        uint64_t kept, ignored; /* bit sig - 1: what it does with signals */
        uint64_t pending;       /* kept ones that came; all that came while it was stopped */
        int signal;             /* that ends it; 0: none has come */
        bool first;             /* its status is the process's */
        bool stopped;
        bool open[]; /* which descriptors it has not closed */
};

/* What starts as `name` from now on, in the world of this loop; fn NULL: no program of that name is there. 0 or
 * -ENOMEM. */
int rs_program_set(struct rs_loop *l, const char *name, resha_test_program_fn *fn, void *arg);

/* The program of the options, as p, which is new: 1; 0: there is none of that name, and it may be a real one; negative:
 * it could not be started. [task] */
int rs_program_spawn(resha_process *p, const resha_process_opts *opts);

/* One member more, of the same program, with what m has open. */
int rs_program_fork(resha_test_process *m, resha_test_program_fn *fn, void *arg);

/* To m alone. */
void rs_program_signal(resha_test_process *m, int sig);

/* NULL: m has no such descriptor. */
resha_stream *rs_program_stream(const resha_test_process *m, int fd);
void rs_program_close(resha_test_process *m, int fd); /* [task] */

#endif
