/* SPDX-License-Identifier: MIT */
/* Addresses: a sockaddr and its length in one value, that is copied as it is. Text goes in only as a literal; names are
 * resolve.c's, and Unix addresses addr_unix.c's. Only these three families get in: IPv4, IPv6, Unix.
 *
 * The zone of an IPv6 address is a name of this machine at this moment, and a number inside. A number that no interface
 * has is kept, as is a name that looks like a number: it is printed as its number. */

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/error.h>

#include "net/addr.h"
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

void rs_addr_set(resha_addr *ret_addr, const void *sockaddr, size_t size)
{
        struct rs_addr a = { .size = size };

        memcpy(&a.sockaddr, sockaddr, size);
        memcpy(ret_addr, &a, sizeof a);
}

static sa_family_t family_of(const resha_addr *a)
{
        return rs_addr_view(a)->size ? rs_addr_view(a)->sockaddr.ss_family : AF_UNSPEC;
}

/* ---- parsing ---- */

static bool is_number(const char *text)
{
        return *text && text[strspn(text, "0123456789")] == '\0';
}

/* The interface of a link-local address, by name or number; 0: there is none such. */
static uint32_t parse_zone(const char *zone)
{
        if (is_number(zone)) {
                unsigned long n = strtoul(zone, NULL, 10);
                return n > UINT32_MAX ? 0 : (uint32_t)n;
        }
        return rs_sys_interface_index(zone);
}

