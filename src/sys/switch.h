/* SPDX-License-Identifier: MIT */
#ifndef RS_SWITCH_H
#define RS_SWITCH_H

/* The context switch, in assembly: switch_x86_64.S, switch_aarch64.S. */

#include <stdint.h>

/* Saves the callee-saved state on the running stack, stores its stack pointer in *save, and goes on where `to` was
 * saved. */
void rs_switch(void **save, void *to);

/* A stack that begins with entry(), which must not return, when first switched to, and with these control words. top:
 * 16-aligned. Result: for rs_switch(). */
void *rs_switch_prepare(void *top, void (*entry)(void), uint64_t control);

/* The floating-point control words of now (rounding, traps), and setting them: each task has its own. */
uint64_t rs_switch_control(void);
void rs_switch_control_set(uint64_t control);

#endif
