/* SPDX-License-Identifier: MIT */
/* Any text as an address: it is refused, or its form as text is an address with the same form. */

#include "fuzz.h"

#include <resha/addr.h>
#include <resha/alloc.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char text[RESHA_ADDR_TEXT_MAX], again[RESHA_ADDR_TEXT_MAX];
        resha_addr a = { { 0 } }, b = { { 0 } };
        char *literal = resha_malloc(size + 1);

        if (!literal)
                abort();
        memcpy(literal, data, size);
        literal[size] = '\0';
        if (resha_addr_parse(literal, 443, &a) == 0) {
                if (resha_addr_port(&a) != 443)
                        abort();
                resha_addr_format(&a, text, sizeof text);
                /* "host:port" or "[host]:port": the host between the brackets, or before the colon. */
                char *host = text + (text[0] == '['), *end = strrchr(text, text[0] == '[' ? ']' : ':');
                if (!end)
                        abort();
                char kept = *end;
                *end = '\0';
                if (resha_addr_parse(host, 443, &b) != 0)
                        abort();
                *end = kept;
                if (strcmp(resha_addr_format(&b, again, sizeof again), text) != 0)
                        abort();
        }
        resha_free(literal);
        return 0;
}
