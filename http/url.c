/* SPDX-License-Identifier: MIT */
/* URLs. There is one parser for what is decided about a URL (its origin, the name to look up, the credentials in it)
 * and another one, libcurl's, that sends it. Two parsers that disagree are a hole, so this one is strict: the host is
 * letters, digits, "-", "." and "_", or a literal in brackets; at most one "@"; no control bytes and no blanks
 * anywhere; no backslash before the path. What it accepts, both read alike.
 *
 * Bytes above 127 in path and query are sent as %XX. Names that are not ASCII are refused with the remedy. */

#include "url.h"

#include <resha/alloc.h>
#include <resha/error.h>

#include <curl/curl.h>
#include <string.h>
#include <strings.h>

/* A stretch of text. */
struct span {
        const char *p;
        size_t n;
};

static int refuse(const char *why, const char **ret_why)
{
        *ret_why = why;
        return RESHA_HTTP_EURL;
}

/* ---- user information -------------------------------------------------------------------------------------------- */

static int hex(unsigned char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void base64(const unsigned char *in, size_t size, char *out)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

        for (size_t i = 0; i < size; i += 3) {
                unsigned a = in[i], b = i + 1 < size ? in[i + 1] : 0, c = i + 2 < size ? in[i + 2] : 0;
                *out++ = digits[a >> 2];
                *out++ = digits[(a & 3) << 4 | b >> 4];
                *out++ = i + 1 < size ? digits[(b & 15) << 2 | c >> 6] : '=';
                *out++ = i + 2 < size ? digits[c & 63] : '=';
        }
        *out = 0;
}

/* "user:pass%77ord" as the value of an Authorization header. */
static int authorize(struct span info, char **ret_value, const char **ret_why)
{
        unsigned char *plain = resha_malloc(info.n + 2);
        if (!plain)
                return -ENOMEM;
        size_t n = 0;
        for (size_t i = 0; i < info.n; i++) {
                int c = (unsigned char)info.p[i];
                if (c == '%') {
                        int high = i + 2 < info.n ? hex((unsigned char)info.p[i + 1]) : -1;
                        int low = i + 2 < info.n ? hex((unsigned char)info.p[i + 2]) : -1;
                        if (high < 0 || low < 0) {
                                resha_free(plain);
                                return refuse("a '%' before the host is not followed by two hex digits", ret_why);
                        }
                        c = high * 16 + low;
                        i += 2;
                }
                plain[n++] = (unsigned char)c;
        }
        if (!memchr(info.p, ':', info.n))
                plain[n++] = ':';
        char *value = resha_malloc(6 + (n + 2) / 3 * 4 + 1);
        if (value) {
                memcpy(value, "Basic ", 6);
                base64(plain, n, value + 6);
        }
        resha_free(plain);
        *ret_value = value;
        return value ? 0 : -ENOMEM;
}

/* ---- host and port ----------------------------------------------------------------------------------------------- */

static bool is_host_char(unsigned char c)
{
        unsigned char lower = c | 0x20;
        return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

static int check_name(struct span host, const char **ret_why)
{
        for (size_t i = 0; i < host.n; i++) {
                unsigned char c = (unsigned char)host.p[i];
                if (c >= 0x80)
                        return refuse("the host is not ASCII: write it in its xn-- form", ret_why);
                if (!is_host_char(c))
                        return refuse("the host holds a character that no host has", ret_why);
        }
        return 0;
}

/* What stands between brackets: an IPv6 address, maybe with a zone ("%25eth0"). */
static int check_literal(struct span host, const char **ret_why)
{
        const char *zone = memchr(host.p, '%', host.n);
        size_t size = zone ? (size_t)(zone - host.p) : host.n;
        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)host.p[i];
                if (hex(c) < 0 && c != ':' && c != '.')
                        return refuse("what stands in brackets is not an IPv6 address", ret_why);
        }
        for (size_t i = size; zone && i < host.n; i++)
                if (!is_host_char((unsigned char)host.p[i]) && !(host.p[i] == '%' && i == size))
                        return refuse("the zone of the IPv6 address holds a character that no zone has", ret_why);
        return memchr(host.p, ':', size) && size > 1
                       ? 0
                       : refuse("what stands in brackets is not an IPv6 address", ret_why);
}

