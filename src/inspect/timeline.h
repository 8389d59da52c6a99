/* SPDX-License-Identifier: MIT */
#ifndef RS_TIMELINE_H
#define RS_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/ring.h"

/* Prints a picture of the run on fd: a lane for each task, what ran and waited and was cancelled between the instants
 * start and end of the loop's clock. In virtual time the same run gives the same bytes (unless fd is a terminal, whose
 * width it fits). waits: each lane says what it waited for longest. ASCII if NO_COLOR is set or the locale is not
 * UTF-8. Call it when the loop has ended. */
void rs_timeline_print(const struct rs_ring *ring, int64_t start, int64_t end, bool waits, int fd);

#endif
