/* SPDX-License-Identifier: MIT */
#ifndef RS_EVENT_H
#define RS_EVENT_H

#include "core/core.h"

/* The line of rs_wait.node where each is woken with 0 when it is set: for those who wait for something else too. */
struct rs_list *rs_event_line(resha_event *e);

#endif
