/* SPDX-License-Identifier: MIT */
#ifndef RS_RESOLVE_H
#define RS_RESOLVE_H

/* In a forked child: the threads of the look-ups stayed with the parent, and with them what they were asked. */
void rs_resolve_forked(void);

#endif
