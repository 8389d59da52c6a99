/* SPDX-License-Identifier: MIT */
/* Names of hosts: what can be one, and which certificate of a server is for it. Names are compared as bytes of ASCII
 * here and in OpenSSL, so that others must come in their "xn--" form: a name that looks like another one is not it. */

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

enum { LABEL_MOST = 63 };

static int refuse(const char *host, const char *why)
{
        char text[80];
        size_t n = 0;

        for (; host[n] && n < 60; n++)
                text[n] = (char)((unsigned char)host[n] < ' ' || host[n] == 127 ? '?' : host[n]);
        snprintf(text + n, sizeof text - n, "%s", host[n] ? "..." : "");
        return resha_fail(-EINVAL, "TLS with \"%s\": %s", text, why);
}

/* An address, without the brackets and zone that it may have in a URL. */
static bool is_address(const char *host, char ret_host[RS_TLS_HOST_MAX + 1])
{
        unsigned char bytes[16];
        bool bracket = host[0] == '[';
        size_t n = strcspn(host += bracket, "]%");
        bool zone = host[n] == '%', end = bracket ? host[strlen(host) - 1] == ']' : !strchr(host, ']');

        if (n > INET6_ADDRSTRLEN || !end)
                return false;
        snprintf(ret_host, RS_TLS_HOST_MAX + 1, "%.*s", (int)n, host);
        if (!bracket && !zone && inet_pton(AF_INET, ret_host, bytes) == 1)
                return true;
        return inet_pton(AF_INET6, ret_host, bytes) == 1;
}

/* Labels of a name; what is wrong with it, or NULL. */
static const char *check_labels(const char *host, size_t size)
{
        size_t label = 0;

        for (size_t i = 0; i < size; i++) {
                unsigned char c = (unsigned char)host[i];
                if (c >= 0x80)
                        return "the name is not ASCII: give its \"xn--\" form (idn2 NAME prints it)";
                if (c != '.' && !isalnum(c) && c != '-' && c != '_')
                        return "the name has a byte that no host has: a name or address alone, without scheme, port or "
                               "spaces";
                if (c == '.' && label == 0)
                        return "the name has an empty part";
                label = c == '.' ? 0 : label + 1;
                if (label > LABEL_MOST)
                        return "a part of the name is longer than 63 bytes";
        }
        return size == 0 ? "the name is empty" : NULL;
}

int rs_tls_host_check(const char *host, char ret_host[RS_TLS_HOST_MAX + 1], bool *ret_address)
{
        size_t size = strlen(host);

        *ret_address = size && is_address(host, ret_host);
        if (*ret_address)
                return 0;
        if (size > 1 &&
            host[size - 1] == '.') /* "example.org.": the root of the DNS is not part of what is certified */
                size--;
        const char *wrong = size > RS_TLS_HOST_MAX ? "the name is longer than 253 bytes" : check_labels(host, size);
        if (wrong)
                return refuse(host, wrong);
        for (size_t i = 0; i < size; i++)
                ret_host[i] = (char)tolower((unsigned char)host[i]);
        ret_host[size] = '\0';
        return 0;
}

int rs_tls_pattern_check(const char *pattern)
{
        char host[RS_TLS_HOST_MAX + 1];
        bool address;

        if (!pattern)
                return resha_fail(-EINVAL, "options of TLS: a name without `host`");
        const char *name = strncmp(pattern, "*.", 2) == 0 ? pattern + 2 : pattern;
        int rc = rs_tls_host_check(name, host, &address);
        if (rc == 0 && address)
                return refuse(pattern, "clients do not ask for addresses, only for names");
        return rc;
}

/* Letters and a dot at the end make no difference in either. */
bool rs_tls_host_covers(const char *pattern, const char *name)
{
        size_t size = strlen(name), wanted = strlen(pattern);

        if (size && name[size - 1] == '.')
                size--;
        if (wanted && pattern[wanted - 1] == '.')
                wanted--;
        if (strncmp(pattern, "*.", 2) == 0) {
                size_t label = strcspn(name, ".");
                if (label == 0 || label >= size)
                        return false;
                pattern += 2;
                wanted -= 2;
                name += label + 1;
                size -= label + 1;
        }
        return wanted == size && strncasecmp(pattern, name, size) == 0;
}
