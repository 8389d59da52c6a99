/* SPDX-License-Identifier: MIT */

/* URLs: which are refused, what is kept out of sight, how relative ones and templates become whole. */

#include "test.h"

#include <string.h>

#include "url.h"

static const char *problem(const char *url)
{
        const char *p = url_problem(url, strlen(url));
        return p ? p : "fine";
}

TEST(urls_that_cannot_be_are_refused)
{
        ASSERT_STR(problem("http://example.org/"), "fine");
        ASSERT_STR(problem("HTTPS://example.org:8443/a?b#c"), "fine");
        ASSERT_STR(problem("http://[::1]:80/"), "fine");
        ASSERT_STR(problem("http://user:p@ss@example.org/"), "fine");
        ASSERT_STR(problem("http://example.org:/"), "fine");
        ASSERT_STR(problem("ftp://example.org/"), "does not begin with http:// or https://");
        ASSERT_STR(problem("example.org/x"), "does not begin with http:// or https://");
        ASSERT_STR(problem("http:///x"), "has no host");
        ASSERT_STR(problem("http://user@/x"), "has no host");
        ASSERT_STR(problem("http://a:0/"), "has a port that is not a number up to 65535");
        ASSERT_STR(problem("http://a:65536/"), "has a port that is not a number up to 65535");
        ASSERT_STR(problem("http://a:8o/"), "has a port that is not a number up to 65535");
        ASSERT_STR(problem("http://a:99999999999999999999/"), "has a port that is not a number up to 65535");
        ASSERT_STR(problem("http://[::1/"), "has an address in [] that does not end");
        ASSERT_STR(problem("http://[::1]x/"), "has something between host and port");
        ASSERT_STR(problem("http://a/b c"), "has a blank in it (write %20)");
        ASSERT_STR(problem("http://a/b\r\nX: y"), "has a control character in it");
        /* an escape in one character */
        ASSERT_STR(problem("http://a/\xc2\x9b"
                           "31m"),
                   "has a control character in it");
}

static const char *of(struct text *t)
{
        static char copy[512];
        snprintf(copy, sizeof copy, "%s", text_string(t));
        text_clear(t);
        return copy;
}

TEST(passwords_are_not_shown)
{
        TEXT(t);
        const char *urls[] = { "http://user:secret@example.org/a?b@c", "http://u:p@q@host:1/",
                               "http://example.org/@x" };
        url_add_public(&t, urls[0], strlen(urls[0]));
        ASSERT_STR(of(&t), "http://example.org/a?b@c");
        url_add_public(&t, urls[1], strlen(urls[1]));
        ASSERT_STR(of(&t), "http://host:1/");
        url_add_public(&t, urls[2], strlen(urls[2]));
        ASSERT_STR(of(&t), "http://example.org/@x");
        url_add_public(&t, "ftp://u:secret@h/a@b", 20); /* no URL for us, and shown as such */
        ASSERT_STR(of(&t), "ftp://h/a@b");
}

TEST(hosts_are_compared_with_scheme_and_port)
{
        TEXT(t);
        url_add_host(&t, "HTTP://u:p@Example.ORG/x?y");
        ASSERT_STR(of(&t), "http://example.org:80");
        url_add_host(&t, "https://example.org");
        ASSERT_STR(of(&t), "https://example.org:443");
        url_add_host(&t, "http://[::1]/");
        ASSERT_STR(of(&t), "http://[::1]:80");
        url_add_host(&t, "http://[::1]:8080/");
        ASSERT_STR(of(&t), "http://[::1]:8080");
}

TEST(relative_urls_are_resolved)
{
        static const char *const cases[][3] = {
                { "http://h:1", "/v0/x", "http://h:1/v0/x" },
                { "http://h:1/v0", "/v0/x", "http://h:1/v0/x" },
                { "http://h/v0/", "item/1", "http://h/v0/item/1" },
                { "http://h/v0/list?a=/b", "x", "http://h/v0/x" },
                { "http://h", "x", "http://h/x" },
                { "http://h/a", "//other/y", "http://other/y" },
                { "http://h/a", "https://z/", "https://z/" },
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                TEXT(t);
                url_add_resolved(&t, cases[i][0], cases[i][1], strlen(cases[i][1]));
                ASSERT_STR(text_string(&t), cases[i][2]);
        }
}

TEST(templates_are_filled_and_encoded)
{
        TEXT(t);
        url_add_filled(&t, "http://h/{}.json?id={}", "a/b c%", 6);
        ASSERT_STR(of(&t), "http://h/a%2Fb%20c%25.json?id=a%2Fb%20c%25");
        url_add_filled(&t, "http://h/{}", "x-1._~", 6);
        ASSERT_STR(of(&t), "http://h/x-1._~");
}

TEST(a_word_is_a_preset_or_a_url)
{
        ASSERT_FALSE(url_like("hn"));
        ASSERT_TRUE(url_like("example.org"));
        ASSERT_TRUE(url_like("http://h"));
        ASSERT_TRUE(url_like("a/b"));
}
