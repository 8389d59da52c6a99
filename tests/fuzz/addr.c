/* SPDX-License-Identifier: MIT */
/* Any text as an address, and any bytes as a sockaddr: it is refused, or its form as text is an address that is equal
 * and has the same form. */

#include "fuzz.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <resha/addr.h>
#include <resha/alloc.h>

static void hold(bool ok)
{
        if (!ok)
                abort();
}

static void there_and_back(const resha_addr *a)
{
        char text[RESHA_ADDR_TEXT_MAX], again[RESHA_ADDR_TEXT_MAX];
        resha_addr b = { { 0 } };

        memset(text, '?', sizeof text);
        resha_addr_format(a, text, sizeof text);
        hold(resha_addr_scan(text, &b) == 0);
        hold(resha_addr_equal(a, &b) && resha_addr_equal(&b, a));
        hold(resha_addr_family(a) == resha_addr_family(&b));
        hold(resha_addr_port(a) == resha_addr_port(&b));
        hold(strcmp(resha_addr_format(&b, again, sizeof again), text) == 0);
        for (const char *c = text; *c; c++)
                hold((unsigned char)*c >= ' '); /* one line, whatever a peer calls itself */
}

static void try_text(const char *literal)
{
        resha_addr a = { { 0 } }, b = { { 0 } };

        if (resha_addr_parse(literal, 443, &a) == 0) {
                hold(resha_addr_port(&a) == 443);
                there_and_back(&a);
        }
        if (resha_addr_unix(literal, &a) == 0) {
                hold(resha_addr_family(&a) == AF_UNIX);
                there_and_back(&a);
        }
        if (resha_addr_scan(literal, &b) == 0)
                there_and_back(&b);
}

static void try_sockaddr(const uint8_t *data, size_t size)
{
        resha_addr a = { { 0 } }, b = { { 0 } };
        size_t inside;

        if (resha_addr_from_sockaddr((const struct sockaddr *)(const void *)data, size, &a) < 0)
                return;
        there_and_back(&a);
        const struct sockaddr *sa = resha_addr_sockaddr(&a, &inside);
        hold(inside <= sizeof(struct sockaddr_storage));
        hold(resha_addr_from_sockaddr(sa, inside, &b) == 0 && resha_addr_equal(&a, &b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *copy = resha_malloc(size + 1); /* of this size, so that a sanitizer sees a look behind it */

        if (!copy)
                abort();
        if (size > 0)
                memcpy(copy, data, size);
        copy[size] = '\0';
        try_text(copy);
        resha_free(copy);
        copy = resha_malloc(size ? size : 1);
        if (!copy)
                abort();
        if (size > 0)
                memcpy(copy, data, size);
        try_sockaddr((const uint8_t *)copy, size);
        resha_free(copy);
        return 0;
}
