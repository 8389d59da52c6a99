/* SPDX-License-Identifier: MIT */

/* What --help prints of each command that looks into programs. A test compares it with the table of options. */

#include "help.h"

#define EXITS \
        "Exit: 0 done, 2 wrong usage, 3 cannot write, 4 no such process, 5 it has no\n" \
        "  inspector, 6 it is another user's or refuses, 7 the answer was cut short,\n" \
        "  1 anything else\n"

#define GENERAL "  -h, --help, -V, --version\n"

const char help_ps[] = "Usage: resha ps                 the programs of yours that can be looked into\n"
                       "       resha ps [options] PID   the tasks of one, and what they wait for\n"
                       "\n"
                       "A program can be looked into if it was started with RESHA_INSPECT=1. Above 50\n"
                       "tasks, those that are alike are one line, with the longest time of them.\n"
                       "\n"
                       "  -a, --all                each task by itself; all sections\n"
                       "      --objects            locks, queues and pools only, with their owners\n"
                       "      --handles            what is open only, and where it was opened\n"
                       "      --places             what starts tasks only, and how much stack they used\n"
                       "      --json               JSON Lines, as the program tells it\n" GENERAL EXITS;

const char help_tree[] = "Usage: resha tree [options] PID\n"
                         "\n"
                         "Loops, their tasks in groups and scopes, what each waits for and who holds it.\n"
                         "Deadlocks, blocked loops and ignored cancels are named at the top. Of branches\n"
                         "that are alike three are drawn, and how many more there are.\n"
                         "\n"
                         "  -a, --all                all branches\n"
                         "      --json               JSON Lines, as the program tells it\n" GENERAL EXITS;

const char help_top[] = "Usage: resha top [options] PID\n"
                        "\n"
                        "Round by round: how busy each loop is and how late, and the shares of places\n"
                        "that start tasks in the time. 'q' or Ctrl-C ends it.\n"
                        "\n"
                        "  -d, --delay T            how long a round is                     [1s]\n"
                        "  -n, --rounds N           ends after N rounds\n"
                        "      --json               JSON Lines, as the program tells it\n" GENERAL EXITS;

const char help_stack[] = "Usage: resha stack [options] PID [TASK]\n"
                          "\n"
                          "The stacks of tasks, or of the one of a number, as resha ps shows it: functions\n"
                          "with file and line where the program was built with -g. Equal stacks of tasks\n"
                          "that are alike are shown once.\n"
                          "\n"
                          "  -a, --all                each task by itself\n"
                          "      --json               JSON Lines, as the program tells it\n" GENERAL EXITS;

const char help_trace[] = "Usage: resha trace [options] PID -o FILE\n"
                          "\n"
                          "What all tasks do for a while: when they run, what they wait for, who wakes\n"
                          "them. FILE can be opened at https://ui.perfetto.dev or in chrome://tracing.\n"
                          "\n"
                          "  -o, --output FILE        where to; '-' is stdout\n"
                          "  -t, --time T             how long it lasts                       [5s]\n"
                          "  -f, --force              replaces FILE if it is there\n" GENERAL EXITS;

const char help_stats[] = "Usage: resha stats PID\n"
                          "\n"
                          "Counters of loops, pools and sessions, in the text format of Prometheus.\n"
                          "\n" GENERAL EXITS;
