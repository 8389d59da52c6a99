/* SPDX-License-Identifier: MIT */
/* Addresses: a sockaddr and its length in one value, that is copied as it is. Text goes in only as a literal; names are
 * resolve.c's. */

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include <resha/error.h>

#include "base/addr.h"
#include "base/list.h"
#include "net/resolve.h"
#include "sys/sys.h"

/* One family, as it lies in the sockaddr. */
static struct sockaddr_in four_of(const resha_addr *a)
{
        struct sockaddr_in v4;

        memcpy(&v4, a, sizeof v4);
        return v4;
}

static struct sockaddr_in6 six_of(const resha_addr *a)
{
        struct sockaddr_in6 v6;

        memcpy(&v6, a, sizeof v6);
        return v6;
}

static void set(resha_addr *ret, const void *sockaddr, size_t size)
{
        struct rs_addr a = { .size = size };

        memcpy(&a.sockaddr, sockaddr, size);
        memcpy(ret, &a, sizeof a);
}

static sa_family_t family_of(const resha_addr *a)
{
        return rs_addr_view(a)->size ? rs_addr_view(a)->sockaddr.ss_family : AF_UNSPEC;
}

/* ---- parsing ---- */

/* The interface of a link-local address, by name or number; 0: there is none such. */
static uint32_t parse_zone(const char *zone)
{
        char *end;

        if (zone[0] >= '0' && zone[0] <= '9') {
                unsigned long n = strtoul(zone, &end, 10);
                return *end || n > UINT32_MAX ? 0 : (uint32_t)n;
        }
        return rs_sys_interface_index(zone);
}

static int parse_six(const char *literal, uint16_t port, resha_addr *ret_addr)
{
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        char host[INET6_ADDRSTRLEN];
        const char *zone = strchr(literal, '%');
        size_t n = zone ? (size_t)(zone - literal) : strlen(literal);

        if (n >= sizeof host)
                return -EINVAL;
        memcpy(host, literal, n);
        host[n] = '\0';
        if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
                return -EINVAL;
        if (zone && (v6.sin6_scope_id = parse_zone(zone + 1)) == 0)
                return -EINVAL;
        set(ret_addr, &v6, sizeof v6);
        return 0;
}

int rs_addr_parse(const char *literal, uint16_t port, resha_addr *ret_addr)
{
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };

        if (inet_pton(AF_INET, literal, &v4.sin_addr) != 1)
                return parse_six(literal, port, ret_addr);
        set(ret_addr, &v4, sizeof v4);
        return 0;
}

int resha_addr_parse(const char *literal, uint16_t port, resha_addr *ret_addr)
{
        int rc = rs_addr_parse(literal, port, ret_addr);

        return rc < 0 ? resha_fail_at(rc, NULL, "\"%s\" is no address; names are for resha_resolve()", literal) : 0;
}

/* ---- text ---- */

static void format_six(const struct sockaddr_in6 *v6, char text[static RESHA_ADDR_TEXT_MAX])
{
        char host[INET6_ADDRSTRLEN], name[IF_NAMESIZE], zone[IF_NAMESIZE + 2] = "";
        uint32_t scope = v6->sin6_scope_id;

        if (scope && rs_sys_interface_name(scope, name))
                snprintf(zone, sizeof zone, "%%%s", name);
        else if (scope)
                snprintf(zone, sizeof zone, "%%%u", (unsigned)scope);
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, RESHA_ADDR_TEXT_MAX, "[%s%s]:%u", host, zone, (unsigned)ntohs(v6->sin6_port));
}

/* A path, or "@name" in the abstract name space. */
static void format_unix(const struct rs_addr *a, char text[static RESHA_ADDR_TEXT_MAX])
{
        struct sockaddr_un un;
        size_t size = a->size < sizeof un ? a->size : sizeof un;
        size_t head = offsetof(struct sockaddr_un, sun_path);
        int n = size > head ? (int)(size - head) : 0;

        memcpy(&un, &a->sockaddr, size);
        if (n > 0 && un.sun_path[0] == '\0')
                snprintf(text, RESHA_ADDR_TEXT_MAX, "@%.*s", n - 1, un.sun_path + 1);
        else
                snprintf(text, RESHA_ADDR_TEXT_MAX, "%.*s", n, un.sun_path);
}

const char *resha_addr_format(const resha_addr *a, char *buf, size_t size)
{
        char text[RESHA_ADDR_TEXT_MAX] = "none";
        struct sockaddr_in v4 = four_of(a);
        struct sockaddr_in6 v6 = six_of(a);
        char host[INET_ADDRSTRLEN];

        switch (family_of(a)) {
        case AF_INET:
                inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
                snprintf(text, sizeof text, "%s:%u", host, (unsigned)ntohs(v4.sin_port));
                break;
        case AF_INET6: format_six(&v6, text); break;
        case AF_UNIX: format_unix(rs_addr_view(a), text); break;
        default: break;
        }
        if (size)
                snprintf(buf, size, "%s", text);
        return buf;
}

/* ---- parts ---- */

uint16_t resha_addr_port(const resha_addr *a)
{
        switch (family_of(a)) {
        case AF_INET: return ntohs(four_of(a).sin_port);
        case AF_INET6: return ntohs(six_of(a).sin6_port);
        default: return 0;
        }
}

void resha_addr_set_port(resha_addr *a, uint16_t port)
{
        struct sockaddr_in v4 = four_of(a);
        struct sockaddr_in6 v6 = six_of(a);

        v4.sin_port = v6.sin6_port = htons(port);
        if (family_of(a) == AF_INET)
                memcpy(a, &v4, sizeof v4);
        else if (family_of(a) == AF_INET6)
                memcpy(a, &v6, sizeof v6);
}

const struct sockaddr *resha_addr_sockaddr(const resha_addr *a, size_t *ret_size)
{
        *ret_size = rs_addr_view(a)->size;
        return (const struct sockaddr *)(const void *)a;
}
