/* SPDX-License-Identifier: MIT */
#ifndef CLI_JSON_H
#define CLI_JSON_H

/* Writing JSON: strings, bytes, and whether bytes are text at all. Reading JSON is left to SQLite's functions. */

#include "text.h"

/* Whether data is UTF-8 (RFC 3629: no overlong forms, no surrogates) without a 0 byte: what JSON and an SQLite text can
 * hold. */
bool utf8_valid(const void *data, size_t size);

/* Length of the UTF-8 sequence at p, of which `left` bytes (at least one) are there; 0 if it is none. */
size_t utf8_length(const unsigned char *p, size_t left);

/* "..." with quotes and escapes. Bytes that are not UTF-8 become U+FFFD, one for each byte. */
void json_add_string(struct text *t, const char *s, size_t size);

/* Standard base64 with padding, without quotes. */
void json_add_base64(struct text *t, const void *data, size_t size);

/* ,"name":"value" or ,"name":null where value is NULL; the comma is left out right after a '{'. */
void json_field_string(struct text *t, const char *name, const char *value);
void json_field_int(struct text *t, const char *name, int64_t value);

/* ,"name": for a value that the caller adds. */
void json_field_name(struct text *t, const char *name);

#endif
