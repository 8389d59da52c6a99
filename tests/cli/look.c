/* SPDX-License-Identifier: MIT */

/* The parts of what looks into programs: lines of an answer, tables, command lines, figures. */

#include "test.h"

#include <string.h>

#include "help.h"
#include "look/asked.h"
#include "look/gauges.h"
#include "look/keep.h"
#include "look/record.h"
#include "look/screen.h"
#include "look/table.h"

/* Parses a copy that is no longer than it must be, so that a sanitizer sees what looks beyond it. */
static int parse(struct record *r, struct text *copy, const char *line, size_t size)
{
        text_clear(copy);
        text_add(copy, line, size);
        char *exact = resha_malloc(size + 1);
        if (!exact)
                return -ENOMEM;
        memcpy(exact, line, size);
        int rc = record_parse(r, exact, size);
        resha_free(exact);
        return rc < 0 ? rc : record_parse(r, copy->data, size);
}

static const char example[] =
        "{\"type\":\"task\", \"id\":17,\"name\":\"a\\\"b\\\\c\\u00e9\\ud83d\\ude00\\n\",\"holders\":[3,-4,5],"
        "\"ok\":true,\"no\":false,\"nothing\":null,\"at\":\"0x7fff00aB\",\"part\":1.5e3,\"in\":{\"x\":"
        "[1,{\"}\":\"]\"}]},\"mixed\":[1,\"a\"],\"last\":-9}";

TEST(record_has_its_fields)
{
        struct record r;
        TEXT(copy);
        ASSERT_OK(parse(&r, &copy, example, sizeof example - 1));
        ASSERT_STR(record_text(&r, "type"), "task");
        ASSERT_EQ(record_number(&r, "id", -1), 17);
        ASSERT_STR(record_text(&r, "name"), "a\"b\\c\xc3\xa9\xf0\x9f\x98\x80\n");
        const struct field *list = record_find(&r, "holders", FIELD_LIST);
        ASSERT_TRUE(list && list->n_list == 3 && list->list[0] == 3 && list->list[1] == -4 && list->list[2] == 5);
        ASSERT_EQ(record_find(&r, "ok", FIELD_BOOL)->number, 1);
        ASSERT_EQ(record_find(&r, "no", FIELD_BOOL)->number, 0);
        ASSERT_EQ(record_address(&r, "at"), 0x7fff00ab);
        ASSERT_EQ(record_number(&r, "part", -1), 1);
        ASSERT_EQ(record_number(&r, "last", 0), -9);
        ASSERT_TRUE(record_find(&r, "mixed", FIELD_LIST) == NULL);
        ASSERT_EQ(record_number(&r, "absent", 42), 42);
        ASSERT_EQ(record_number(&r, "name", 42), 42); /* of another kind */
        ASSERT_STR(record_text(&r, "id"), "");
        ASSERT_EQ(record_address(&r, "name"), 0);
}

TEST(record_of_half_a_line_is_none)
{
        struct record r;
        TEXT(copy);
        for (size_t n = 0; n + 1 < sizeof example; n++)
                if (parse(&r, &copy, example, n) != -EINVAL)
                        FAIL("the first %zu bytes are an object", n);
}

TEST(record_refuses_what_is_no_object)
{
        static const char *const bad[] = { "",
                                           "x",
                                           "[]",
                                           "{",
                                           "{\"a\"}",
                                           "{a:1}",
                                           "{\"a\":}",
                                           "{\"a\":1,,}",
                                           "{\"a\":1} x",
                                           "{\"a\":tru}",
                                           "{\"a\":[1 2]}",
                                           "{\"a\":\"\\x\"}",
                                           "{\"a\":\"\\u12\"}",
                                           "{\"a\":-}",
                                           "{\"a\":[[[}" };
        struct record r;
        TEXT(copy);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                if (parse(&r, &copy, bad[i], strlen(bad[i])) != -EINVAL)
                        FAIL("'%s' is taken", bad[i]);
        ASSERT_EQ(parse(&r, &copy, "{\"a\":\"\0\"}", 9), -EINVAL);
        ASSERT_OK(parse(&r, &copy, "{}", 2));
        ASSERT_OK(parse(&r, &copy, " { \"a\" : 1 , \"b\" : [ ] } \r", 26));
}

