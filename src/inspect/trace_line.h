/* SPDX-License-Identifier: MIT */
#ifndef RS_TRACE_LINE_H
#define RS_TRACE_LINE_H

/* An event of a trace, as a line of JSON that is put together. What does not fit is left out: strings are cut, so that
 * does not happen. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RS_LINE_STRING = 300 /* characters of a string, at most */ };

struct rs_line {
        size_t n;
        bool args; /* they are begun */
        char text[2048];
};

/* {"ph":..,"pid":..,"tid":..,"ts":.. */
void rs_line_begin(struct rs_line *line, unsigned loop, const char *ph, uint32_t track, int64_t ts);
void rs_line_name(struct rs_line *line, const char *category, const char *name);

/* Behind all else: "args", each with its key. arg: the caller adds what it is. */
void rs_line_arg(struct rs_line *line, const char *key);
void rs_line_arg_number(struct rs_line *line, const char *key, int64_t n);
void rs_line_arg_string(struct rs_line *line, const char *key, const char *s);

void rs_line_add(struct rs_line *line, const char *s); /* as it is */
void rs_line_number(struct rs_line *line, int64_t n);
void rs_line_hex(struct rs_line *line, uint64_t n, int digits);
void rs_line_string(struct rs_line *line, const char *s); /* quoted, and made good where it is no UTF-8 */
void rs_line_time(struct rs_line *line, int64_t ns);      /* in microseconds, to the nanosecond */

#endif
