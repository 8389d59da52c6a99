/* SPDX-License-Identifier: MIT */
/* URLs: what is accepted, what is refused and why, joining, showing. */

#include "test.h"

#include "url.h"

#include <resha/error.h>

#include <string.h>

static const char *why;

static int parse(const char *text, rs_http_url *u)
{
        why = "";
        return rs_http_url_parse(text, u, &why);
}

static void accepts(const char *text, const char *host, unsigned port, const char *sent)
{
        rs_http_url u;
        int rc = parse(text, &u);
        if (rc < 0)
                FAIL("%s is refused: %s", text, why);
        ASSERT_STR(u.host, host);
        ASSERT_EQ(u.port, port);
        ASSERT_STR(u.text, sent);
        rs_http_url_done(&u);
}

static void refuses(const char *text, const char *reason)
{
        rs_http_url u;
        int rc = parse(text, &u);
        if (rc != RESHA_HTTP_EURL)
                FAIL("%s is not refused: %d", text, rc);
        ASSERT_HAS(why, reason);
}

TEST(url_accepted)
{
        accepts("http://example.org", "example.org", 80, "http://example.org/");
        accepts("HTTPS://Example.ORG/A?b=C#d", "example.org", 443, "https://Example.ORG/A?b=C");
        accepts("http://h:8080?q", "h", 8080, "http://h:8080/?q");
        accepts("http://h:/x", "h", 80, "http://h:/x");
        accepts("http://[::1]:81/x", "::1", 81, "http://[::1]:81/x");
        accepts("http://[FE80::1%25eth0]/", "fe80::1%25eth0", 80, "http://[FE80::1%25eth0]/");
        accepts("http://h/\xc3\xa9?x=\xc3\xa9", "h", 80, "http://h/%C3%A9?x=%C3%A9");
        accepts("http://h/a/../b", "h", 80, "http://h/a/../b");
        accepts("http://h/x@y", "h", 80, "http://h/x@y");
        accepts("http://a_b.example./", "a_b.example.", 80, "http://a_b.example./");
}

TEST(url_refused)
{
        refuses("", "does not start with http");
        refuses("example.org", "does not start with http");
        refuses("ftp://example.org/", "does not start with http");
        refuses("file:///etc/passwd", "does not start with http");
        refuses("http:/x", "does not start with http");
        refuses("http://", "no host");
        refuses("http:///x", "no host");
        refuses("http://./", "no host");
        refuses("http://:80/", "no host");
        refuses("http://h/a b", "write %20");
        refuses("http://h/a\r\nX: y", "control byte");
        refuses("http://h/\x7f", "control byte");
        refuses("http://h:0/", "1 to 65535");
        refuses("http://h:65536/", "1 to 65535");
        refuses("http://h:99999999999999999999/", "1 to 65535");
        refuses("http://h:8a/", "1 to 65535");
        refuses("http://h:-1/", "1 to 65535");
        refuses("http://a@b@c/", "more than one '@'");
}

/* Two parsers that differ see two hosts. */
TEST(url_that_parsers_read_differently)
{
        refuses("http://good\\.evil/", "no host has");
        refuses("http://good\\evil@x\\y/", "no host has");
        refuses("http://a%65b/", "no host has");
        refuses("http://b\xc3\xbc"
                "cher.example/",
                "xn--");
        refuses("http://a;b/", "no host has");
        refuses("http://[::1/", "']'");
        refuses("http://[::1]x/", "follows ']'");
        refuses("http://[example.org]/", "not an IPv6");
        refuses("http://[]/", "not an IPv6");
        refuses("http://[cafe]/", "not an IPv6");
        refuses("http://[10.0.0.1]/", "not an IPv6");
        refuses("http://[::1%25a/b]/", "']'");
        refuses("http://[::1%25a;b]/", "no zone has");
        refuses("http://u%4:p@h/", "hex digits");
        refuses("http://u%zz:p@h/", "hex digits");
}

TEST(url_longest_host)
{
        char text[300] = "http://";
        memset(text + 7, 'a', 253);
        memcpy(text + 7 + 253, "/", 2);
        rs_http_url u;
        ASSERT_EQ(parse(text, &u), 0);
        ASSERT_EQ(strlen(u.host), 253);
        rs_http_url_done(&u);
        memcpy(text + 7 + 253, "a/", 3);
        refuses(text, "longer than 253");
}

static void authorizes(const char *text, const char *value, const char *sent)
{
        rs_http_url u;
        ASSERT_EQ(parse(text, &u), 0);
        ASSERT_STR(u.authorization, value);
        ASSERT_STR(u.text, sent);
        rs_http_url_done(&u);
}

