/* SPDX-License-Identifier: MIT */

/* Text, numbers, JSON, dates and names: what the command reads from people and writes for them. */

#include "test.h"

#include <string.h>

#include "clock.h"
#include "json.h"
#include "nearest.h"
#include "number.h"
#include "status.h"
#include "text.h"

TEST(text_grows_and_stays_terminated)
{
        TEXT(t);
        ASSERT_STR(text_string(&t), "");
        for (int i = 0; i < 1000; i++)
                text_printf(&t, "%d,", i);
        ASSERT_EQ(t.len, strlen(text_string(&t)));
        ASSERT_EQ(t.len, 10 * 2 + 90 * 3 + 900 * 4);
        text_clear(&t);
        ASSERT_STR(text_string(&t), "");
}

TEST(text_shows_numbers_as_people_read_them)
{
        TEXT(t);
        text_add_grouped(&t, 0);
        text_putc(&t, ' ');
        text_add_grouped(&t, 999);
        text_putc(&t, ' ');
        text_add_grouped(&t, 1234567);
        ASSERT_STR(text_string(&t), "0 999 1,234,567");
        text_clear(&t);
        const resha_duration times[] = { RESHA_MS(4),  RESHA_MS(210), RESHA_MS(1200), RESHA_S(59),
                                         RESHA_S(501), RESHA_S(3600), RESHA_S(11100) };
        for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
                text_add_duration(&t, times[i]);
                text_putc(&t, '|');
        }
        ASSERT_STR(text_string(&t), "0.004 s|0.21 s|1.2 s|59.0 s|8 m 21 s|1 h 0 m|3 h 5 m|");
        text_clear(&t);
        const uint64_t sizes[] = { 0, 999, 1000, 12345, 123456, 11800000, UINT64_C(5000000000) };
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                text_add_size(&t, sizes[i]);
                text_putc(&t, '|');
        }
        ASSERT_STR(text_string(&t), "0 B|999 B|1.0 kB|12.3 kB|123 kB|11.8 MB|5.0 GB|");
}

static const char *json_of(struct text *t, const char *s, size_t size)
{
        text_clear(t);
        json_add_string(t, s, size);
        return text_string(t);
}

