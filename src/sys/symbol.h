/* SPDX-License-Identifier: MIT */
#ifndef RS_SYMBOL_H
#define RS_SYMBOL_H

/* Names for return addresses. */

#include <stdbool.h>
#include <stddef.h>

/* "function+0x12 (module)", or "module+0x1234" where no name is to be had, which addr2line(1) understands. False: it
 * lies in this library, in a function that is not exported: of no use to a user. */
bool rs_symbol_format(const void *return_address, char *buf, size_t size);

#endif