/* `size` characters of the text. */
static int parse_six(const char *text, size_t size, uint16_t port, resha_addr *ret_addr)
{
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
        char host[INET6_ADDRSTRLEN + IF_NAMESIZE];

        if (size >= sizeof host)
                return -EINVAL;
        memcpy(host, text, size);
        host[size] = '\0';
        char *zone = strchr(host, '%');
        if (zone)
                *zone++ = '\0';
        if (inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
                return -EINVAL;
        if (zone && (v6.sin6_scope_id = parse_zone(zone)) == 0)
                return -EINVAL;
        rs_addr_set(ret_addr, &v6, sizeof v6);
        return 0;
}

int rs_addr_parse(const char *literal, uint16_t port, resha_addr *ret_addr)
{
        struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
        size_t size = strlen(literal);

        if (inet_pton(AF_INET, literal, &v4.sin_addr) == 1) {
                rs_addr_set(ret_addr, &v4, sizeof v4);
                return 0;
        }
        if (size > 2 && literal[0] == '[' && literal[size - 1] == ']')
                return parse_six(literal + 1, size - 2, port, ret_addr);
        return parse_six(literal, size, port, ret_addr);
}

int resha_addr_parse(const char *literal, uint16_t port, resha_addr *ret_addr)
{
        int rc = literal ? rs_addr_parse(literal, port, ret_addr) : -EINVAL;

        if (rc < 0)
                return resha_fail_at(rc, NULL, "\"%s\" is no address; names are for resha_resolve()",
                                     literal ? literal : "");
        return 0;
}

/* "1.2.3.4:80", "[::1]:80". An interface may have a ] in its name. */
static int scan_inet(const char *text, resha_addr *ret_addr)
{
        char host[INET6_ADDRSTRLEN + IF_NAMESIZE + 2];
        const char *colon = strrchr(text, ':');
        size_t size = colon ? (size_t)(colon - text) : 0;

        if (size == 0 || size >= sizeof host || (colon[-1] == ']') != (text[0] == '['))
                return -EINVAL;
        if (!is_number(colon + 1) || strlen(colon + 1) > 5)
                return -EINVAL;
        unsigned long port = strtoul(colon + 1, NULL, 10);
        memcpy(host, text, size);
        host[size] = '\0';
        if (port > UINT16_MAX || (text[0] != '[' && strchr(host, ':')))
                return -EINVAL; /* of "::1:80" nobody knows where the port begins */
        return rs_addr_parse(host, (uint16_t)port, ret_addr);
}

int resha_addr_scan(const char *text, resha_addr *ret_addr)
{
        static const char unix_head[] = "unix:";
        const char *t = text ? text : "";
        int rc;

        if (t[0] == '/' || t[0] == '@')
                rc = rs_addr_unix_scan(t, ret_addr);
        else if (strncmp(t, unix_head, strlen(unix_head)) == 0)
                rc = rs_addr_unix_scan(t + strlen(unix_head), ret_addr);
        else
                rc = scan_inet(t, ret_addr);
        if (rc == -ENAMETOOLONG)
                return resha_fail_at(rc, NULL, "\"%s\" is too long for a Unix address", t);
        if (rc < 0)
                return resha_fail_at(rc, NULL,
                                     "\"%s\" is no address as \"1.2.3.4:80\", \"[::1]:80\", \"/path\", \"@name\" or "
                                     "\"unix:path\"",
                                     t);
        return 0;
}

int resha_addr_from_sockaddr(const struct sockaddr *sa, size_t size, resha_addr *ret_addr)
{
        sa_family_t family = AF_UNSPEC;
        int rc = -EINVAL;

        if (sa && size >= sizeof family)
                memcpy(&family, (const char *)sa + offsetof(struct sockaddr, sa_family), sizeof family);
        switch (family) {
        case AF_INET: rc = size >= sizeof(struct sockaddr_in) ? 0 : -EINVAL; break;
        case AF_INET6: rc = size >= sizeof(struct sockaddr_in6) ? 0 : -EINVAL; break;
        case AF_UNIX: rc = rs_addr_unix_copy(sa, size, ret_addr); break;
        case AF_UNSPEC: break;
        default: return resha_fail_at(-EAFNOSUPPORT, NULL, "a socket address of family %u", (unsigned)family);
        }
        if (rc < 0)
                return resha_fail_at(rc, NULL, "%zu bytes are no socket address of family %u", size, (unsigned)family);
        if (family == AF_INET)
                rs_addr_set(ret_addr, sa, sizeof(struct sockaddr_in));
        else if (family == AF_INET6)
                rs_addr_set(ret_addr, sa, sizeof(struct sockaddr_in6));
        return 0;
}

/* ---- text ---- */

static void format_six(const struct sockaddr_in6 *v6, char text[static RESHA_ADDR_TEXT_MAX])
{
        char host[INET6_ADDRSTRLEN], name[IF_NAMESIZE], zone[IF_NAMESIZE + 2] = "";
        uint32_t scope = v6->sin6_scope_id;

        if (scope && rs_sys_interface_name(scope, name) && !is_number(name))
                snprintf(zone, sizeof zone, "%%%s", name);
        else if (scope)
                snprintf(zone, sizeof zone, "%%%u", (unsigned)scope);
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, RESHA_ADDR_TEXT_MAX, "[%s%s]:%u", host, zone, (unsigned)ntohs(v6->sin6_port));
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
        case AF_UNIX: rs_addr_unix_format(a, text); break;
        default: break;
        }
        if (size)
                snprintf(buf, size, "%s", text);
        return buf;
}

/* ---- parts ---- */

int resha_addr_family(const resha_addr *a)
{
        return family_of(a);
}

bool resha_addr_equal(const resha_addr *a, const resha_addr *b)
{
        struct sockaddr_in v4 = four_of(a), w4 = four_of(b);
        struct sockaddr_in6 v6 = six_of(a), w6 = six_of(b);

        if (family_of(a) != family_of(b))
                return false;
        switch (family_of(a)) {
        case AF_INET: return v4.sin_port == w4.sin_port && v4.sin_addr.s_addr == w4.sin_addr.s_addr;
        case AF_INET6:
                return v6.sin6_port == w6.sin6_port && v6.sin6_scope_id == w6.sin6_scope_id &&
                       memcmp(&v6.sin6_addr, &w6.sin6_addr, sizeof v6.sin6_addr) == 0;
        case AF_UNIX: return rs_addr_unix_equal(a, b);
        default: return true;
        }
}

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
