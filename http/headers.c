/* SPDX-License-Identifier: MIT */
/* Headers to send. libcurl sends what it is given, line ends included, so a value with a line end in it would become
 * a header, or a request, of its own: names must be tokens and values free of control bytes, checked once, here,
 * before anything is sent.
 *
 * A list starts as the session's own array (shared: the transport converts it once) and becomes an array of its own,
 * in the small room or on the heap, as soon as it differs. */

#include "headers.h"

#include <resha/alloc.h>
#include <resha/error.h>

#include <string.h>
#include <strings.h>

bool rs_http_is_token(const char *name)
{
        if (!*name)
                return false;
        for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
                unsigned char lower = *p | 0x20;
                bool letter = lower >= 'a' && lower <= 'z';
                bool digit = *p >= '0' && *p <= '9';
                if (*p >= 0x80 || !(letter || digit || strchr("!#$%&'*+-.^_`|~", *p)))
                        return false;
        }
        return true;
}

static const char *check_one(const resha_http_header *item)
{
        if (!item->name || !rs_http_is_token(item->name))
                return "the name is not a header name";
        if (strcasecmp(item->name, "Content-Length") == 0 || strcasecmp(item->name, "Transfer-Encoding") == 0)
                return "it follows from the body and is set by the library";
        for (const unsigned char *p = (const unsigned char *)item->value; p && *p; p++)
                if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
                        return "the value holds a line end or another control byte";
        return NULL;
}

int rs_http_headers_check(const resha_http_header *items, size_t count, size_t *ret_index, const char **ret_why)
{
        for (size_t i = 0; i < count; i++) {
                const char *why = check_one(&items[i]);
                if (why) {
                        *ret_index = i;
                        *ret_why = why;
                        return RESHA_HTTP_EHEADER;
                }
        }
        return 0;
}

static bool has(const resha_http_header *items, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcasecmp(items[i].name, name) == 0)
                        return true;
        return false;
}

const char *rs_http_headers_find(const resha_http_header *items, size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcasecmp(items[i].name, name) == 0)
                        return items[i].value;
        return NULL;
}

/* An array of its own for `count` items: the small room if that is free, else the heap. What it had is not copied. */
static resha_http_header *room(rs_http_headers *h, size_t count)
{
        bool small = count <= RS_HTTP_HEADERS_INLINE && h->items != h->small;
        resha_http_header *items = small ? h->small : resha_calloc(count, sizeof *items);
        if (!items)
                return NULL;
        h->capacity = small ? RS_HTTP_HEADERS_INLINE : count;
        h->shared = false;
        return items;
}

int rs_http_headers_merge(rs_http_headers *h, const resha_http_header *session, size_t session_count,
                          const resha_http_header *request, size_t request_count, const char *skip)
{
        h->owned = NULL;
        h->shared = request_count == 0 && !skip;
        h->items = session;
        h->count = session_count;
        if (h->shared)
                return 0;
        resha_http_header *items = room(h, session_count + request_count + 1);
        if (!items)
                return -ENOMEM;
        size_t n = 0;
        for (size_t i = 0; i < session_count; i++) {
                bool skipped = skip && strcasecmp(session[i].name, skip) == 0;
                if (!skipped && !has(request, request_count, session[i].name))
                        items[n++] = session[i];
        }
        for (size_t i = 0; i < request_count; i++)
                if (request[i].value)
                        items[n++] = request[i];
        h->items = items;
        h->owned = items == h->small ? NULL : items;
        h->count = n;
        return 0;
}

/* Makes the list its own, with room for `more`; returns it. */
static resha_http_header *own(rs_http_headers *h, size_t more)
{
        if (!h->shared && h->count + more <= h->capacity)
                return h->owned ? h->owned : h->small;
        resha_http_header *items = room(h, h->count + more);
        if (!items)
                return NULL;
        for (size_t i = 0; i < h->count; i++)
                items[i] = h->items[i];
        resha_free(h->owned);
        h->owned = items == h->small ? NULL : items;
        h->items = items;
        return items;
}

int rs_http_headers_add(rs_http_headers *h, const char *name, const char *value)
{
        if (has(h->items, h->count, name))
                return 0;
        resha_http_header *items = own(h, 1);
        if (!items)
                return -ENOMEM;
        items[h->count++] = (resha_http_header){ name, value };
        return 0;
}

static int filter(rs_http_headers *h, bool (*keep)(const char *name))
{
        size_t n = 0;
        resha_http_header *items = own(h, 0);
        if (!items)
                return -ENOMEM;
        for (size_t i = 0; i < h->count; i++)
                if (keep(items[i].name))
                        items[n++] = items[i];
        h->count = n;
        return 0;
}

static bool harmless(const char *name)
{
        static const char *const names[] = {
                "Accept",
                "Accept-Charset",
                "Accept-Encoding",
                "Accept-Language",
                "Cache-Control",
                "Content-Encoding",
                "Content-Language",
                "Content-Type",
                "DNT",
                "If-Match",
                "If-Modified-Since",
                "If-None-Match",
                "If-Range",
                "If-Unmodified-Since",
                "Pragma",
                "Priority",
                "Range",
                "Upgrade-Insecure-Requests",
                "User-Agent",
        };

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strcasecmp(name, names[i]) == 0)
                        return true;
        return false;
}

static bool not_of_body(const char *name)
{
        bool content = strncasecmp(name, "Content-", 8) == 0;
        return !content && strcasecmp(name, "Digest") != 0 && strcasecmp(name, "Expect") != 0;
}

int rs_http_headers_cross_origin(rs_http_headers *h)
{
        return filter(h, harmless);
}

int rs_http_headers_drop_body(rs_http_headers *h)
{
        return filter(h, not_of_body);
}

void rs_http_headers_done(rs_http_headers *h)
{
        resha_free(h->owned);
        h->owned = NULL;
}
