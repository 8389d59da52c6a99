/* SPDX-License-Identifier: MIT */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

/* An answer that is passed on as it comes. */

#include "door.h"

enum answer_form {
        ANSWER_LINES, /* JSON Lines, from type "resha" to type "end"; made safe for a terminal */
        ANSWER_TEXT,  /* lines of text, of which the last one is whole; made safe */
        ANSWER_JSON,  /* one JSON value; as it is */
};

struct question {
        const struct process *process;
        const char *command; /* of ours, to say how to go on */
        const char *request;
        int64_t takes; /* ns in which nothing need come */
        enum answer_form form;
        struct text *notes; /* if not NULL: of JSON, what it leaves out, one a line */
};

/* Asks, and writes to a descriptor what comes. EXIT_DONE, or how the command ends, with one line in `why`. */
int answer_pass(const struct question *q, int fd, struct text *why);

#endif
