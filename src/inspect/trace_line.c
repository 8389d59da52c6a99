/* SPDX-License-Identifier: MIT */
/* Lines of a trace: numbers, strings and times as JSON has them. */

#include "inspect/trace_line.h"

#include <string.h>

#include "base/json.h"
#include "base/list.h"

/* By hand: printf() takes several times as long, and what is written too slowly is lost. */
static void bytes(struct rs_line *line, const char *s, size_t n)
{
        size_t left = sizeof line->text - line->n;

        n = n < left ? n : left;
        memcpy(line->text + line->n, s, n);
        line->n += n;
}

void rs_line_add(struct rs_line *line, const char *s)
{
        bytes(line, s, strlen(s));
}

/* At least so many digits. */
static void digits(struct rs_line *line, uint64_t n, int least)
{
        char text[20];
        size_t at = sizeof text;

        for (; n || least > 0; n /= 10, least--)
                text[--at] = (char)('0' + n % 10);
        bytes(line, text + at, sizeof text - at);
}

void rs_line_number(struct rs_line *line, int64_t n)
{
        if (n < 0)
                rs_line_add(line, "-");
        digits(line, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, 1);
}

void rs_line_hex(struct rs_line *line, uint64_t n, int digits)
{
        for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
                bytes(line, &"0123456789abcdef"[n >> shift & 15], 1);
}

void rs_line_string(struct rs_line *line, const char *s)
{
        const unsigned char *c = (const unsigned char *)s;
        size_t most = RS_LINE_STRING;

        rs_line_add(line, "\"");
        while (*c && most--) {
                size_t n = rs_utf8_length(c);
                if (RS_UNLIKELY(n == 0)) {
                        rs_line_add(line, "?");
                } else if (RS_UNLIKELY(*c < ' ' || *c == 0x7f)) {
                        rs_line_add(line, "\\u");
                        rs_line_hex(line, *c, 4);
                } else {
                        if (RS_UNLIKELY(*c == '"' || *c == '\\'))
                                rs_line_add(line, "\\");
                        bytes(line, (const char *)c, n);
                }
                c += n ? n : 1;
        }
        rs_line_add(line, *c ? "...\"" : "\"");
}

void rs_line_time(struct rs_line *line, int64_t ns)
{
        uint64_t whole = ns < 0 ? 0 : (uint64_t)ns;

        digits(line, whole / 1000, 1);
        rs_line_add(line, ".");
        digits(line, whole % 1000, 3);
}

void rs_line_begin(struct rs_line *line, unsigned loop, const char *ph, uint32_t track, int64_t ts)
{
        line->n = 0;
        line->args = false;
        rs_line_add(line, "{\"ph\":\"");
        rs_line_add(line, ph);
        rs_line_add(line, "\",\"pid\":");
        rs_line_number(line, loop);
        rs_line_add(line, ",\"tid\":");
        rs_line_number(line, track);
        rs_line_add(line, ",\"ts\":");
        rs_line_time(line, ts);
}

void rs_line_name(struct rs_line *line, const char *category, const char *name)
{
        rs_line_add(line, ",\"cat\":\"");
        rs_line_add(line, category);
        rs_line_add(line, "\",\"name\":");
        rs_line_string(line, name);
}

void rs_line_arg(struct rs_line *line, const char *key)
{
        rs_line_add(line, line->args ? ",\"" : ",\"args\":{\"");
        rs_line_add(line, key);
        rs_line_add(line, "\":");
        line->args = true;
}

void rs_line_arg_number(struct rs_line *line, const char *key, int64_t n)
{
        rs_line_arg(line, key);
        rs_line_number(line, n);
}

void rs_line_arg_string(struct rs_line *line, const char *key, const char *s)
{
        rs_line_arg(line, key);
        rs_line_string(line, s);
}
