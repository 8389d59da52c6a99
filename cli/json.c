/* SPDX-License-Identifier: MIT */

/* Writing JSON. Whatever bytes come in, what comes out is valid: that is the promise of the command's output in a pipe.
 * Runs of plain ASCII are copied in one go, since bodies are mostly that. */

#include "json.h"

#include <string.h>

size_t utf8_length(const unsigned char *p, size_t left)
{
        unsigned char c = p[0];
        if (c < 0x80)
                return 1;
        size_t n = c >= 0xc2 && c <= 0xdf ? 2 : (c & 0xf0) == 0xe0 ? 3 : c >= 0xf0 && c <= 0xf4 ? 4 : 0;
        if (n == 0 || n > left)
                return 0;
        for (size_t i = 1; i < n; i++)
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
        bool overlong = (c == 0xe0 && p[1] < 0xa0) || (c == 0xf0 && p[1] < 0x90);
        bool outside = (c == 0xed && p[1] > 0x9f) || (c == 0xf4 && p[1] > 0x8f);
        return overlong || outside ? 0 : n;
}

static uint64_t word_at(const unsigned char *p)
{
        uint64_t word;
        memcpy(&word, p, sizeof word);
        return word;
}

/* How many bytes from p on are ASCII; 32 at a time. */
static size_t ascii_run(const unsigned char *p, size_t left)
{
        size_t n = 0;
        for (; left - n >= 32; n += 32) {
                uint64_t all = word_at(p + n) | word_at(p + n + 8) | word_at(p + n + 16) | word_at(p + n + 24);
                if (all & UINT64_C(0x8080808080808080))
                        break;
        }
        while (n < left && p[n] < 0x80)
                n++;
        return n;
}

bool utf8_valid(const void *data, size_t size)
{
        const unsigned char *p = data;
        size_t i = 0;
        if (size && memchr(data, 0, size))
                return false;
        while ((i += ascii_run(p + i, size - i)) < size) {
                size_t n = utf8_length(p + i, size - i);
                if (n == 0)
                        return false;
                i += n;
        }
        return true;
}

static void add_escape(struct text *t, unsigned char c)
{
        static const char from[] = "\"\\\n\r\t\b\f", to[] = "\"\\nrtbf";
        const char *at = memchr(from, c, sizeof from - 1);
        if (at) {
                text_putc(t, '\\');
                text_putc(t, to[at - from]);
        } else {
                text_printf(t, "\\u%04x", c);
        }
}

void json_add_string(struct text *t, const char *s, size_t size)
{
        const unsigned char *p = (const unsigned char *)s;
        text_putc(t, '"');
        for (size_t i = 0; i < size;) {
                size_t run = 0;
                while (i + run < size && p[i + run] >= 0x20 && p[i + run] < 0x7f && p[i + run] != '"' &&
                       p[i + run] != '\\')
                        run++;
                text_add(t, p + i, run);
                i += run;
                if (i == size)
                        break;
                size_t n = utf8_length(p + i, size - i);
                if (n > 1)
                        text_add(t, p + i, n);
                else if (n == 1)
                        add_escape(t, p[i]);
                else
                        text_puts(t, "\xef\xbf\xbd");
                i += n ? n : 1;
        }
        text_putc(t, '"');
}

void json_add_base64(struct text *t, const void *data, size_t size)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const unsigned char *p = data;
        for (size_t i = 0; i < size; i += 3) {
                size_t n = size - i < 3 ? size - i : 3;
                uint32_t v = (uint32_t)p[i] << 16 | (n > 1 ? (uint32_t)p[i + 1] << 8 : 0) | (n > 2 ? p[i + 2] : 0);
                char out[4] = { digits[v >> 18], digits[v >> 12 & 63], n > 1 ? digits[v >> 6 & 63] : '=',
                                n > 2 ? digits[v & 63] : '=' };
                text_add(t, out, sizeof out);
        }
}

void json_field_name(struct text *t, const char *name)
{
        if (t->len && t->data[t->len - 1] != '{')
                text_putc(t, ',');
        json_add_string(t, name, strlen(name));
        text_putc(t, ':');
}

void json_field_string(struct text *t, const char *name, const char *value)
{
        json_field_name(t, name);
        if (value)
                json_add_string(t, value, strlen(value));
        else
                text_puts(t, "null");
}

void json_field_int(struct text *t, const char *name, int64_t value)
{
        json_field_name(t, name);
        text_printf(t, "%lld", (long long)value);
}
