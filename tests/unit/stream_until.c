/* SPDX-License-Identifier: MIT */
/* Streams that are read up to something: a line's end, one of several separators, the end; what does not fit. On a kind
 * of stream that gives its text in steps of every size: what is found may not depend on how it came. */

#include "pair.h"

/* ---- a tape ---- */

struct tape {
        const char *text;
        size_t left, step;
};

static ssize_t tape_read(void *impl, void *buf, size_t size)
{
        struct tape *t = impl;
        size_t n = t->left < t->step ? t->left : t->step;

        n = n < size ? n : size;
        memcpy(buf, t->text, n);
        t->text += n;
        t->left -= n;
        return (ssize_t)n;
}

static void tape_close(void *impl)
{
        (void)impl;
}

static const resha_stream_ops tape_ops = { .kind = "tape", .read = tape_read, .close = tape_close };

/* fn() with a stream of text, once for each step. */
static void at_every_step(const char *text, size_t size, void (*fn)(resha_stream *s))
{
        for (size_t step = 1; step <= size; step++) {
                struct tape t = { .text = text, .left = size, .step = step };
                resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
                ASSERT_OK(resha_stream_new(&tape_ops, &t, &s));
                fn(s);
        }
}

/* ---- lines ---- */

static void expect_line(resha_stream *s, const char *line)
{
        char buf[32];

        ASSERT_EQ(resha_read_line(s, buf, sizeof buf), strlen(line));
        ASSERT_STR(buf, line);
}

static void lines_to_the_end(resha_stream *s)
{
        static const char *const lines[] = { "one\n", "\n", "two\n", "three", "", "" };

        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
                expect_line(s, lines[i]);
}

/* semantics 246 same
 * asyncio: readline() at the end returns the unfinished line, then nothing.
 * resha: so does resha_read_line(): the last line may lack its end, and the next call returns 0. */
TASK(semantics_246_last_line_may_lack_its_end)
{
        at_every_step("one\n\ntwo\nthree", 14, lines_to_the_end);
        return 0;
}

static void line_that_is_too_long(resha_stream *s)
{
        char buf[32];

        for (size_t size = 2; size <= 11; size++)
                ASSERT_EQ(resha_read_line(s, buf, size), -EMSGSIZE);
        ASSERT_EQ(resha_read_line(s, buf, 12), 11);
        ASSERT_STR(buf, "0123456789\n");
        expect_line(s, "rest\n");
}

/* semantics 248 better
 * asyncio: a line beyond the limit raises, and the line, or all that is buffered, is thrown away.
 * resha: -EMSGSIZE, as for every piece that does not fit, and nothing is lost: a larger buffer gets the line. */
TASK(semantics_248_line_that_does_not_fit_is_not_lost)
{
        at_every_step("0123456789\nrest\n", 16, line_that_is_too_long);
        return 0;
}

/* Whether more comes behind the last byte that there is room for, only a look can tell. */
static void last_line_that_just_fits(resha_stream *s)
{
        char buf[8];

        expect_line(s, "one\n");
        ASSERT_EQ(resha_read_line(s, buf, 5), -EMSGSIZE);
        ASSERT_EQ(resha_read_line(s, buf, 6), 5);
        ASSERT_STR(buf, "three");
        ASSERT_EQ(resha_read_line(s, buf, 6), 0);
}

TASK(last_line_without_its_end_may_fill_the_buffer)
{
        at_every_step("one\nthree", 9, last_line_that_just_fits);
        return 0;
}

/* ---- separators ---- */

static ssize_t until(resha_stream *s, const char *separator, char *buf, size_t size)
{
        return resha_read_until(s, &(resha_separator){ .text = separator }, 1, buf, size, NULL);
}

static void piece_that_is_too_long(resha_stream *s)
{
        char buf[32];

        ASSERT_EQ(until(s, "\r\n\r\n", buf, 8), -EMSGSIZE);
        ASSERT_HAS(resha_error_of(-EMSGSIZE)->text, ", and there is room for 7");
        ASSERT_EQ(until(s, "#", buf, 16), -EMSGSIZE);
        ASSERT_EQ(until(s, "\r\n\r\n", buf, 8), -EMSGSIZE);
        ASSERT_STR(resha_error_of(-EMSGSIZE)->text, "the separator ends at byte 15, and there is room for 7");
        ASSERT_EQ(until(s, "\r\n\r\n", buf, 15), -EMSGSIZE);
        ASSERT_EQ(until(s, "\r\n\r\n", buf, 16), 15);
        ASSERT_STR(buf, "head: value\r\n\r\n");
        ASSERT_EQ(until(s, "#", buf, sizeof buf), 4);
        ASSERT_STR(buf, "body");
}