/* Each byte of the example becomes another, in turn: none makes it read beyond the line. */
TEST(record_survives_any_byte)
{
        struct record r;
        TEXT(copy);
        char line[sizeof example];
        unsigned taken = 0;
        for (size_t i = 0; i + 1 < sizeof example; i++)
                for (int c = 0; c < 256; c++) {
                        memcpy(line, example, sizeof line);
                        line[i] = (char)c;
                        taken += parse(&r, &copy, line, sizeof line - 1) == 0;
                }
        ASSERT_TRUE(taken > 10000);
}

TEST(record_of_many_fields_and_large_numbers)
{
        struct record r;
        TEXT(line);
        TEXT(copy);
        text_puts(&line, "{\"big\":99999999999999999999999");
        for (int i = 0; i < 1000; i++)
                text_printf(&line, ",\"f%d\":%d", i, i);
        text_puts(&line, ",\"list\":[1,2,3,4,5,6,7,8,9,10,11]}");
        ASSERT_OK(parse(&r, &copy, line.data, line.len));
        ASSERT_EQ(r.n_fields, RECORD_FIELDS);
        ASSERT_TRUE(record_number(&r, "big", 0) > INT64_MAX - 100);
        ASSERT_EQ(record_number(&r, "f5", -1), 5);
        ASSERT_EQ(record_number(&r, "f999", -1), -1);
}

TEST(texts_are_kept_once)
{
        struct keep k RESHA_CLEANUP(keep_done) = { .n = 0 };
        char name[32];
        const char *first[1000];
        for (int round = 0; round < 2; round++)
                for (int i = 0; i < 1000; i++) {
                        snprintf(name, sizeof name, "name of %d", i);
                        const char *kept = keep_text(&k, name);
                        ASSERT_STR(kept, name);
                        if (round == 0)
                                first[i] = kept;
                        else if (kept != first[i])
                                FAIL("'%s' is kept twice", name);
                }
        ASSERT_EQ(k.n, 1000);
        ASSERT_STR(keep_text(&k, ""), "");
}

TEST(index_finds_by_loop_and_number)
{
        struct keep_index x RESHA_CLEANUP(keep_index_done) = { .n = 0 };
        ASSERT_EQ(keep_index_find(&x, 1, 1), -1);
        for (uint32_t loop = 1; loop <= 3; loop++)
                for (uint32_t i = 0; i < 1000; i++)
                        ASSERT_OK(keep_index_set(&x, loop, i, loop * 10000 + i));
        for (uint32_t loop = 1; loop <= 3; loop++)
                for (uint32_t i = 0; i < 1000; i++)
                        ASSERT_EQ(keep_index_find(&x, loop, i), loop * 10000 + i);
        ASSERT_EQ(keep_index_find(&x, 4, 1), -1);
        ASSERT_EQ(keep_index_find(&x, 1, 1000), -1);
        ASSERT_OK(keep_index_set(&x, 1, 5, 7));
        ASSERT_EQ(keep_index_find(&x, 1, 5), 7);
        ASSERT_EQ(x.n, 3000);
}

static const char *shown(struct text *t, const char *s, bool ascii, size_t columns)
{
        struct screen screen = { .ascii = ascii };
        TEXT(safe);
        text_clear(t);
        screen_add(&screen, &safe, s);
        screen_add_cut(&screen, t, text_string(&safe), safe.len, columns);
        return text_string(t);
}

