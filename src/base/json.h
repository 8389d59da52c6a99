/* SPDX-License-Identifier: MIT */
#ifndef RS_JSON_H
#define RS_JSON_H

/* Lines of JSON, each one flat object whose key "type" comes first, into memory that is given. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_json {
        char *at, *end; /* where the next byte goes; the end of the room */
        char *line;     /* where the line under way began */
        bool cut;       /* it does not fit */
};

/* Room that is empty. */
void rs_json_init(struct rs_json *j, char *room, size_t size);

/* A line; between the two come its keys, which are plain names, and their values. end, false: there was no room, and
 * all is as if it had not begun. */
void rs_json_begin(struct rs_json *j, const char *type);
bool rs_json_end(struct rs_json *j);

void rs_json_text(struct rs_json *j, const char *key, const char *text); /* NULL: no such key. Bytes that are no UTF-8
                                                                          * become '?' */
void rs_json_int(struct rs_json *j, const char *key, int64_t value);
void rs_json_ints(struct rs_json *j, const char *key, const uint32_t *values, size_t n);
void rs_json_at(struct rs_json *j, const char *key, const void *address); /* "0x..."; NULL: no such key */
void rs_json_bool(struct rs_json *j, const char *key, bool value);

/* Bytes of the UTF-8 character that begins there; 0: none does. One that is too long for its number, half of a pair, or
 * beyond the last one is none. */
size_t rs_utf8_length(const unsigned char *s);

/* Bytes as they are: whoever sends the text on makes something of them. */
void rs_json_escaped(struct rs_json *j, const char *text); /* the inside of a string */
void rs_json_raw(struct rs_json *j, const void *bytes, size_t n);

#endif
