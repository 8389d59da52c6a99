/* SPDX-License-Identifier: MIT */

/* Reads flat JSON objects. A cursor moves over the line and never past its end, where a 0 stands; there is no
 * recursion, since what is nested is skipped by counting brackets. It is more lenient than JSON where that does no
 * harm: a program that is looked at may be of another version, or broken. */

#include "record.h"

#include <string.h>

static char *skip_space(char *p)
{
        while (*p == ' ' || *p == '\t')
                p++;
        return p;
}

static int hex4(const char *p, uint32_t *ret)
{
        uint32_t v = 0;
        for (int i = 0; i < 4; i++) {
                char c = p[i];
                uint32_t digit = c >= '0' && c <= '9'                 ? (uint32_t)(c - '0')
                                 : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint32_t)((c | 32) - 'a' + 10)
                                                                      : 16;
                if (digit == 16)
                        return -EINVAL;
                v = v << 4 | digit;
        }
        *ret = v;
        return 0;
}

static char *put_utf8(char *to, uint32_t c)
{
        if (c < 0x80) {
                *to++ = (char)c;
        } else if (c < 0x800) {
                *to++ = (char)(0xc0 | c >> 6);
                *to++ = (char)(0x80 | (c & 63));
        } else if (c < 0x10000) {
                *to++ = (char)(0xe0 | c >> 12);
                *to++ = (char)(0x80 | (c >> 6 & 63));
                *to++ = (char)(0x80 | (c & 63));
        } else {
                *to++ = (char)(0xf0 | c >> 18);
                *to++ = (char)(0x80 | (c >> 12 & 63));
                *to++ = (char)(0x80 | (c >> 6 & 63));
                *to++ = (char)(0x80 | (c & 63));
        }
        return to;
}

/* \uXXXX, with its second half if it is one of a pair. Six characters become at most three, twelve become four. */
static int unescape_code(char **from, char **to)
{
        uint32_t c, low;
        if (hex4(*from, &c) < 0)
                return -EINVAL;
        *from += 4;
        if (c >= 0xd800 && c < 0xdc00 && (*from)[0] == '\\' && (*from)[1] == 'u' && hex4(*from + 2, &low) == 0 &&
            low >= 0xdc00 && low < 0xe000) {
                *from += 6;
                c = 0x10000 + ((c - 0xd800) << 10 | (low - 0xdc00));
        }
        bool text = c != 0 && (c < 0xd800 || c >= 0xe000);
        *to = put_utf8(*to, text ? c : 0xfffd);
        return 0;
}

/* The text whose quote is at p, unescaped to where it is; behind its end, or NULL. */
static char *parse_text(char *p, const char **ret_text)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        char *out = ++p;
        *ret_text = out;
        while (*p != '"') {
                if (*p == '\0')
                        return NULL;
                if (*p != '\\') {
                        *out++ = *p++;
                        continue;
                }
                const char *at = p[1] ? strchr(from, p[1]) : NULL;
                bool code = p[1] == 'u';
                if (!at && !code)
                        return NULL;
                p += 2;
                if (at)
                        *out++ = to[at - from];
                else if (unescape_code(&p, &out) < 0)
                        return NULL;
        }
        *out = '\0';
        return p + 1;
}

/* What does not fit is as large as can be; a fraction or an exponent is left out. */
static char *parse_number(char *p, int64_t *ret)
{
        bool minus = *p == '-';
        int64_t v = 0;
        p += minus;
        if (*p < '0' || *p > '9')
                return NULL;
        for (; *p >= '0' && *p <= '9'; p++)
                v = v > (INT64_MAX - 9) / 10 ? INT64_MAX - 9 : v * 10 + (*p - '0');
        while (*p == '.' || *p == '+' || *p == '-' || (*p | 32) == 'e' || (*p >= '0' && *p <= '9'))
                p++;
        *ret = minus ? -v : v;
        return p;
}

/* Over anything nested, to behind its last bracket. */
static char *skip_nested(char *p)
{
        unsigned depth = 0;
        const char *unused;
        do {
                if (*p == '\0')
                        return NULL;
                if (*p == '"') {
                        p = parse_text(p, &unused);
                        if (!p)
                                return NULL;
                        continue;
                }
                depth += *p == '{' || *p == '[';
                depth -= *p == '}' || *p == ']';
                p++;
        } while (depth);
        return p;
}

