/* SPDX-License-Identifier: MIT */
/* Headers to send: what is refused, how lists are merged and filtered. */

#include "test.h"

#include "headers.h"

#include <resha/error.h>

#include <string.h>

static const char *why;

static int check(const char *name, const char *value)
{
        size_t i = 99;
        const resha_http_header h[] = { { "A", "b" }, { name, value } };
        int rc = rs_http_headers_check(h, 2, &i, &why);
        ASSERT_EQ(i, rc < 0 ? 1 : 99);
        return rc;
}

TEST(headers_injection_is_refused)
{
        ASSERT_EQ(check("X-A", "a\r\nX-Injected: 1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X-A", "a\nb"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X-A", "a\rb"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X-A", "a\x01"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X-A", "a\x7f"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X-A\r\nX-Injected", "1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X A", "1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X:A", "1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X\xc3\xa9", "1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("", "1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check(NULL, "1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("Content-Length", "1"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("transfer-encoding", "chunked"), RESHA_HTTP_EHEADER);
        ASSERT_EQ(check("X-A", "a\tb \xc3\xa9"), 0);
        ASSERT_EQ(check("X-A", ""), 0);
        ASSERT_EQ(check("X-A", NULL), 0);
}

static const char *text(const rs_http_headers *h)
{
        static char buf[1024];
        size_t used = 0;
        buf[0] = 0;
        for (size_t i = 0; i < h->count; i++)
                used += (size_t)snprintf(buf + used, sizeof buf - used, "%s%s=%s", i ? " " : "", h->items[i].name,
                                         h->items[i].value);
        return buf;
}

static const resha_http_header session[] = { { "Accept", "*/*" }, { "User-Agent", "r" }, { "X-Api-Key", "k" } };

TEST(headers_merged)
{
        rs_http_headers h;
        ASSERT_EQ(rs_http_headers_merge(&h, session, 3, NULL, 0, NULL), 0);
        ASSERT_TRUE(h.shared);
        ASSERT_PTR(h.items, session);
        rs_http_headers_done(&h);

        const resha_http_header own[] = {
                { "ACCEPT", "text/plain" }, { "user-agent", NULL }, { "B", "" }, { "B", "2" }
        };
        ASSERT_EQ(rs_http_headers_merge(&h, session, 3, own, 4, NULL), 0);
        ASSERT_FALSE(h.shared);
        ASSERT_STR(text(&h), "X-Api-Key=k ACCEPT=text/plain B= B=2");
        rs_http_headers_done(&h);

        ASSERT_EQ(rs_http_headers_merge(&h, session, 3, NULL, 0, "accept"), 0);
        ASSERT_STR(text(&h), "User-Agent=r X-Api-Key=k");
        ASSERT_EQ(rs_http_headers_add(&h, "user-AGENT", "other"), 0);
        ASSERT_EQ(rs_http_headers_add(&h, "Authorization", "Basic x"), 0);
        ASSERT_STR(text(&h), "User-Agent=r X-Api-Key=k Authorization=Basic x");
        rs_http_headers_done(&h);
}

TEST(headers_many)
{
        static char names[40][8];
        resha_http_header own[40];
        rs_http_headers h;
        for (int i = 0; i < 40; i++) {
                snprintf(names[i], sizeof names[i], "X-%d", i);
                own[i] = (resha_http_header){ names[i], "v" };
        }
        for (size_t n = 0; n <= 40; n++) { /* around the small room */
                ASSERT_EQ(rs_http_headers_merge(&h, session, 3, own, n, NULL), 0);
                ASSERT_EQ(rs_http_headers_add(&h, "Authorization", "a"), 0);
                ASSERT_EQ(rs_http_headers_add(&h, "Another", "b"), 0);
                ASSERT_EQ(h.count, n + 5);
                ASSERT_STR(h.items[n + 4].name, "Another");
                ASSERT_STR(h.items[0].name, "Accept");
                ASSERT_EQ(rs_http_headers_cross_origin(&h), 0);
                ASSERT_STR(text(&h), "Accept=*/* User-Agent=r");
                rs_http_headers_done(&h);
        }
}

TEST(headers_to_another_origin)
{
        const resha_http_header own[] = { { "Authorization", "1" }, { "authorization", "2" }, { "Cookie", "c" },
                                          { "Host", "h" },          { "X-Whatever", "w" },    { "Content-Type", "t" },
                                          { "If-None-Match", "e" } };
        rs_http_headers h;
        ASSERT_EQ(rs_http_headers_merge(&h, session, 3, own, 7, NULL), 0);
        ASSERT_EQ(rs_http_headers_cross_origin(&h), 0);
        ASSERT_STR(text(&h), "Accept=*/* User-Agent=r Content-Type=t If-None-Match=e");
        ASSERT_EQ(rs_http_headers_drop_body(&h), 0);
        ASSERT_STR(text(&h), "Accept=*/* User-Agent=r If-None-Match=e");
        rs_http_headers_done(&h);

        ASSERT_EQ(rs_http_headers_merge(&h, session, 3, NULL, 0, NULL), 0); /* the session's own secrets as well */
        ASSERT_EQ(rs_http_headers_cross_origin(&h), 0);
        ASSERT_STR(text(&h), "Accept=*/* User-Agent=r");
        ASSERT_STR(session[2].name, "X-Api-Key");
        rs_http_headers_done(&h);
}