static int parse_port(struct span text, rs_http_url *u, const char **ret_why)
{
        unsigned port = 0;
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] < '0' || text.p[i] > '9' || port > 65535)
                        return refuse("the port is not a number from 1 to 65535", ret_why);
                port = port * 10 + (unsigned)(text.p[i] - '0');
        }
        if (text.n > 0 && (port == 0 || port > 65535))
                return refuse("the port is not a number from 1 to 65535", ret_why);
        u->port = text.n > 0 ? (uint16_t)port : u->https ? 443 : 80;
        return 0;
}

/* "host", "host:port", "[literal]:port" */
static int parse_host(struct span text, rs_http_url *u, const char **ret_why)
{
        struct span host = text, port = { text.p + text.n, 0 };
        int rc;
        if (text.n > 0 && text.p[0] == '[') {
                const char *end = memchr(text.p, ']', text.n);
                if (!end)
                        return refuse("'[' without ']'", ret_why);
                host = (struct span){ text.p + 1, (size_t)(end - text.p) - 1 };
                port = (struct span){ end + 1, (size_t)(text.p + text.n - end) - 1 };
                if (port.n > 0 && port.p[0] != ':')
                        return refuse("something other than a port follows ']'", ret_why);
                rc = check_literal(host, ret_why);
        } else {
                const char *colon = memchr(text.p, ':', text.n);
                if (colon) {
                        host.n = (size_t)(colon - text.p);
                        port = (struct span){ colon, text.n - host.n };
                }
                rc = check_name(host, ret_why);
        }
        if (rc < 0)
                return rc;
        if (host.n == 0 || (host.n == 1 && host.p[0] == '.'))
                return refuse("there is no host", ret_why);
        if (host.n > RS_HTTP_HOST_MAX)
                return refuse("the host is longer than 253 bytes", ret_why);
        for (size_t i = 0; i < host.n; i++)
                u->host[i] = (char)(host.p[i] >= 'A' && host.p[i] <= 'Z' ? host.p[i] + 32 : host.p[i]);
        u->host[host.n] = 0;
        if (port.n > 0) {
                port.p++; /* the colon */
                port.n--;
        }
        return parse_port(port, u, ret_why);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* The length up to the end or a fragment; how many bytes are above 127. */
static int check_bytes(const char *text, size_t *ret_size, size_t *ret_high, const char **ret_why)
{
        size_t high = 0;
        const unsigned char *p = (const unsigned char *)text;
        for (; *p != '#'; p++) {
                if ((unsigned char)(*p - 0x21) < 0x7f - 0x21)
                        continue; /* most bytes */
                if (*p == 0)
                        break;
                if (*p <= 0x20 || *p == 0x7f)
                        return refuse(*p == ' ' ? "it holds a blank: write %20" : "it holds a control byte", ret_why);
                high++;
        }
        *ret_size = (size_t)((const char *)p - text);
        *ret_high = high;
        return 0;
}

static char *append_escaped(char *out, struct span text)
{
        static const char digits[] = "0123456789ABCDEF";
        for (size_t i = 0; i < text.n; i++) {
                unsigned char c = (unsigned char)text.p[i];
                if (c >= 0x80) {
                        *out++ = '%';
                        *out++ = digits[c >> 4];
                        *out++ = digits[c & 15];
                } else {
                        *out++ = (char)c;
                }
        }
        return out;
}

/* scheme://authority/path without user information, high bytes as %XX; a missing path becomes "/". */
static char *compose(const rs_http_url *u, struct span host, struct span path, size_t high)
{
        size_t scheme = u->https ? 8 : 7;
        char *text = resha_malloc(scheme + host.n + path.n + 2 * high + 2), *q = text;
        if (!text)
                return NULL;
        memcpy(q, u->https ? "https://" : "http://", scheme);
        memcpy(q + scheme, host.p, host.n);
        q += scheme + host.n;
        if (path.n == 0 || path.p[0] != '/')
                *q++ = '/';
        if (high > 0)
                q = append_escaped(q, path);
        else
                q = (char *)memcpy(q, path.p, path.n) + path.n;
        *q = 0;
        return text;
}

static int parse_authority(struct span authority, struct span path, size_t high, rs_http_url *u, const char **ret_why)
{
        struct span host = authority;
        const char *at = memchr(authority.p, '@', authority.n);
        if (at) {
                host = (struct span){ at + 1, (size_t)(authority.p + authority.n - at) - 1 };
                if (memchr(host.p, '@', host.n))
                        return refuse("more than one '@' before the path: write %40", ret_why);
        }
        int rc = parse_host(host, u, ret_why);
        if (rc >= 0 && at && at > authority.p)
                rc = authorize((struct span){ authority.p, (size_t)(at - authority.p) }, &u->authorization, ret_why);
        if (rc < 0)
                return rc;
        u->text = compose(u, host, path, high);
        return u->text ? 0 : -ENOMEM;
}

int rs_http_url_parse(const char *text, rs_http_url *ret_url, const char **ret_why)
{
        size_t scheme, size = 0, high = 0;
        rs_http_url *u = ret_url; /* on failure nothing in it is owned */

        u->text = u->authorization = NULL;
        if (strncasecmp(text, "http://", 7) == 0)
                scheme = 7;
        else if (strncasecmp(text, "https://", 8) == 0)
                scheme = 8;
        else
                return refuse("it does not start with http:// or https://", ret_why);
        u->https = scheme == 8;
        int rc = check_bytes(text, &size, &high, ret_why);
        if (rc < 0)
                return rc;
        if (size > RS_HTTP_URL_MAX)
                return refuse("it is longer than 65535 bytes", ret_why);
        struct span authority = { text + scheme, strcspn(text + scheme, "/?#") };
        struct span path = { authority.p + authority.n, size - scheme - authority.n };
        rc = parse_authority(authority, path, high, u, ret_why);
        if (rc < 0)
                rs_http_url_done(u);
        return rc;
}

int rs_http_url_join(const char *base, const char *location, rs_http_url *ret_url, const char **ret_why)
{
        CURLU *join = curl_url();
        char *text = NULL;
        if (!join)
                return -ENOMEM;
        CURLUcode cu = curl_url_set(join, CURLUPART_URL, base, CURLU_PATH_AS_IS);
        if (cu == CURLUE_OK)
                cu = curl_url_set(join, CURLUPART_URL, location, CURLU_URLENCODE);
        /* Credentials that a server writes into a redirect are not the caller's. */
        if (cu == CURLUE_OK)
                cu = curl_url_set(join, CURLUPART_USER, NULL, 0);
        if (cu == CURLUE_OK)
                cu = curl_url_set(join, CURLUPART_PASSWORD, NULL, 0);
        if (cu == CURLUE_OK)
                cu = curl_url_get(join, CURLUPART_URL, &text, 0);
        curl_url_cleanup(join);
        int rc;
        if (cu == CURLUE_OUT_OF_MEMORY)
                rc = -ENOMEM;
        else if (cu != CURLUE_OK)
                rc = refuse("it is not an http or https URL", ret_why);
        else
                rc = rs_http_url_parse(text, ret_url, ret_why);
        curl_free(text);
        return rc;
}

void rs_http_url_done(rs_http_url *u)
{
        resha_free(u->text);
        resha_free(u->authorization);
        u->text = u->authorization = NULL;
}

bool rs_http_url_same_origin(const rs_http_url *a, const rs_http_url *b)
{
        return a->https == b->https && a->port == b->port && strcmp(a->host, b->host) == 0;
}

bool rs_http_url_upgrade(const rs_http_url *from, const rs_http_url *to)
{
        return !from->https && to->https && from->port == 80 && to->port == 443 && strcmp(from->host, to->host) == 0;
}

/* ---- for people -------------------------------------------------------------------------------------------------- */

static bool contains(const char *name, size_t size, const char *word)
{
        size_t n = strlen(word);
        for (size_t i = 0; i + n <= size; i++)
                if (strncasecmp(name + i, word, n) == 0)
                        return true;
        return false;
}

bool rs_http_secret_name(const char *name, size_t size)
{
        static const char *const words[] = { "auth", "token",   "key",    "secret",     "pass", "pwd", "sig",
                                             "code", "session", "cookie", "credential", "csrf", "xsrf" };

        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
                if (contains(name, size, words[i]))
                        return true;
        return false;
}

/* Writes what fits, and counts all. */
struct shown {
        char *buf;
        size_t size, used;
};

static void show(struct shown *s, const char *p, size_t n)
{
        for (size_t i = 0; i < n; i++, s->used++)
                if (s->used + 1 < s->size)
                        s->buf[s->used] = (char)(p[i] >= 0x20 && p[i] < 0x7f ? p[i] : '?');
}

static void show_query(struct shown *s, const char *p, size_t n)
{
        while (n > 0) {
                size_t field = 0;
                while (field < n && p[field] != '&')
                        field++;
                const char *equals = memchr(p, '=', field);
                size_t name = equals ? (size_t)(equals - p) : field;
                if (equals && rs_http_secret_name(p, name)) {
                        show(s, p, name + 1);
                        show(s, "***", 3);
                } else {
                        show(s, p, field);
                }
                if (field < n)
                        show(s, "&", 1);
                p += field < n ? field + 1 : field;
                n -= field < n ? field + 1 : field;
        }
}

/* How many bytes "scheme://" takes; 0 if there is none. */
static size_t scheme_size(const char *url)
{
        size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
        return n > 0 && strncmp(url + n, "://", 3) == 0 ? n + 3 : 0;
}

/* Whether what stands before the path can be a host with its port. If not, it may be the beginning of a password with
 * a '/', '?' or '#' in it that should have been written as %XX. */
static bool is_authority(const char *p, size_t n)
{
        const char *colon = n > 0 && p[0] != '[' ? memchr(p, ':', n) : NULL;
        for (const char *q = colon ? colon + 1 : p + n; q < p + n; q++)
                if (*q < '0' || *q > '9')
                        return false;
        return true;
}

/* The length of what is taken for user information, with its '@'. */
static size_t user_size(const char *p, bool has_scheme)
{
        size_t n = strcspn(p, "/?#"), user = 0;
        for (size_t i = 0; i < n; i++)
                if (p[i] == '@')
                        user = i + 1;
        const char *last = strrchr(p, '@');
        bool sound = has_scheme && is_authority(p + user, n - user);
        return last && !sound ? (size_t)(last - p) + 1 : user;
}

static void show_all(struct shown *s, const char *url)
{
        size_t scheme = scheme_size(url);
        const char *rest = url + scheme + user_size(url + scheme, scheme > 0);
        size_t n = strcspn(rest, "#");
        show(s, url, scheme);
        const char *query = memchr(rest, '?', n);
        size_t path = query ? (size_t)(query - rest) + 1 : n;
        show(s, rest, path);
        show_query(s, rest + path, n - path);
}

const char *rs_http_url_show(const char *url, char *buf, size_t size)
{
        struct shown s = { buf, size, 0 };
        show_all(&s, url);
        if (s.used < size) {
                buf[s.used] = 0;
        } else if (size > 4) {
                memcpy(buf + size - 4, "...", 4);
        } else if (size > 0) {
                buf[size - 1] = 0;
        }
        return buf;
}