static char *parse_list(char *p, struct field *f)
{
        char *start = p;
        int64_t v;
        f->kind = FIELD_LIST;
        p = skip_space(p + 1);
        while (p && *p != ']') {
                p = parse_number(p, &v);
                if (!p) {
                        f->kind = FIELD_OTHER;
                        return skip_nested(start);
                }
                if (f->n_list < RECORD_LIST)
                        f->list[f->n_list++] = v;
                p = skip_space(p);
                if (*p == ',')
                        p = skip_space(p + 1);
                else if (*p != ']')
                        return NULL;
        }
        return p + 1;
}

static char *parse_word(char *p, const char *word)
{
        size_t size = strlen(word);
        return strncmp(p, word, size) == 0 ? p + size : NULL;
}

static char *parse_value(char *p, struct field *f)
{
        switch (*p) {
        case '"': f->kind = FIELD_TEXT; return parse_text(p, &f->text);
        case '[': return parse_list(p, f);
        case '{': return skip_nested(p);
        case 't':
                f->kind = FIELD_BOOL;
                f->number = 1;
                return parse_word(p, "true");
        case 'f': f->kind = FIELD_BOOL; return parse_word(p, "false");
        case 'n': return parse_word(p, "null");
        default: f->kind = FIELD_NUMBER; return parse_number(p, &f->number);
        }
}

/* "name": value; behind it, or NULL. */
static char *parse_field(char *p, struct field *f)
{
        *f = (struct field){ .kind = FIELD_OTHER, .text = "" };
        if (*p != '"')
                return NULL;
        p = parse_text(p, &f->name);
        if (!p)
                return NULL;
        p = skip_space(p);
        return *p == ':' ? parse_value(skip_space(p + 1), f) : NULL;
}

int record_parse(struct record *r, char *line, size_t size)
{
        struct field beyond;
        char *p = skip_space(line);
        r->n_fields = r->asked = 0;
        line[size] = '\0';
        if (*p != '{' || memchr(line, '\0', size))
                return -EINVAL;
        p = skip_space(p + 1);
        while (*p != '}') {
                bool fits = r->n_fields < RECORD_FIELDS;
                p = parse_field(p, fits ? &r->fields[r->n_fields] : &beyond);
                if (!p)
                        return -EINVAL;
                r->n_fields += fits;
                p = skip_space(p);
                if (*p == ',')
                        p = skip_space(p + 1);
                else if (*p != '}')
                        return -EINVAL;
        }
        p = skip_space(p + 1);
        return *p == '\0' || *p == '\r' ? 0 : -EINVAL;
}

const struct field *record_find(struct record *r, const char *name, enum field_kind kind)
{
        for (unsigned k = 0; k < r->n_fields; k++) {
                unsigned i = (r->asked + k) % r->n_fields;
                if (strcmp(r->fields[i].name, name) != 0)
                        continue;
                r->asked = i + 1;
                return r->fields[i].kind == kind ? &r->fields[i] : NULL;
        }
        return NULL;
}

const char *record_text(struct record *r, const char *name)
{
        const struct field *f = record_find(r, name, FIELD_TEXT);
        return f ? f->text : "";
}

int64_t record_number(struct record *r, const char *name, int64_t other)
{
        const struct field *f = record_find(r, name, FIELD_NUMBER);
        return f ? f->number : other;
}

uint64_t record_address(struct record *r, const char *name)
{
        const char *p = record_text(r, name);
        uint64_t v = 0;
        if (p[0] != '0' || p[1] != 'x')
                return 0;
        for (p += 2; *p; p++) {
                char c = *p;
                uint64_t digit = c >= '0' && c <= '9'                 ? (uint64_t)(c - '0')
                                 : (c | 32) >= 'a' && (c | 32) <= 'f' ? (uint64_t)((c | 32) - 'a' + 10)
                                                                      : 16;
                if (digit == 16)
                        return 0;
                v = v << 4 | digit;
        }
        return v;
}
