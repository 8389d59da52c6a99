/* SPDX-License-Identifier: MIT */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

enum exit_code {
        EXIT_DONE = 0,
        EXIT_SOME_FAILED = 1,
        EXIT_USAGE = 2, /* or an unreadable list */
        EXIT_CANNOT_WRITE = 3,
        EXIT_INTERRUPTED = 130,
};

/* `resha fetch`, with the words behind it. The exit status. */
int fetch_main(int argc, char **argv);

#endif