/* semantics 247 same
 * asyncio: readuntil() that meets its limit says where the separator was, or how much was searched; the data stay.
 * resha: resha_read_until() gives -EMSGSIZE when the piece does not fit in the caller's buffer; the record says where
 * the separator ends or how far it was looked for, and every byte is still there to be read. */
TASK(semantics_247_piece_that_does_not_fit_stays_in_the_stream)
{
        at_every_step("head: value\r\n\r\nbody", 19, piece_that_is_too_long);
        return 0;
}

static void how_far_it_was_looked(resha_stream *s)
{
        char buf[8], text[80];

        ASSERT_EQ(until(s, "#", buf, sizeof buf), -EMSGSIZE);
        for (int n = 8; n <= 19; n++) {
                snprintf(text, sizeof text, "no separator in the first %d bytes, and there is room for 7", n);
                if (strcmp(resha_error_of(-EMSGSIZE)->text, text) == 0)
                        return; /* as many as had come */
        }
        FAIL("\"%s\"", resha_error_of(-EMSGSIZE)->text);
}

TASK(semantics_247_record_says_how_far_the_separator_was_looked_for)
{
        at_every_step("head: value\r\n\r\nbody", 19, how_far_it_was_looked);
        return 0;
}

static void cut_short(resha_stream *s)
{
        const resha_separator ends[] = { { .text = "\r\n" }, { .text = "\n" } };
        size_t which = 7;
        char buf[32];

        ASSERT_EQ(resha_read_until(s, ends, 2, buf, sizeof buf, &which), 5);
        ASSERT_STR(buf, "one\r\n");
        ASSERT_EQ(which, 0);
        ASSERT_EQ(resha_read_until(s, ends, 2, buf, sizeof buf, &which), 2);
        ASSERT_STR(buf, "tw");
        ASSERT_EQ(which, 2);
        for (int i = 0; i < 2; i++) {
                ASSERT_EQ(resha_read_until(s, ends, 2, buf, sizeof buf, &which), 0);
                ASSERT_EQ(which, 2);
        }
}

/* semantics 249 same
 * asyncio: readuntil() that meets the end raises an error with what there was, its expected size unknown.
 * resha: resha_read_until() returns the last bytes, and the index that it gives for the separator is none's; the next
 * call returns 0. */
TASK(semantics_249_piece_cut_short_by_the_end_is_told_from_a_whole_one)
{
        at_every_step("one\r\ntw", 7, cut_short);
        return 0;
}

struct found {
        const char *text; /* of the stream */
        const char *separators[4];
        const char *piece;
        size_t which;
};

static const struct found found[] = {
        { "a;b,c", { ",", ";" }, "a;", 1 },
        { "a--end", { "--end", "en" }, "a--en", 1 },  /* begins later, ends first */
        { "a--end", { "nd", "--end" }, "a--end", 0 }, /* both end there */
        { "a--end", { "--end", "nd" }, "a--end", 0 },
        { "line\r\n", { "\n", "\r\n" }, "line\r\n", 0 },
        { "aab", { "ab", "aab", "b" }, "aab", 0 },
        { "abababc", { "abc", "babc", "#" }, "abababc", 0 },
};
static const struct found *looked_for;

static void expect_found(resha_stream *s)
{
        const struct found *f = looked_for;
        resha_separator separators[4];
        size_t n = 0, which = 9;
        char buf[32];

        for (; n < 4 && f->separators[n]; n++)
                separators[n] = (resha_separator){ .text = f->separators[n] };
        ASSERT_EQ(resha_read_until(s, separators, n, buf, sizeof buf, &which), strlen(f->piece));
        ASSERT_STR(buf, f->piece);
        ASSERT_EQ(which, f->which);
}

/* semantics 250 same
 * asyncio: of several separators the one whose match ends first wins.
 * resha: of the separators of resha_read_until() the one that ends first wins, and of two that end together the one
 * that the caller named first; which one it was is told. */
TASK(semantics_250_separator_that_ends_first_wins)
{
        for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
                looked_for = &found[i];
                at_every_step(found[i].text, strlen(found[i].text), expect_found);
        }
        return 0;
}

/* ---- against the obvious way ---- */

static uint64_t dice = 1;

static unsigned roll(unsigned n)
{
        dice = dice * 6364136223846793005 + 1442695040888963407;
        return (unsigned)(dice >> 33) % n;
}

