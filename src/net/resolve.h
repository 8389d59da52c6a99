/* SPDX-License-Identifier: MIT */
#ifndef RS_RESOLVE_H
#define RS_RESOLVE_H

#include <resha/addr.h>

/* In a forked child: the threads of the look-ups stayed with the parent, and with them what they were asked. */
void rs_resolve_forked(void);

/* resha_addr_parse() without a record, for what may be a name. */
int rs_addr_parse(const char *literal, uint16_t port, resha_addr *ret_addr);

#endif
