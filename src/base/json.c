/* SPDX-License-Identifier: MIT */
/* Lines of JSON. A snapshot has a hundred thousand of them and is made while a loop stands still: so no printf, and no
 * memory but what the caller gives. A line that turns out not to fit is taken back as a whole. */

#include "base/json.h"

#include <string.h>

void rs_json_init(struct rs_json *j, char *room, size_t size)
{
        *j = (struct rs_json){ .at = room, .end = room + size, .line = room };
}

static void put(struct rs_json *j, const char *bytes, size_t n)
{
        if (n > (size_t)(j->end - j->at)) {
                j->cut = true;
                return;
        }
        memcpy(j->at, bytes, n);
        j->at += n;
}

#define PUT(j, literal) put((j), (literal), sizeof(literal) - 1)

void rs_json_raw(struct rs_json *j, const void *bytes, size_t n)
{
        put(j, bytes, n);
}

void rs_json_begin(struct rs_json *j, const char *type)
{
        j->line = j->at;
        j->cut = false;
        PUT(j, "{\"type\":\"");
        put(j, type, strlen(type));
        PUT(j, "\"");
}

bool rs_json_end(struct rs_json *j)
{
        PUT(j, "}\n");
        if (j->cut)
                j->at = j->line;
        return !j->cut;
}

static void put_key(struct rs_json *j, const char *key)
{
        PUT(j, ",\"");
        put(j, key, strlen(key));
        PUT(j, "\":");
}

static void put_int(struct rs_json *j, int64_t value)
{
        char digits[24], *at = digits + sizeof digits;
        uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

        do
                *--at = (char)('0' + rest % 10);
        while (rest /= 10);
        if (value < 0)
                *--at = '-';
        put(j, at, (size_t)(digits + sizeof digits - at));
}

void rs_json_int(struct rs_json *j, const char *key, int64_t value)
{
        put_key(j, key);
        put_int(j, value);
}

void rs_json_ints(struct rs_json *j, const char *key, const uint32_t *values, size_t n)
{
        put_key(j, key);
        PUT(j, "[");
        for (size_t i = 0; i < n; i++) {
                if (i)
                        PUT(j, ",");
                put_int(j, values[i]);
        }
        PUT(j, "]");
}

void rs_json_at(struct rs_json *j, const char *key, const void *address)
{
        char digits[2 * sizeof(uintptr_t)], *at = digits + sizeof digits;

        if (!address)
                return;
        for (uintptr_t rest = (uintptr_t)address; rest; rest >>= 4)
                *--at = "0123456789abcdef"[rest & 15];
        put_key(j, key);
        PUT(j, "\"0x");
        put(j, at, (size_t)(digits + sizeof digits - at));
        PUT(j, "\"");
}

void rs_json_bool(struct rs_json *j, const char *key, bool value)
{
        put_key(j, key);
        if (value)
                PUT(j, "true");
        else
                PUT(j, "false");
}

/* ---- text ---- */

size_t rs_utf8_length(const unsigned char *s)
{
        size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

        for (size_t i = 1; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
        bool none = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
        return overlong || none ? 0 : n;
}

static void put_escaped(struct rs_json *j, unsigned char c)
{
        char hex[6] = { '\\', 'u', '0', '0', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15] };
        char plain[2] = { '\\', (char)c };

        if (c == '"' || c == '\\')
                put(j, plain, 2);
        else if (c == '\n')
                PUT(j, "\\n");
        else if (c == '\t')
                PUT(j, "\\t");
        else
                put(j, hex, 6);
}

void rs_json_escaped(struct rs_json *j, const char *text)
{
        const unsigned char *s = (const unsigned char *)text;

        while (*s) {
                size_t n = 0;
                while (s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
                        n++;
                put(j, (const char *)s, n);
                s += n;
                if (!*s)
                        break;
                size_t wide = rs_utf8_length(s);
                if (*s < 0x80)
                        put_escaped(j, *s);
                else if (wide)
                        put(j, (const char *)s, wide);
                else
                        PUT(j, "?");
                s += wide ? wide : 1;
        }
}

void rs_json_text(struct rs_json *j, const char *key, const char *text)
{
        if (!text)
                return;
        put_key(j, key);
        PUT(j, "\"");
        rs_json_escaped(j, text);
        PUT(j, "\"");
}
