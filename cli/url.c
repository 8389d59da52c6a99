/* SPDX-License-Identifier: MIT */

/* URLs as text. The client checks and normalises what it sends; here a URL is split only as far as the command needs:
 * scheme, authority, rest. */

#include "url.h"

#include <string.h>

struct parts {
        size_t authority; /* where it begins: behind "://" */
        size_t host;      /* behind the user information, if any */
        size_t rest;      /* the first of "/?#" behind it, or the end */
};

static bool has_scheme(const char *url, size_t size, size_t *ret_authority)
{
        static const char *const schemes[] = { "http://", "https://" };
        for (size_t i = 0; i < 2; i++) {
                size_t n = strlen(schemes[i]);
                if (size >= n && strncasecmp(url, schemes[i], n) == 0) {
                        *ret_authority = n;
                        return true;
                }
        }
        return false;
}

static void split_authority(const char *url, size_t size, size_t authority, struct parts *ret)
{
        struct parts p = { .authority = authority, .host = authority, .rest = authority };
        for (; p.rest < size && url[p.rest] != '/' && url[p.rest] != '?' && url[p.rest] != '#'; p.rest++)
                if (url[p.rest] == '@')
                        p.host = p.rest + 1;
        *ret = p;
}

static bool split(const char *url, size_t size, struct parts *ret)
{
        size_t authority;
        if (!has_scheme(url, size, &authority))
                return false;
        split_authority(url, size, authority, ret);
        return true;
}

/* Of "host", "host:port", "[v6]" and "[v6]:port". */
static const char *host_problem(const char *host, size_t size)
{
        const char *end = size && host[0] == '[' ? memchr(host, ']', size) : memchr(host, ':', size);
        size_t name = end ? (size_t)(end - host) : size;
        if (size && host[0] == '[') {
                if (!end || name < 2)
                        return "has an address in [] that does not end";
                name++;
        }
        if (name == 0)
                return "has no host";
        if (name == size)
                return NULL;
        unsigned long port = 0;
        if (host[name] != ':')
                return "has something between host and port";
        for (size_t i = name + 1; i < size; i++) {
                if (host[i] < '0' || host[i] > '9' || port > 65535)
                        return "has a port that is not a number up to 65535";
                port = port * 10 + (unsigned long)(host[i] - '0');
        }
        return port > 65535 || (port == 0 && size > name + 1) ? "has a port that is not a number up to 65535" : NULL;
}

size_t url_control(const char *p, size_t left)
{
        const unsigned char *u = (const unsigned char *)p;
        if (u[0] < ' ' || u[0] == 0x7f)
                return 1;
        return left > 1 && u[0] == 0xc2 && u[1] >= 0x80 && u[1] <= 0x9f ? 2 : 0;
}

const char *url_problem(const char *url, size_t size)
{
        struct parts p;
        if (size > URL_MAX)
                return "is longer than 16384 bytes";
        for (size_t i = 0; i < size; i++)
                if (url[i] == ' ' || url_control(url + i, size - i))
                        return url[i] == ' ' ? "has a blank in it (write %20)" : "has a control character in it";
        if (!split(url, size, &p))
                return "does not begin with http:// or https://";
        return host_problem(url + p.host, p.rest - p.host);
}

bool url_like(const char *word)
{
        return word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")] != '\0';
}

void url_add_public(struct text *t, const char *url, size_t size)
{
        const char *colon = memmem(url, size, "://", 3);
        struct parts p = { .authority = 0 };
        if (colon)
                split_authority(url, size, (size_t)(colon - url) + 3, &p);
        text_add(t, url, p.authority);
        text_add(t, url + p.host, size - p.host);
}

void url_add_host(struct text *t, const char *url)
{
        struct parts p;
        size_t size = strlen(url);
        if (!split(url, size, &p))
                return;
        bool secure = p.authority == strlen("https://");
        size_t from = t->len;
        text_add(t, url, p.authority);
        text_add(t, url + p.host, p.rest - p.host);
        for (size_t i = from; i < t->len; i++)
                if (t->data[i] >= 'A' && t->data[i] <= 'Z')
                        t->data[i] = (char)(t->data[i] - 'A' + 'a');
        const char *bracket = memrchr(url + p.host, ']', p.rest - p.host);
        size_t name_end = bracket ? (size_t)(bracket - url) : p.host;
        if (!memchr(url + name_end, ':', p.rest - name_end))
                text_puts(t, secure ? ":443" : ":80");
}

void url_add_resolved(struct text *t, const char *base, const char *ref, size_t size)
{
        struct parts p;
        size_t authority;
        if (has_scheme(ref, size, &authority) || !split(base, strlen(base), &p)) {
                text_add(t, ref, size);
        } else if (size >= 2 && ref[0] == '/' && ref[1] == '/') {
                text_add(t, base, p.authority - 2);
                text_add(t, ref, size);
        } else {
                size_t path_end = p.rest + strcspn(base + p.rest, "?#");
                const char *slash = memrchr(base + p.rest, '/', path_end - p.rest);
                size_t keep = size && ref[0] == '/' ? p.rest : slash ? (size_t)(slash - base) + 1 : p.rest;
                text_add(t, base, keep);
                if (keep == p.rest && (size == 0 || ref[0] != '/'))
                        text_putc(t, '/');
                text_add(t, ref, size);
        }
}

static void add_encoded(struct text *t, const char *s, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)s[i];
                bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                             (c && strchr("-._~", c));
                if (plain)
                        text_putc(t, (char)c);
                else
                        text_printf(t, "%%%02X", c);
        }
}

void url_add_filled(struct text *t, const char *template, const char *id, size_t size)
{
        for (const char *hole; (hole = strstr(template, "{}")); template = hole + 2) {
                text_add(t, template, (size_t)(hole - template));
                add_encoded(t, id, size);
        }
        text_puts(t, template);
}
