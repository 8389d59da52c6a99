/* SPDX-License-Identifier: MIT */

/* Made-up stories. A title, a score and the rest follow from the rank alone, so that what the demo stores and prints is
 * the same everywhere. */

#include "stories.h"

#include "json.h"

#include <string.h>

static const char *const titles[] = {
        "A text editor in 900 lines of C",
        "Show HN: I mapped every public drinking fountain",
        "What the kernel does when you press a key",
        "The case for boring databases",
        "How we cut our build from 40 minutes to 3",
        "A visual guide to consistent hashing",
        "Ask HN: What do you measure about yourself?",
        "Reading a 1983 disk with a logic analyser",
        "Why our clocks drift, and by how much",
        "Fibres, threads and the price of a switch",
        "Show HN: A sundial you can print",
        "The \"last mile\" of structured concurrency",
        "Sorting a terabyte on a laptop",
        "A compiler bug that took two years to find",
        "Notes on running one server for a decade",
        "The lost art of the man page",
        "How bicycles stay up: the argument goes on",
        "Small joys of plain text",
        "SQLite as a message queue, measured",
        "An atlas of undersea cables",
        "What 10,000 timers cost",
        "Ask HN: Which tools have you used for 20 years?",
        "The architecture of a quiet fan",
        "Teaching recursion with Russian dolls",
};

static const char *const authors[] = { "asha", "bram", "chiara", "devi", "emeka", "farah", "goran", "hana" };

static uint64_t mix(uint64_t x)
{
        x = (x ^ x >> 31) * UINT64_C(0x7fb5d329728ea185);
        x = (x ^ x >> 27) * UINT64_C(0x81dadef4bc2dd44d);
        return x ^ x >> 33;
}

void stories_add_ids(struct text *t, uint64_t n)
{
        text_putc(t, '[');
        for (uint64_t i = 0; i < n; i++)
                text_printf(t, i ? ",%llu" : "%llu", (unsigned long long)(STORIES_FIRST_ID + i));
        text_putc(t, ']');
}

void stories_add(struct text *t, uint64_t rank, size_t size)
{
        uint64_t h = mix(rank);
        size_t from = t->len;
        const char *title = titles[(rank - 1) % (sizeof titles / sizeof titles[0])];
        text_putc(t, '{');
        json_field_string(t, "by", authors[h % 8]);
        json_field_int(t, "descendants", (int64_t)(h >> 8 & 255));
        json_field_int(t, "id", (int64_t)(STORIES_FIRST_ID + rank - 1));
        json_field_name(t, "kids");
        text_printf(t, "[%llu,%llu]", (unsigned long long)(500000 + rank * 10),
                    (unsigned long long)(500001 + rank * 10));
        json_field_int(t, "score", (int64_t)(21 + (h >> 16) % 680));
        json_field_int(t, "time", (int64_t)(1760000000 + rank * 97));
        json_field_string(t, "title", title);
        json_field_string(t, "type", "story");
        json_field_name(t, "url");
        text_printf(t, "\"https://example.org/%llu\"", (unsigned long long)rank);
        static const char filler[] =
                "lorem ipsum dolor sit amet, consetetur sadipscing elitr, sed diam nonumy eirmod; ";
        if (t->len - from + 12 < size) {
                json_field_name(t, "text");
                text_putc(t, '"');
                while (t->len - from + 2 < size) {
                        size_t left = size - (t->len - from) - 2;
                        text_add(t, filler, left < sizeof filler - 1 ? left : sizeof filler - 1);
                }
                text_putc(t, '"');
        }
        text_putc(t, '}');
}
