/* SPDX-License-Identifier: MIT */
/* Requests to the inspector, and lines of JSON. */

#include <string.h>

#include "base/json.h"
#include "inspect/request.h"
#include "test.h"

static struct rs_request asked;

static const char *parse(const char *line)
{
        memset(&asked, 0xee, sizeof asked);
        return rs_request_parse(line, strlen(line), &asked);
}

TEST(requests)
{
        ASSERT_PTR(parse("snapshot"), NULL);
        ASSERT_EQ(asked.kind, RS_REQUEST_SNAPSHOT);
        ASSERT_FALSE(asked.stacks || asked.task || asked.loop);
        ASSERT_PTR(parse("snapshot stacks"), NULL);
        ASSERT_TRUE(asked.stacks);
        ASSERT_PTR(parse("snapshot task=2.17 stacks"), NULL);
        ASSERT_TRUE(asked.stacks && asked.loop == 2 && asked.task == 17);
        ASSERT_PTR(parse("snapshot stacks task=1.4294967295"), NULL);
        ASSERT_EQ(asked.task, UINT32_MAX);
        ASSERT_PTR(parse("snapshot loops"), NULL);
        ASSERT_TRUE(asked.loops && !asked.stacks && !asked.task);
        ASSERT_TRUE(parse("snapshot loops loops") != NULL);
        ASSERT_PTR(parse("stats"), NULL);
        ASSERT_EQ(asked.kind, RS_REQUEST_STATS);
        ASSERT_PTR(parse("sample 1"), NULL);
        ASSERT_TRUE(asked.kind == RS_REQUEST_SAMPLE && asked.ms == 1);
        ASSERT_PTR(parse("trace 600000"), NULL);
        ASSERT_TRUE(asked.kind == RS_REQUEST_TRACE && asked.ms == 600000);
}

TEST(what_is_no_request)
{
        static const char *const wrong[] = {
                "",
                " ",
                "snap",
                "snapshots",
                "SNAPSHOT",
                "snapshot ",
                " snapshot",
                "snapshot  stacks",
                "snapshot stacks stacks",
                "snapshot task=",
                "snapshot task=1",
                "snapshot task=1.",
                "snapshot task=.1",
                "snapshot task=0.1",
                "snapshot task=1.0",
                "snapshot task=1.x",
                "snapshot task=1.4294967296",
                "snapshot task=1.99999999999",
                "snapshot task=1.1 task=1.2",
                "snapshot task=-1.1",
                "stats 1",
                "stats ",
                "sample",
                "sample ",
                "sample 0",
                "sample x",
                "sample 600001",
                "sample 1 ",
                "sample +1",
                "sample 1 2",
                "trace",
                "trace 0",
                "trace -5",
                "trace 10000000000",
                "snapshot\r",
                "snapshot\tstacks",
                "\xff\xfe",
        };

        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
                if (!parse(wrong[i]))
                        FAIL("\"%s\" is taken for a request", wrong[i]);
        ASSERT_TRUE(asked.ms == 0xeeeeeeee); /* left alone */
}

TEST(requests_with_bytes_of_zero_and_long_ones)
{
        char line[RS_REQUEST_MAX + 1];

        ASSERT_TRUE(rs_request_parse("stats\0", 6, &asked) != NULL);
        memset(line, 'a', sizeof line);
        ASSERT_HAS(rs_request_parse(line, sizeof line, &asked), "256 bytes");
        ASSERT_HAS(rs_request_parse(line, sizeof line - 1, &asked), "no such request");
}

/* ---- JSON ---- */

static char room[4096];

static const char *text(struct rs_json *j)
{
        *j->at = '\0';
        return room;
}

TEST(a_line_of_json)
{
        struct rs_json j;

        rs_json_init(&j, room, sizeof room - 1);
        rs_json_begin(&j, "task");
        rs_json_int(&j, "zero", 0);
        rs_json_int(&j, "least", INT64_MIN);
        rs_json_int(&j, "most", INT64_MAX);
        rs_json_ints(&j, "none", NULL, 0);
        rs_json_ints(&j, "two", (const uint32_t[]){ 1, UINT32_MAX }, 2);
        rs_json_bool(&j, "yes", true);
        rs_json_bool(&j, "no", false);
        rs_json_at(&j, "at", (const void *)(uintptr_t)0x12ab);
        rs_json_at(&j, "nowhere", NULL);
        rs_json_text(&j, "nothing", NULL);
        rs_json_text(&j, "empty", "");
        ASSERT_TRUE(rs_json_end(&j));
        ASSERT_STR(text(&j),
                   "{\"type\":\"task\",\"zero\":0,\"least\":-9223372036854775808,\"most\":9223372036854775807,"
                   "\"none\":[],\"two\":[1,4294967295],\"yes\":true,\"no\":false,\"at\":\"0x12ab\","
                   "\"empty\":\"\"}\n");
}

TEST(json_strings_are_utf8_whatever_they_were)
{
        struct rs_json j;

        rs_json_init(&j, room, sizeof room - 1);
        rs_json_begin(&j, "t");
        rs_json_text(&j, "a", "say \"hi\"\\\n\t\x01\x7f");
        rs_json_text(&j, "b", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8d");
        rs_json_text(&j, "c", "\xff|\xc3|\xc3(|\xe2\x82|\xc0\xaf|\xed\xa0\x80|\xf5\x80\x80\x80|\xf0\x80\x80\x80");
        ASSERT_TRUE(rs_json_end(&j));
        ASSERT_STR(text(&j), "{\"type\":\"t\",\"a\":\"say \\\"hi\\\"\\\\\\n\\t\\u0001\\u007f\","
                             "\"b\":\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8c\x8d\","
                             "\"c\":\"?|?|?(|\?\?|\?\?|\?\?\?|\?\?\?\?|\?\?\?\?\"}\n");
}

/* With room for all but the last byte, down to none: the line is not there at all. */
TEST(a_line_that_does_not_fit_is_not_there)
{
        struct rs_json j;

        for (size_t size = 0;; size++) {
                ASSERT_TRUE(size < 100);
                memset(room, '~', sizeof room);
                rs_json_init(&j, room, size);
                rs_json_begin(&j, "note");
                rs_json_text(&j, "text", "a \"b\" \xc3\xbc");
                rs_json_int(&j, "n", 10);
                if (rs_json_end(&j))
                        break;
                ASSERT_PTR(j.at, room);
                ASSERT_EQ(room[size], '~');
        }
        ASSERT_STR(text(&j), "{\"type\":\"note\",\"text\":\"a \\\"b\\\" \xc3\xbc\",\"n\":10}\n");
}
