/* SPDX-License-Identifier: MIT */
#ifndef RS_SIGNALS_H
#define RS_SIGNALS_H

/* The signal dispatcher of the process, for src/run. All on the loop's thread. */

struct rs_loop;

/* Ctrl-C: the first SIGINT calls fn(l) on the loop, outside of tasks; the second one ends the process at once. Nothing
 * is done where SIGINT is ignored or has a handler of the program's own. 0 or negative. */
int rs_signals_sigint_install(struct rs_loop *l, void (*fn)(struct rs_loop *l));

/* The end of the run: the loop gets no more signals, and what no other loop wants goes back to its former handling. */
void rs_signals_end(struct rs_loop *l);

/* In a forked child: no loop of the parent gets a signal, and all signals are handled as before its runs. */
void rs_signals_forked(void);

#endif
