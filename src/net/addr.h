/* SPDX-License-Identifier: MIT */
#ifndef RS_NET_ADDR_H
#define RS_NET_ADDR_H

/* Addresses, for the files of this folder. */

#include <stdbool.h>

#include <resha/addr.h>

#include "base/addr.h"

/* resha_addr_parse() without a record, for what may be a name. */
int rs_addr_parse(const char *literal, uint16_t port, resha_addr *ret_addr);

/* Copies a sockaddr of at most the size of a sockaddr_storage. */
void rs_addr_set(resha_addr *ret_addr, const void *sockaddr, size_t size);

/* Those of the Unix family, see addr_unix.c. Text: what comes after a leading "unix:", if that is there. 0, -EINVAL,
 * -ENAMETOOLONG. */
int rs_addr_unix_scan(const char *text, resha_addr *ret_addr);
void rs_addr_unix_format(const resha_addr *a, char text[static RESHA_ADDR_TEXT_MAX]);
bool rs_addr_unix_path(const resha_addr *a, char path[static 109]); /* false: it has none */
bool rs_addr_unix_equal(const resha_addr *a, const resha_addr *b);
int rs_addr_unix_copy(const struct sockaddr *sa, size_t size, resha_addr *ret_addr);

#endif
