/* SPDX-License-Identifier: MIT */
/* Any answer of a transport: the sink refuses it, or holds what it says within its caps. Lines: "S200" a status, "H..."
 * a header, "B..." a piece of the body. */

#include "fuzz.h"
#include "response.h"

#include <resha/error.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BODY = 1000, MAX_HEADERS = 2000 };

static int deliver(resha_http_sink *s, const char *line, size_t size)
{
        char number[8] = "";
        if (size == 0)
                return 0;
        switch (line[0]) {
        case 'S':
                memcpy(number, line + 1, size - 1 < 7 ? size - 1 : 7);
                return resha_http_sink_status(s, (int)strtol(number, NULL, 10));
        case 'H': return resha_http_sink_header(s, line + 1, size - 1);
        default: return resha_http_sink_body(s, line + 1, size - 1);
        }
}

static void check(const resha_response *r)
{
        const char *name, *value;
        size_t size, total = 0;
        const char *body = resha_response_body(r, &size);
        if (size > MAX_BODY || body[size] != 0)
                abort();
        for (size_t i = 0; resha_response_header_at(r, i, &name, &value); i++) {
                total += strlen(name) + strlen(value);
                if (!*name || !resha_response_header(r, name))
                        abort();
        }
        if (total > MAX_HEADERS)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        resha_http_sink s;
        int rc = rs_http_sink_init(&s, MAX_BODY, MAX_HEADERS);
        if (rc < 0)
                abort();
        s.head_request = size > 0 && data[0] == '\n';
        for (size_t i = 0; rc >= 0 && i < size;) {
                const uint8_t *end = memchr(data + i, '\n', size - i);
                size_t n = end ? (size_t)(end - data) - i : size - i;
                rc = deliver(&s, (const char *)data + i, n);
                i += n + 1;
        }
        if (rc >= 0)
                rc = rs_http_sink_finish(&s);
        if (rc >= 0)
                check(s.response);
        else if (strlen(s.reason) >= sizeof s.reason)
                abort();
        rs_http_sink_done(&s);
        return 0;
}
