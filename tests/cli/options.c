/* SPDX-License-Identifier: MIT */

/* Options: what is accepted, what is refused with which line, what is kept secret; help and table say the same. */

#include "test.h"

#include <string.h>

#include "help.h"
#include "options.h"
#include "preset.h"

enum { MAX_WORDS = 12 };

/* Parses words, separated by '|', as fetch_main() does; the problem, or "". */
static const char *parse(struct options *o, const char *words)
{
        static char copy[1024], problem_copy[512];
        char *argv[MAX_WORDS];
        int argc = 0;
        TEXT(problem);
        snprintf(copy, sizeof copy, "%s", words);
        for (char *p = copy; p && *p; argc++) {
                argv[argc] = p;
                p = strchr(p, '|');
                if (p)
                        *p++ = '\0';
        }
        options_done(o);
        options_init(o);
        int rc = options_parse(o, argc, argv, &problem);
        if (rc >= 0)
                rc = preset_apply(o, &problem);
        if (rc >= 0)
                rc = options_check(o, &problem);
        snprintf(problem_copy, sizeof problem_copy, "%s", text_string(&problem));
        if ((rc < 0) != (problem.len > 0))
                FAIL("%s: %d with text '%s'", words, rc, text_string(&problem));
        return problem_copy;
}

TEST(options_in_all_their_spellings)
{
        OPTIONS(o);
        ASSERT_STR(parse(&o, "-c5|--timeout=2s|--retries|0|-i|urls.txt|http://h/"), "");
        ASSERT_EQ(o.concurrency, 5);
        ASSERT_EQ(o.timeout.ns, RESHA_S(2).ns);
        ASSERT_EQ(o.retries, 0);
        ASSERT_STR(o.input, "urls.txt");
        ASSERT_STR(o.urls[0], "http://h/");
        ASSERT_STR(parse(&o, "--top|3|http://h/{}|--each|ids"), "");
        ASSERT_EQ(o.first, 3);
        ASSERT_STR(parse(&o, "--rate|10/s|--rate|100/m|http://h/|--|-odd.name"), "");
        ASSERT_EQ(o.n_rates, 2);
        ASSERT_STR(o.urls[1], "-odd.name");
}

TEST(options_have_the_defaults_of_the_help)
{
        OPTIONS(o);
        ASSERT_STR(parse(&o, "http://h/"), "");
        ASSERT_EQ(o.concurrency, 8);
        ASSERT_EQ(o.timeout.ns, RESHA_S(30).ns);
        ASSERT_EQ(o.connect_timeout.ns, RESHA_S(10).ns);
        ASSERT_EQ(o.retries, 4);
        ASSERT_EQ(o.retry_for.ns, RESHA_S(300).ns);
        ASSERT_EQ(o.max_body, 16 << 20);
        ASSERT_STR(o.key, "id");
}

TEST(options_that_are_refused_get_one_line)
{
        static const char *const cases[][2] = {
                { "", "nothing to fetch: give URLs, -i LIST or a preset; see resha fetch --help" },
                { "-c|0|http://h/", "-c 0: a whole number from 1 to 4096 is needed" },
                { "-c|many|http://h/", "-c many: a whole number from 1 to 4096 is needed" },
                { "--concurrency=-1|http://h/", "--concurrency -1: a whole number from 1 to 4096 is needed" },
                { "--concurency|5|http://h/", "unknown option '--concurency'; did you mean '--concurrency'?" },
                { "--zebra|http://h/", "unknown option '--zebra'" },
                { "-z|http://h/", "unknown option '-z'; see resha fetch --help" },
                { "--closing|x|http://h/", "unknown option '--closing'" },
                { "http://h/|--db", "--db needs a value" },
                { "http://h/|--db=", "--db '': must not be empty" },
                { "http://h/|-q=1", "-q takes no value ('=1')" },
                { "http://h/|--timeout|soon", "--timeout soon: a time is needed, as 30s, 500ms, 5m or 2h" },
                { "http://h/|--max-body|big", "--max-body big: a size is needed, as 500k, 16M or 1G" },
                { "http://h/|--rate|fast",
                  "--rate fast: a rate is needed, as 10/s, 100/m or 5000/h, at most 4 of them" },
                { "foo", "no preset 'foo'; a URL starts with http:// or https://" },
                { "foo|http://h/", "'foo': a preset stands alone; a URL starts with http:// or https://" },
                { "-", "'-' alone is no URL; -i - reads a list from stdin" },
                { "http://h/{}", "{} in a URL needs --each, which says where the ids are" },
                { "http://h/|--each|x", "--each needs exactly one URL, with {} where the id goes" },
                { "http://h/|--ids|$", "--ids says where the ids are in what --each gives: --each is missing" },
                { "-H|content-length: 5|http://h/", "-H: 'content-length' follows from the request and cannot be set" },
                { "http://h/|--table|t|--db|d", "--table needs --columns, which says what its rows are made of" },
                { "http://h/|--columns|id", "--columns and --table make rows in a database: --db FILE is missing" },
                { "http://h/|--base-url|h", "--base-url h: does not begin with http:// or https://" },
                { "http://h/{}|--each|sql:x", "--each sql:... asks the database of --db, which is missing" },
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                OPTIONS(o);
                ASSERT_STR(parse(&o, cases[i][0]), cases[i][1]);
        }
}

