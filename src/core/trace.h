/* SPDX-License-Identifier: MIT */
#ifndef RS_TRACE_H
#define RS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the function that begins there is a part of waiting, or of looking: what lies below it in a stack is of no
 * interest to a user. */
bool rs_trace_inside(uintptr_t function);

#endif