TEST(screen_shows_text_and_nothing_else)
{
        TEXT(t);
        ASSERT_STR(shown(&t, "plain", false, 0), "plain");
        ASSERT_STR(shown(&t, "a\x1b[2Jb\x07\n\r\t\x7f", false, 0), "a?[2Jb?????");
        ASSERT_STR(shown(&t, "caf\xc3\xa9", false, 0), "caf\xc3\xa9");
        ASSERT_STR(shown(&t, "caf\xc3\xa9", true, 0), "caf?");
        ASSERT_STR(shown(&t, "x\xc2\x9by", false, 0), "x?y"); /* a C1 control */
        /* direction */
        ASSERT_STR(shown(&t, "x\xe2\x80\xaey\xe2\x81\xa6z\xe2\x80\x8b\xef\xbb\xbf", false, 0), "x?y?z??");
        ASSERT_STR(shown(&t, "x\xff\xc3", false, 0), "x??");
        ASSERT_STR(shown(&t, "abcdef", false, 4), "abc\xe2\x80\xa6");
        ASSERT_STR(shown(&t, "abcdef", true, 4), "a...");
        ASSERT_STR(shown(&t, "abcd", true, 4), "abcd");
        ASSERT_STR(shown(&t, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", false, 3), "\xc3\xa9\xc3\xa9\xe2\x80\xa6");
}

TEST(screen_passes_json_that_stays_json)
{
        TEXT(t);
        static const char raw[] = "{\"a\":\"\x1b[1m\xff\xc2\x9b\xc3\xa9\x7f\"}";
        screen_add_raw(&t, raw, sizeof raw - 1, true);
        ASSERT_STR(text_string(&t), "{\"a\":\"\\u001b[1m??\xc3\xa9\\u007f\"}");
}

static void fill(struct table *t, const char *const *cells)
{
        static const char *const heads[] = { "-N", "NAME", "NEVER", "WHAT IT IS" };
        table_init(t, heads, 4);
        for (; *cells; cells++) {
                text_puts(&t->cells, *cells);
                table_cell(t);
        }
}

TEST(table_is_as_wide_as_it_needs_or_may)
{
        static const char *const cells[] = { "1", "one", "",  "the first of all", "20", "twenty of them all",
                                             "",  "b",   NULL };
        TABLE(t);
        TEXT(out);
        fill(&t, cells);
        table_add(&t, &(struct screen){ .ascii = true }, &out);
        ASSERT_STR(text_string(&out), "   N  NAME                WHAT IT IS\n"
                                      "   1  one                 the first of all\n"
                                      "  20  twenty of them all  b\n");
        for (size_t width = 8; width < 50; width++) {
                text_clear(&out);
                table_add(&t, &(struct screen){ .ascii = true, .width = width }, &out);
                for (const char *p = text_string(&out), *nl; (nl = strchr(p, '\n')); p = nl + 1)
                        if ((size_t)(nl - p) > width)
                                FAIL("a line of %zu columns where there are %zu:\n%s", (size_t)(nl - p), width,
                                     text_string(&out));
        }
}

static const char *ask(struct asked *a, const char *command, const char *words)
{
        static char copy[256], problem_copy[256];
        char *argv[8];
        int argc = 0;
        TEXT(problem);
        snprintf(copy, sizeof copy, "%s", words);
        for (char *p = copy; p && *p; argc++) {
                argv[argc] = p;
                p = strchr(p, '|');
                if (p)
                        *p++ = '\0';
        }
        int rc = asked_parse(a, command, argc, argv, &problem);
        snprintf(problem_copy, sizeof problem_copy, "%s", text_string(&problem));
        if ((rc < 0) != (problem.len > 0))
                FAIL("%s %s: %d with text '%s'", command, words, rc, text_string(&problem));
        return problem_copy;
}

TEST(command_lines_of_looking)
{
        struct asked a;
        ASSERT_STR(ask(&a, "ps", ""), "");
        ASSERT_EQ(a.pid, 0);
        ASSERT_STR(ask(&a, "ps", "-a|12|--json"), "");
        ASSERT_TRUE(a.pid == 12 && a.all && a.json);
        ASSERT_STR(ask(&a, "stack", "12|3.17"), "");
        ASSERT_TRUE(a.loop == 3 && a.task == 17);
        ASSERT_STR(ask(&a, "stack", "12|17"), "");
        ASSERT_TRUE(a.loop == 0 && a.task == 17);
        ASSERT_STR(ask(&a, "top", "12|-n3|--delay=250ms"), "");
        ASSERT_TRUE(a.rounds == 3 && a.time.ns == RESHA_MS(250).ns);
        ASSERT_STR(ask(&a, "top", "12"), "");
        ASSERT_EQ(a.time.ns, RESHA_S(1).ns);
        ASSERT_STR(ask(&a, "trace", "12|-o|-odd|-t|10|-f"), "");
        ASSERT_STR(a.output, "-odd");
        ASSERT_TRUE(a.force && a.time.ns == RESHA_S(10).ns);
        ASSERT_STR(ask(&a, "tree", "--help"), "");
        ASSERT_TRUE(a.help);
        static const char *const bad[][3] = {
                { "tree", "", "which process? resha tree PID; resha ps lists those that can be asked" },
                { "tree", "0", "a process is a number, not '0': resha tree PID" },
                { "tree", "12|13", "one word too many, '13': resha tree PID" },
                { "tree", "12|-n|3", "unknown option '-n'; see resha tree --help" },
                { "tree", "12|--al", "unknown option '--al'; did you mean '--all'?" },
                { "tree", "12|--jsno", "unknown option '--jsno'; did you mean '--json'?" },
                { "tree", "12|--all=1", "--all takes no value; give short options one by one" },
                { "top", "12|-n|0", "--rounds 0: a whole number from 1 is needed" },
                { "top", "12|-d", "--delay needs a value" },
                { "top", "12|-d|1ms", "the time is 10ms at least and 10m at most" },
                { "trace", "12", "where to? resha trace PID -o FILE; '-' is stdout" },
                { "stack", "12|1.x", "a task is a number, or LOOP.NUMBER, not '1.x': resha stack PID [TASK]" },
                { "stack", "12|x\x1b", "a task is a number, or LOOP.NUMBER, not 'x?': resha stack PID [TASK]" },
        };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                ASSERT_STR(ask(&a, bad[i][0], bad[i][1]), bad[i][2]);
}

TEST(help_of_looking_and_table_say_the_same)
{
        static const struct {
                const char *command, *help;
        } helps[] = { { "ps", help_ps },       { "tree", help_tree },   { "top", help_top },
                      { "stack", help_stack }, { "trace", help_trace }, { "stats", help_stats } };
        char name[64];
        for (size_t i = 0; i < sizeof helps / sizeof helps[0]; i++) {
                size_t in_help = 0, in_table = 0;
                for (; asked_option(helps[i].command, in_table); in_table++) {
                        snprintf(name, sizeof name, " --%s", asked_option(helps[i].command, in_table));
                        if (!strstr(helps[i].help, name))
                                FAIL("%s is not in the help of %s", name, helps[i].command);
                }
                for (const char *p = helps[i].help; (p = strstr(p, " --")); p += 3)
                        in_help++;
                ASSERT_TRUE(in_help >= in_table && in_table >= 2);
        }
}

TEST(figures_of_two_looks)
{
        static struct gauges before, now;
        before.n = now.n = 0;
        static const char *const lines[] = { "# HELP resha_loop_seconds_total x",
                                             "resha_loop_lag_seconds_bucket{loop=\"2\",le=\"0.001\"} %d",
                                             "resha_loop_lag_seconds_bucket{loop=\"2\",le=\"0.002\"} %d",
                                             "resha_loop_lag_seconds_bucket{loop=\"2\",le=\"+Inf\"} %d" };
        static const int counts[][2] = { { 0, 0 }, { 5, 6 }, { 5, 7 }, { 9, 11 } };
        char line[128];
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
                snprintf(line, sizeof line, lines[i], counts[i][0]);
                gauges_add(&before, line);
                snprintf(line, sizeof line, lines[i], counts[i][1]);
                gauges_add(&now, line);
        }
        ASSERT_TRUE(gauge_busy(gauges_find(&before, 2), gauges_find(&now, 2)) < 0); /* not told */
        gauges_add(&before, "resha_loop_seconds_total{loop=\"2\"} 10");
        gauges_add(&before, "resha_loop_idle_seconds_total{loop=\"2\"} 8");
        gauges_add(&now, "resha_loop_seconds_total{loop=\"2\"} 12");
        gauges_add(&now, "resha_loop_idle_seconds_total{loop=\"2\"} 8.5");
        ASSERT_EQ(before.n, 1);
        ASSERT_EQ((int)(100 * gauge_busy(gauges_find(&before, 2), gauges_find(&now, 2)) + 0.5), 75);
        ASSERT_EQ((int)(1e6 * gauge_lag(gauges_find(&before, 2), gauges_find(&now, 2)) + 0.5), 2000);
        ASSERT_EQ((int)gauge_lag(gauges_find(&now, 2), gauges_find(&now, 2)), 0);
        ASSERT_TRUE(gauges_find(&now, 1) == NULL && gauge_busy(NULL, gauges_find(&now, 2)) < 0);
        gauges_add(&now, "resha_loop_seconds_total{loop=\"x");
        gauges_add(&now, "resha_loop_seconds_total{");
        ASSERT_EQ(now.n, 1);
}