static void roll_text(char *text, size_t size)
{
        for (size_t i = 0; i < size; i++)
                text[i] = (char)('a' + roll(2));
        text[size] = '\0';
}

/* The length of the piece at the start of text, and the separator: by looking at each byte whether one ends there. */
static size_t obvious(const char *text, char separators[][4], size_t n, size_t *ret_which)
{
        size_t size = strlen(text);

        for (size_t end = 1; end <= size; end++)
                for (*ret_which = 0; *ret_which < n; ++*ret_which) {
                        size_t length = strlen(separators[*ret_which]);
                        if (length <= end && memcmp(text + end - length, separators[*ret_which], length) == 0)
                                return end;
                }
        *ret_which = n;
        return size;
}

static void pieces_of_a_roll(void)
{
        char text[41], names[3][4], buf[48];
        resha_separator separators[3];
        size_t n = 1 + roll(3), at = 0, which, expected;
        ssize_t got;

        roll_text(text, 40);
        for (size_t i = 0; i < n; i++) {
                roll_text(names[i], 1 + roll(3));
                separators[i] = (resha_separator){ .text = names[i] };
        }
        struct tape t = { .text = text, .left = 40, .step = 1 + roll(9) };
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        ASSERT_OK(resha_stream_new(&tape_ops, &t, &s));
        do {
                got = resha_read_until(s, separators, n, buf, sizeof buf, &which);
                ASSERT_EQ(got, obvious(text + at, names, n, &expected));
                ASSERT_EQ(memcmp(buf, text + at, (size_t)got), 0);
                ASSERT_EQ(which, expected);
                at += (size_t)got;
        } while (got > 0);
        ASSERT_EQ(at, 40);
}

TASK(pieces_are_those_of_the_obvious_way)
{
        for (int i = 0; i < 3000; i++)
                pieces_of_a_roll();
        return 0;
}

static void separators_with_zeros(resha_stream *s)
{
        const resha_separator separators[] = { { "--\0", 3 }, { "\0", 1 } };
        char buf[24];
        size_t which;

        ASSERT_EQ(resha_read_until(s, separators, 2, buf, sizeof buf, &which), 6);
        ASSERT_EQ(which, 1);
        ASSERT_EQ(resha_read_until(s, separators, 2, buf, sizeof buf, &which), 11);
        ASSERT_EQ(memcmp(buf, "--second--", 11), 0);
        ASSERT_EQ(which, 0);
        ASSERT_EQ(resha_read_until(s, separators, 2, buf, sizeof buf, &which), 6);
        ASSERT_STR(buf, "third-");
        ASSERT_EQ(which, 2);
}

TASK(separators_may_hold_zeros)
{
        at_every_step("first\0--second--\0third-", 23, separators_with_zeros);
        return 0;
}

static void refuse_nonsense(resha_stream *s)
{
        const resha_separator one = { .text = "x" }, two[] = { { .text = "x" }, { .text = "" } }, null = { NULL, 1 };
        char buf[8];
        size_t which = 5;

        ASSERT_EQ(resha_read_until(s, NULL, 0, buf, sizeof buf, &which), -EINVAL);
        ASSERT_EQ(resha_read_until(s, two, 2, buf, sizeof buf, &which), -EINVAL);
        ASSERT_EQ(resha_read_until(s, &null, 1, buf, sizeof buf, &which), -EINVAL);
        ASSERT_EQ(resha_read_until(s, &one, 1, buf, 1, &which), -EINVAL);
        ASSERT_EQ(resha_read_until(s, &one, 1, buf, SIZE_MAX, &which), -EINVAL);
        ASSERT_EQ(which, 5);
        ASSERT_EQ(resha_read_until(s, &one, 1, buf, sizeof buf, &which), 1);
}

TASK(separators_that_make_no_sense_are_refused)
{
        at_every_step("x", 1, refuse_nonsense);
        return 0;
}

/* ---- cancelled ---- */

static int read_until_hash(void *arg)
{
        char buf[16];

        return (int)until(arg, "#", buf, sizeof buf);
}

TASK(a_cancelled_search_loses_nothing)
{
        char buf[16];

        PAIR(p);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        speak(&g, p.here, "abc", false);
        ASSERT_EQ(resha_timeout(RESHA_MS(20), read_until_hash, p.there), -ETIME);
        speak(&g, p.here, "d#", false);
        ASSERT_EQ(until(p.there, "#", buf, sizeof buf), 5);
        ASSERT_STR(buf, "abcd#");
        return resha_group_end(&g, 0);
}
