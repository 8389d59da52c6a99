/* SPDX-License-Identifier: MIT */
#ifndef CLI_EXITS_H
#define CLI_EXITS_H

/* How the command ends: of all subcommands. The man pages list them. */

enum exit_code {
        EXIT_DONE = 0,
        EXIT_SOME_FAILED = 1, /* fetch: some URLs failed; a look inside: this program ran out of something */
        EXIT_USAGE = 2,       /* or an unreadable list */
        EXIT_CANNOT_WRITE = 3,
        EXIT_NO_PROCESS = 4,   /* there is none of that number */
        EXIT_NO_INSPECTOR = 5, /* it has none */
        EXIT_REFUSED = 6,      /* it is another user's, or answers nobody now */
        EXIT_CUT = 7,          /* the answer ended early, or makes no sense */
        EXIT_INTERRUPTED = 130,
};

#endif
