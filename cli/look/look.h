/* SPDX-License-Identifier: MIT */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

/* Looking into running programs. Each with the words behind it; the exit status. */

int ps_main(int argc, char **argv);
int tree_main(int argc, char **argv);
int top_main(int argc, char **argv);
int stack_main(int argc, char **argv);
int trace_main(int argc, char **argv);
int stats_main(int argc, char **argv);

#endif