TEST(headers_are_checked_wiped_and_never_shown)
{
        OPTIONS(o);
        char spec[] = "Authorization: Bearer s3cret", *argv[] = { (char[]){ "-H" }, spec, (char[]){ "http://h/" } };
        TEXT(problem);
        options_init(&o);
        ASSERT_OK(options_parse(&o, 3, argv, &problem));
        ASSERT_STR(o.headers[0].name, "Authorization");
        ASSERT_STR(o.headers[0].value, "Bearer s3cret");
        ASSERT_STR(spec, "Authorization:**************");
        TEXT(command);
        options_add_command(&o, &command);
        ASSERT_STR(text_string(&command), "resha fetch http://h/");
        static const char *const bad[] = { "-H|s3cret|http://h/", "-H|A b: s3cret|http://h/",
                                           "-H|X: s3cret\r\nY: z|http://h/" };
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                const char *text = parse(&o, bad[i]);
                if (!*text || strstr(text, "s3cret"))
                        FAIL("%s: '%s'", bad[i], text);
        }
}

TEST(the_command_has_no_password_and_tells_plans_apart)
{
        OPTIONS(o);
        TEXT(a);
        TEXT(b);
        char x[17], y[17];
        ASSERT_STR(parse(&o, "http://me:s3cret@h/a b"), "");
        options_add_command(&o, &a);
        ASSERT_STR(text_string(&a), "resha fetch 'http://h/a b'");
        options_fingerprint(text_string(&a), x);
        ASSERT_STR(parse(&o, "http://me:other@h/a b|-c|50|--timeout|1s|-q"), "");
        options_add_command(&o, &b);
        options_fingerprint(text_string(&b), y);
        ASSERT_STR(x, y); /* how fast does not matter */
        ASSERT_STR(parse(&o, "http://h/a b|--first|2"), "");
        text_clear(&b);
        options_add_command(&o, &b);
        options_fingerprint(text_string(&b), y);
        ASSERT_TRUE(strcmp(x, y) != 0);
}

/* Every --name in the help is an option, and every option that people may write is in the help. */
TEST(help_and_table_say_the_same)
{
        char name[64];
        int in_help = 0;
        for (const char *p = help_fetch; (p = strstr(p, "--")); p++) {
                size_t n = strspn(p + 2, "abcdefghijklmnopqrstuvwxyz-");
                if (n == 0)
                        continue;
                snprintf(name, sizeof name, "%.*s", (int)n, p + 2);
                if (!options_has(name))
                        FAIL("--%s is in the help and does not exist", name);
                in_help++;
        }
        ASSERT_TRUE(in_help > 20);
        for (size_t i = 0; options_name(i); i++) {
                snprintf(name, sizeof name, "--%s", options_name(i));
                if (!strstr(help_fetch, name))
                        FAIL("%s is not in the help", name);
        }
        for (const char *p = help_fetch, *nl; (nl = strchr(p, '\n')); p = nl + 1)
                if (nl - p > 80)
                        FAIL("a line of %d columns", (int)(nl - p));
}
