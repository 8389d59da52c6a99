/* SPDX-License-Identifier: MIT */
/* Names. libcurl makes a thread for each look-up, without a bound, and waits for it when a transfer is cancelled; so
 * it never gets to look up. resha_resolve() does (a few threads, equal questions asked once), and the answer is put
 * into libcurl's cache by CURLOPT_RESOLVE.
 *
 * An entry is fresh for 30 s. libcurl keeps it for much longer (DNS_CACHE_TIMEOUT, 600 s), so that what is fresh here
 * is always there too; what has been replaced here replaces the entry there. `loaded` says that a transfer which
 * carried the list has run: until then each transfer of that name carries it, because the one that was to bring it
 * may have been cancelled before libcurl looked at it. */

#include "names.h"
#include "url.h"

#include <resha/addr.h>
#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/scope.h>

#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

enum { BUCKETS = 256, NAMES_MAX = 4096, ADDRS_MAX = 8, TTL_S = 30 };

struct rs_http_names {
        unsigned count;
        rs_http_name *buckets[BUCKETS];
};

int rs_http_names_new(rs_http_names **ret_names)
{
        *ret_names = resha_calloc(1, sizeof **ret_names);
        return *ret_names ? 0 : -ENOMEM;
}

static unsigned bucket_of(const char *host, uint16_t port)
{
        uint32_t h = 2166136261u ^ port; /* FNV-1a */
        for (; *host; host++)
                h = (h ^ (unsigned char)*host) * 16777619u;
        return (h ^ h >> 16) % BUCKETS;
}

void rs_http_name_unref(rs_http_name *name)
{
        if (!name || --name->refs > 0)
                return;
        curl_slist_free_all(name->list);
        resha_free(name);
}

/* Takes one out of the table; whoever uses it keeps it alive. */
static void drop(rs_http_names *n, rs_http_name **at)
{
        rs_http_name *name = *at;
        *at = name->next;
        n->count--;
        rs_http_name_unref(name);
}

static void drop_all(rs_http_names *n)
{
        for (unsigned i = 0; i < BUCKETS; i++)
                while (n->buckets[i])
                        drop(n, &n->buckets[i]);
}

void rs_http_names_free(rs_http_names *n)
{
        if (!n)
                return;
        drop_all(n);
        resha_free(n);
}

/* The place in the table where it is, or NULL. */
static rs_http_name **find(rs_http_names *n, const char *host, uint16_t port)
{
        for (rs_http_name **at = &n->buckets[bucket_of(host, port)]; *at; at = &(*at)->next)
                if ((*at)->port == port && strcmp((*at)->host, host) == 0)
                        return at;
        return NULL;
}

/* "+host:port:address,address": the plus lets it time out in libcurl's cache. */
static int make_list(const char *host, uint16_t port, const resha_addr *addrs, size_t count,
                     struct curl_slist **ret_list)
{
        char line[1 + RS_HTTP_HOST_MAX + sizeof ":65535:" + ADDRS_MAX * (INET6_ADDRSTRLEN + 3)], text[INET6_ADDRSTRLEN];
        size_t used = (size_t)snprintf(line, sizeof line, "+%s:%u:", host, port);
        for (size_t i = 0; i < count; i++) {
                size_t size;
                const struct sockaddr *sa = resha_addr_sockaddr(&addrs[i], &size);
                bool six = sa->sa_family == AF_INET6;
                const void *raw = six ? (const void *)&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr
                                      : (const void *)&((const struct sockaddr_in *)(const void *)sa)->sin_addr;
                if (!inet_ntop(sa->sa_family, raw, text, sizeof text))
                        continue;
                used += (size_t)snprintf(line + used, sizeof line - used, six ? "%s[%s]" : "%s%s", i > 0 ? "," : "",
                                         text);
        }
        *ret_list = curl_slist_append(NULL, line);
        return *ret_list ? 0 : -ENOMEM;
}

static int insert(rs_http_names *n, const char *host, uint16_t port, const resha_addr *addrs, size_t count,
                  rs_http_name **ret_name)
{
        size_t size = strlen(host) + 1;
        rs_http_name *name = resha_calloc(1, sizeof *name + size);
        if (!name)
                return -ENOMEM;
        int rc = make_list(host, port, addrs, count, &name->list);
        if (rc < 0) {
                resha_free(name);
                return rc;
        }
        rs_http_name **old = find(n, host, port);
        if (old)
                drop(n, old); /* another task looked it up at the same time, or it has expired */
        if (n->count >= NAMES_MAX)
                drop_all(n);
        rs_http_name **at = &n->buckets[bucket_of(host, port)];
        memcpy(name->host, host, size);
        name->port = port;
        name->next = *at;
        name->expires = resha_after(RESHA_S(TTL_S));
        name->refs = 2; /* the table's and the caller's */
        *at = name;
        n->count++;
        *ret_name = name;
        return 0;
}

/* Four numbers from 0 to 255: what libcurl takes for an address, too. */
static bool is_ipv4(const char *p)
{
        for (unsigned i = 0; i < 4; i++) {
                unsigned n = 0, digits = 0;
                for (; *p >= '0' && *p <= '9' && digits < 4; p++, digits++)
                        n = n * 10 + (unsigned)(*p - '0');
                if (digits == 0 || digits > 3 || n > 255 || *p != (i < 3 ? '.' : 0))
                        return false;
                p++;
        }
        return true;
}

/* Only literals in brackets hold a colon. */
static bool is_literal(const char *host)
{
        return is_ipv4(host) || strchr(host, ':');
}

static int look_up(rs_http_names *n, const char *host, uint16_t port, resha_duration limit, rs_http_name **ret_name)
{
        RESHA_SCOPE(s);
        resha_addr addrs[ADDRS_MAX];
        char service[sizeof "65535"];
        size_t count;
        snprintf(service, sizeof service, "%u", port);
        resha_timeout_begin(&s, limit);
        int rc = resha_resolve(host, service, addrs, ADDRS_MAX, &count);
        rc = resha_scope_end(&s, rc);
        if (rc == -ENOENT || rc == -EMSGSIZE)
                return RESHA_HTTP_EHOST;
        if (rc == -ETIME)
                return RESHA_HTTP_ECONNECT_TIMEOUT;
        return rc < 0 ? rc : insert(n, host, port, addrs, count, ret_name);
}

int rs_http_names_get(rs_http_names *n, const char *host, uint16_t port, resha_duration limit, rs_http_name **ret_name,
                      resha_duration *ret_time)
{
        *ret_time = RESHA_NS(0);
        if (is_literal(host)) {
                *ret_name = NULL;
                return 0;
        }
        rs_http_name **at = find(n, host, port);
        resha_instant now = resha_now();
        if (!at || (*at)->expires.ns <= now.ns) {
                int rc = look_up(n, host, port, limit, ret_name);
                *ret_time = resha_between(now, resha_now());
                return rc;
        }
        (*at)->refs++;
        *ret_name = *at;
        return 0;
}