TEST(url_user_information)
{
        authorizes("http://Aladdin:open%20sesame@h/", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "http://h/");
        authorizes("http://u@h/", "Basic dTo=", "http://h/");
        authorizes("http://u:@h/", "Basic dTo=", "http://h/");
        authorizes("http://:p@h/", "Basic OnA=", "http://h/");
        authorizes("http://a%40b:c@h:1/x", "Basic YUBiOmM=", "http://h:1/x");
        authorizes("http://@h/", NULL, "http://h/");
}

static void joins(const char *base, const char *location, const char *expected)
{
        rs_http_url u;
        why = "";
        int rc = rs_http_url_join(base, location, &u, &why);
        if (rc < 0)
                FAIL("%s + %s is refused: %s", base, location, why);
        ASSERT_STR(u.text, expected);
        ASSERT_TRUE(u.authorization == NULL);
        rs_http_url_done(&u);
}

TEST(url_joined)
{
        joins("http://h/a/b?q", "c", "http://h/a/c");
        joins("http://h/a/b", "/c", "http://h/c");
        joins("http://h/a/b", "../c", "http://h/c");
        joins("http://h/a/b?q", "?r", "http://h/a/b?r");
        joins("http://h/a", "//other:81/x", "http://other:81/x");
        joins("http://h/a", "https://other/x#frag", "https://other/x");
        joins("http://h/a", "/with blank", "http://h/with%20blank");
        joins("http://h/a", "/\xc3\xa9", "http://h/%c3%a9");
        joins("http://h/a", "http://user:secret@h/b", "http://h/b");
        joins("https://h:444/a", "b", "https://h:444/b");
}

TEST(url_join_refused)
{
        static const char *const bad[] = {
                "file:///etc/passwd", "ftp://h/",        "gopher://h/", "javascript:alert(1)",
                "http://[::1",        "http://h:99999/", "http://"
        };
        rs_http_url u;
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                if (rs_http_url_join("http://h/", bad[i], &u, &why) != RESHA_HTTP_EURL)
                        FAIL("%s is not refused", bad[i]);
}

static bool same(const char *a, const char *b)
{
        rs_http_url x, y;
        ASSERT_EQ(parse(a, &x), 0);
        ASSERT_EQ(parse(b, &y), 0);
        bool result = rs_http_url_same_origin(&x, &y) || rs_http_url_upgrade(&x, &y);
        rs_http_url_done(&x);
        rs_http_url_done(&y);
        return result;
}

TEST(url_origins)
{
        ASSERT_TRUE(same("http://h/a", "http://H:80/b"));
        ASSERT_TRUE(same("http://h/", "https://h/"));  /* an upgrade */
        ASSERT_FALSE(same("https://h/", "http://h/")); /* a downgrade */
        ASSERT_FALSE(same("http://h:81/", "https://h:81/"));
        ASSERT_FALSE(same("http://h/", "http://h:81/"));
        ASSERT_FALSE(same("http://h/", "http://h.example/"));
        ASSERT_FALSE(same("http://h/", "https://h:444/"));
}

static void shows(const char *url, const char *expected)
{
        char buf[64];
        ASSERT_STR(rs_http_url_show(url, buf, sizeof buf), expected);
}

TEST(url_shown_without_secrets)
{
        shows("http://user:pass@h/x#f", "http://h/x");
        shows("http://a@b@c/", "http://c/");
        shows("http://h/?api_key=123&q=resha&Token=4&x", "http://h/?api_key=***&q=resha&Token=***&x");
        shows("http://h/?token", "http://h/?token");
        shows("user:pass@h", "h");
        shows("http://user:pa/ss@h/x", "http://h/x"); /* a password that should have been written with %2F, ... */
        shows("http://user:pa?ss@h/x", "http://h/x");
        shows("http://user:pa#ss@h/x", "http://h/x");
        shows("http:/user:pass@h/x", "h/x");
        shows("http://h:80/@me?q=a@b", "http://h:80/@me?q=a@b");
        shows("http://[::1]:80/@me", "http://[::1]:80/@me");
        shows("//h/?token=1&next=http://h/", "//h/?token=***&next=http://h/");
        shows("http://h/\r\nX", "http://h/??X");
        shows("", "");
        shows("http://h/0123456789012345678901234567890123456789012345678901234567890123456789",
              "http://h/012345678901234567890123456789012345678901234567890...");
}
