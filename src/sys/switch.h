/* SPDX-License-Identifier: MIT */
#ifndef RS_SWITCH_H
#define RS_SWITCH_H

/* The context switch, in assembly: switch_x86_64.S, switch_aarch64.S. */

#include <stddef.h>
#include <stdint.h>

/* Saves the callee-saved state on the running stack, stores its stack pointer in *save, and goes on where `to` was
 * saved. */
void rs_switch(void **save, void *to);

/* The same, but goes on by calling entry() on a fresh stack, with these control words. top: 16-aligned. entry() returns
 * where to go on when the stack is no longer needed: what was stored in a *save. */
void rs_switch_new(void **save, void *top, void *(*entry)(void), uint64_t control);

/* fn(arg) on the running stack, called, for all that an unwinder sees, by the context parked at `parked` (what was
 * stored in a *save): a backtrace in fn shows fn, rs_switch_visit, and then the parked stack, which is only read. */
size_t rs_switch_visit(void *parked, size_t (*fn)(void *arg), void *arg);

/* fn(arg) on the stack that is parked at `parked` (what was stored in a *save), below all that lies there: called by
 * the running context, which goes on with its result. */
int rs_switch_call(void *parked, int (*fn)(void *arg), void *arg);

/* The floating-point control words of now (rounding, traps), and setting them: each task has its own. */
uint64_t rs_switch_control(void);
void rs_switch_control_set(uint64_t control);

#endif
