/* SPDX-License-Identifier: MIT */
/* A transport that answers from a function. It counts how many attempts run at once: the limits are above the seam. */

#include "mock.h"

#include <string.h>
#include <strings.h>

static int perform(void *impl, const resha_http_attempt *a, resha_http_sink *sink)
{
        struct mock *m = impl;
        m->attempts++;
        m->running++;
        if (m->running > m->most)
                m->most = m->running;
        int rc = m->answer(m, a, sink);
        m->running--;
        return rc;
}

static void mock_free(void *impl)
{
        struct mock *m = impl;
        m->frees++;
}

resha_http_transport mock_transport(struct mock *m)
{
        return (resha_http_transport){ .perform = perform, .free = mock_free, .impl = m };
}

int mock_answer(resha_http_sink *sink, int status, const char *head, const void *body, size_t size, size_t piece)
{
        int rc = resha_http_sink_status(sink, status);
        for (const char *p = head; rc >= 0 && p && *p;) {
                size_t n = strcspn(p, "\n");
                rc = resha_http_sink_header(sink, p, n);
                p += n + (p[n] == '\n');
        }
        if (piece == 0)
                piece = size > 0 ? size : 1;
        for (size_t i = 0; rc >= 0 && i < size; i += piece)
                rc = resha_http_sink_body(sink, (const char *)body + i, size - i < piece ? size - i : piece);
        return rc;
}

const char *mock_path(const resha_http_attempt *a)
{
        const char *p = strstr(a->url, "://");
        p = p ? strchr(p + 3, '/') : NULL;
        return p ? p : "";
}

const char *mock_header(const resha_http_attempt *a, const char *name)
{
        for (size_t i = 0; i < a->header_count; i++)
                if (strcasecmp(a->headers[i].name, name) == 0)
                        return a->headers[i].value;
        return NULL;
}