TEST(json_strings_are_valid_for_any_bytes)
{
        TEXT(t);
        ASSERT_STR(json_of(&t, "plain", 5), "\"plain\"");
        ASSERT_STR(json_of(&t, "a\"b\\c\nd\te\x01\x7f", 11), "\"a\\\"b\\\\c\\nd\\te\\u0001\\u007f\"");
        ASSERT_STR(json_of(&t, "a\0b", 3), "\"a\\u0000b\"");
        ASSERT_STR(json_of(&t, "\xe0\xa4\xb0\xf0\x9f\x98\x80", 7), "\"\xe0\xa4\xb0\xf0\x9f\x98\x80\"");
        ASSERT_STR(json_of(&t, "\xff\xc3", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
        ASSERT_STR(json_of(&t, "\xed\xa0\x80", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(utf8_is_told_from_other_bytes)
{
        static const struct {
                const char *bytes;
                size_t size;
                bool valid;
        } cases[] = {
                { "", 0, true },
                { "ordinary ASCII text, longer than a word", 39, true },
                { "eight by\0", 9, false },
                { "12345678\xe0\xa4\xb0", 11, true },
                { "\xc0\x80", 2, false },         /* overlong */
                { "\xe0\x80\x80", 3, false },     /* overlong */
                { "\xed\xa0\x80", 3, false },     /* surrogate */
                { "\xf4\x90\x80\x80", 4, false }, /* above U+10FFFF */
                { "\xf4\x8f\xbf\xbf", 4, true },
                { "\xe0\xa4", 2, false }, /* cut */
                { "caf\xe9", 4, false },  /* Latin-1 */
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                if (utf8_valid(cases[i].bytes, cases[i].size) != cases[i].valid)
                        FAIL("case %zu: not %d", i, cases[i].valid);
}

TEST(base64_has_its_padding)
{
        TEXT(t);
        for (size_t n = 0; n <= 4; n++) {
                json_add_base64(&t, "\xff\x00\x10z", n);
                text_putc(&t, '|');
        }
        ASSERT_STR(text_string(&t), "|/w==|/wA=|/wAQ|/wAQeg==|");
}

TEST(numbers_have_units_and_limits)
{
        resha_duration d;
        uint64_t n;
        struct rate r;
        ASSERT_OK(number_time("1.5s", &d));
        ASSERT_EQ(d.ns, 1500000000);
        ASSERT_OK(number_time("500ms", &d));
        ASSERT_EQ(d.ns, 500000000);
        ASSERT_OK(number_time("2", &d));
        ASSERT_EQ(d.ns, 2000000000);
        ASSERT_OK(number_time("5m", &d));
        ASSERT_EQ(d.ns, RESHA_S(300).ns);
        ASSERT_EQ(number_time("0", &d), -ERANGE);
        ASSERT_EQ(number_time("-1s", &d), -EINVAL);
        ASSERT_EQ(number_time("1.", &d), -EINVAL);
        ASSERT_EQ(number_time("s", &d), -EINVAL);
        ASSERT_EQ(number_time("99999999999999999999s", &d), -ERANGE);
        ASSERT_OK(number_size("1.5k", &n));
        ASSERT_EQ(n, 1536);
        ASSERT_OK(number_size("16M", &n));
        ASSERT_EQ(n, 16 << 20);
        ASSERT_EQ(number_size("16X", &n), -EINVAL);
        ASSERT_OK(number_rate("100/m", &r));
        ASSERT_EQ(r.count, 100);
        ASSERT_EQ(r.per.ns, RESHA_S(60).ns);
        ASSERT_EQ(number_rate("0/s", &r), -ERANGE);
        ASSERT_EQ(number_rate("5", &r), -EINVAL);
        ASSERT_EQ(number_count("8", 1, 8, &n), 0);
        ASSERT_EQ(number_count("9", 1, 8, &n), -ERANGE);
        ASSERT_EQ(number_count("1x", 1, 8, &n), -EINVAL);
        ASSERT_EQ(number_count("", 1, 8, &n), -EINVAL);
}

TEST(http_dates_in_all_three_forms)
{
        int64_t ms = 0;
        ASSERT_OK(clock_parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", &ms));
        ASSERT_EQ(ms, INT64_C(784111777000));
        ASSERT_OK(clock_parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", &ms));
        ASSERT_EQ(ms, INT64_C(784111777000));
        ASSERT_OK(clock_parse_http_date("Sun Nov  6 08:49:37 1994", &ms));
        ASSERT_EQ(ms, INT64_C(784111777000));
        ASSERT_OK(clock_parse_http_date("Thu, 29 Feb 2024 00:00:00 GMT", &ms));
        ASSERT_EQ(ms, INT64_C(1709164800000));
        ASSERT_EQ(clock_parse_http_date("Sun, 06 Nov 1994 08:49:37", &ms), -EINVAL);
        ASSERT_EQ(clock_parse_http_date("Sun, 06 Foo 1994 08:49:37 GMT", &ms), -EINVAL);
        ASSERT_EQ(clock_parse_http_date("", &ms), -EINVAL);
        ASSERT_EQ(clock_parse_http_date("120", &ms), -EINVAL);
}

TASK(clock_formats_across_a_second)
{
        struct clock c;
        char text[CLOCK_TEXT];
        clock_init(&c, INT64_C(1769862896789));
        resha_instant start = resha_now();
        clock_format(&c, start, text);
        ASSERT_STR(text, "2026-01-31T12:34:56.789Z");
        clock_format(&c, (resha_instant){ start.ns + RESHA_MS(211).ns }, text);
        ASSERT_STR(text, "2026-01-31T12:34:57.000Z");
        clock_format(&c, start, text);
        ASSERT_STR(text, "2026-01-31T12:34:56.789Z");
        return 0;
}

static const char *nearest_of(const char *word)
{
        static const char *const names[] = { "concurrency", "connect-timeout", "timeout", "retries", "db", "rate" };
        struct nearest n;
        nearest_init(&n, word, strlen(word));
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                nearest_try(&n, names[i]);
        return n.best ? n.best : "none";
}

TEST(nearest_name_is_near)
{
        ASSERT_STR(nearest_of("concurency"), "concurrency");
        ASSERT_STR(nearest_of("tiemout"), "timeout");
        ASSERT_STR(nearest_of("retry"), "none");
        ASSERT_STR(nearest_of("retrys"), "retries");
        ASSERT_STR(nearest_of("bd"), "db");
        ASSERT_STR(nearest_of("zebra"), "none");
        ASSERT_STR(nearest_of("a-word-that-is-much-longer-than-any-option-of-ours"), "none");
}

static const char *shown(struct text *t, int code, const char *record)
{
        text_clear(t);
        status_add_error(t, resha_fail(code, "%s", record));
        return text_string(t);
}

TEST(remedies_are_options_of_the_command)
{
        TEXT(t);
        ASSERT_STR(shown(&t, RESHA_HTTP_ETOO_LARGE, "GET http://h/a: too long; raise max_body if it is wanted"),
                   "too long; --max-body sets the limit");
        ASSERT_STR(shown(&t, RESHA_HTTP_ETLS, "GET https://h/: unknown; a private authority is trusted by ca_file"),
                   "unknown; who is trusted is the system's matter: update-ca-certificates(8)");
        ASSERT_STR(shown(&t, -ECONNREFUSED, "GET http://h/: refused; is the server running there?"),
                   "refused; is the server running there?");
}
