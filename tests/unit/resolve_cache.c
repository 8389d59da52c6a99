/* SPDX-License-Identifier: MIT */
/* Answers of look-ups that are kept: for how long, which ones, how many. Time is what the test says. */

#include <netdb.h>
#include <string.h>

#include "test.h"

#include "net/resolve_cache.h"

static const int64_t S = 1000000000;

static void add(const char *host, const char *service, int64_t now, int eai, const char *literal)
{
        resha_addr addr = { { 0 } };
        struct rs_answer a = { .addrs = &addr, .n = literal ? 1 : 0, .eai = eai };

        if (literal)
                ASSERT_OK(resha_addr_parse(literal, 0, &addr));
        rs_cache_add(host, service, now, &a);
}

/* The address; "none" for no such name, "" for nothing kept. */
static const char *find(const char *host, const char *service, int64_t now)
{
        static char text[RESHA_ADDR_TEXT_MAX];
        resha_addr addrs[2];
        struct rs_answer a = { .addrs = addrs, .max = 2 };

        if (!rs_cache_find(host, service, now, &a))
                return "";
        if (a.eai != 0)
                return "none";
        ASSERT_EQ(a.n, 1);
        return resha_addr_format(&addrs[0], text, sizeof text);
}

/* A test leaves nothing behind, wherever it ends. */
static void clear(const char *unused)
{
        (void)unused;
        rs_cache_keep(S);
        rs_cache_clear();
}
#define CLEAR_AT_END const char cleared __attribute__((unused)) RESHA_CLEANUP(clear) = 0

TEST(an_answer_is_kept_for_a_second)
{
        CLEAR_AT_END;
        add("a.example", "", 5 * S, 0, "1.1.1.1");
        ASSERT_STR(find("a.example", "", 5 * S), "1.1.1.1:0");
        ASSERT_STR(find("a.example", "", 6 * S - 1), "1.1.1.1:0");
        ASSERT_STR(find("a.example", "", 6 * S), "");
        ASSERT_STR(find("a.example", "", 5 * S), ""); /* it was freed then */
}

/* The loop's clock may be read a little before the thread's. */
TEST(an_answer_from_the_future_is_one)
{
        CLEAR_AT_END;
        add("a.example", "", 5 * S, 0, "1.1.1.1");
        ASSERT_STR(find("a.example", "", 5 * S - 1000), "1.1.1.1:0");
}

TEST(a_question_is_a_name_in_any_case_and_a_service)
{
        CLEAR_AT_END;
        add("a.Example", "http", 0, 0, "1.1.1.1");
        ASSERT_STR(find("A.eXAMPLE", "http", 0), "1.1.1.1:0");
        ASSERT_STR(find("a.example", "", 0), "");
        ASSERT_STR(find("a.example", "HTTP", 0), "");
        ASSERT_STR(find("a.example.", "http", 0), ""); /* that is asked without the search list */
        ASSERT_STR(find("a.exampl", "ehttp", 0), "");
}

TEST(no_such_name_is_kept_and_no_other_failure)
{
        CLEAR_AT_END;
        add("a.example", "", 0, EAI_NONAME, NULL);
        ASSERT_STR(find("a.example", "", S - 1), "none");
        static const int others[] = { EAI_AGAIN, EAI_FAIL, EAI_MEMORY, EAI_SYSTEM, EAI_SERVICE };
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
                add("b.example", "", 0, others[i], NULL);
                ASSERT_STR(find("b.example", "", 0), "");
        }
}

TEST(a_newer_answer_takes_the_place_of_an_older_one)
{
        CLEAR_AT_END;
        add("a.example", "", 0, 0, "1.1.1.1");
        add("A.example", "", S / 2, 0, "2.2.2.2");
        ASSERT_STR(find("a.example", "", S), "2.2.2.2:0");
        add("a.example", "", S, EAI_NONAME, NULL);
        ASSERT_STR(find("a.example", "", S), "none");
        add("a.example", "", S, EAI_AGAIN, NULL); /* what was known is not known any more */
        ASSERT_STR(find("a.example", "", S), "");
}

TEST(the_oldest_of_257_answers_goes)
{
        CLEAR_AT_END;
        char name[32];

        for (int i = 0; i <= RS_CACHE_MAX; i++) {
                snprintf(name, sizeof name, "%d.example", i);
                add(name, "", i, 0, "1.1.1.1");
        }
        ASSERT_STR(find("0.example", "", RS_CACHE_MAX), "");
        for (int i = 1; i <= RS_CACHE_MAX; i++) {
                snprintf(name, sizeof name, "%d.example", i);
                ASSERT_STR(find(name, "", RS_CACHE_MAX), "1.1.1.1:0");
        }
}

TEST(how_long_is_for_the_answers_that_are_there_too)
{
        CLEAR_AT_END;
        add("a.example", "", 0, 0, "1.1.1.1");
        rs_cache_keep(10 * S);
        ASSERT_STR(find("a.example", "", 9 * S), "1.1.1.1:0");
        rs_cache_keep(5 * S);
        ASSERT_STR(find("a.example", "", 9 * S), "");
        add("a.example", "", 9 * S, 0, "1.1.1.1");
        rs_cache_keep(0);
        ASSERT_STR(find("a.example", "", 9 * S), "");
        add("a.example", "", 9 * S, 0, "1.1.1.1");
        ASSERT_STR(find("a.example", "", 9 * S), "");
        rs_cache_keep(INT64_MAX);
        add("a.example", "", 9 * S, 0, "1.1.1.1");
        ASSERT_STR(find("a.example", "", INT64_MAX), "1.1.1.1:0");
}

TEST(an_answer_has_as_many_addresses_as_there_is_room_for)
{
        CLEAR_AT_END;
        resha_addr addrs[3], some[2];
        struct rs_answer a = { .addrs = addrs, .n = 3 }, b = { .addrs = some, .max = 2 };

        for (size_t i = 0; i < 3; i++)
                ASSERT_OK(resha_addr_parse(i == 0 ? "fe80::1%1" : "::1", (uint16_t)i, &addrs[i]));
        rs_cache_add("a.example", "", 0, &a);
        ASSERT_TRUE(rs_cache_find("a.example", "", 0, &b));
        ASSERT_EQ(b.n, 2);
        ASSERT_EQ(memcmp(some, addrs, sizeof some), 0); /* with the zone */
}
