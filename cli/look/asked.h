/* SPDX-License-Identifier: MIT */
#ifndef CLI_ASKED_H
#define CLI_ASKED_H

/* The command lines of what looks into running programs: resha ps, tree, top, stack, trace, stats. */

#include "number.h"
#include "text.h"

struct asked {
        const char *command; /* "tree" */
        int pid;             /* 0: none was given */
        uint32_t loop, task; /* of stack; task 0: all; loop 0: none was named */
        bool all, handles, places, objects, json, force, help, version;
        const char *output;
        uint64_t rounds; /* of top; 0: until it is ended */
        resha_duration time;
};

/* Reads the words behind "resha COMMAND". 0, or -EINVAL with one line in *ret_problem. */
int asked_parse(struct asked *a, const char *command, int argc, char **argv, struct text *ret_problem);

/* The long name of the ith option of a command, NULL behind the last. */
const char *asked_option(const char *command, size_t i);

/* Reads them, and does what needs no process: says what is wrong, or --help, or --version. True: go on; else the
 * command ends with *ret_code. */
bool asked_begin(struct asked *a, const char *command, const char *help, int argc, char **argv, int *ret_code);

/* Says on stderr "resha COMMAND: " and the line. */
void asked_say(const struct asked *a, const struct text *line);

/* Writes to stdout. EXIT_DONE or EXIT_CANNOT_WRITE, said; a pipe that nobody reads any more is no failure to speak
 * of. */
int asked_write(const struct asked *a, const struct text *t);

#endif
