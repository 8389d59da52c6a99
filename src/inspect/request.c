/* SPDX-License-Identifier: MIT */
/* Requests to the inspector: words, with one space between each two.
 *
 *     snapshot [loops] [stacks] [task=LOOP.ID]
 *     stats
 *     sample MS
 *     trace MS
 *
 * What is not exactly that is refused, and by nothing but this function. */

#include "inspect/request.h"

#include <string.h>

struct word {
        const char *text;
        size_t n;
};

/* The next word, with the space behind it taken; n 0: there is none. */
static struct word take_word(const char **line, size_t *left)
{
        struct word w = { *line, 0 };

        while (w.n < *left && w.text[w.n] != ' ')
                w.n++;
        size_t taken = w.n < *left ? w.n + 1 : w.n;
        *line += taken;
        *left -= taken;
        return w;
}

static bool is(struct word w, const char *text)
{
        return w.n == strlen(text) && memcmp(w.text, text, w.n) == 0;
}

/* From 1 to `most`, in digits; 0: it is none. */
static uint32_t number(struct word w, uint32_t most)
{
        uint64_t value = 0;

        if (w.n == 0 || w.n > 10)
                return 0;
        for (size_t i = 0; i < w.n; i++) {
                if (w.text[i] < '0' || w.text[i] > '9')
                        return 0;
                value = value * 10 + (uint64_t)(w.text[i] - '0');
        }
        return value > most ? 0 : (uint32_t)value;
}

static bool parse_task(struct word w, struct rs_request *r)
{
        static const char key[] = "task=";
        const size_t n = sizeof key - 1;
        const char *dot;

        if (w.n <= n || memcmp(w.text, key, n) != 0 || !(dot = memchr(w.text + n, '.', w.n - n)))
                return false;
        size_t at = (size_t)(dot - w.text);
        r->loop = number((struct word){ w.text + n, at - n }, UINT32_MAX);
        r->task = number((struct word){ dot + 1, w.n - at - 1 }, UINT32_MAX);
        return r->loop && r->task;
}

static const char *parse_snapshot(const char *line, size_t left, struct rs_request *r)
{
        while (left) {
                struct word w = take_word(&line, &left);
                if (is(w, "stacks") && !r->stacks)
                        r->stacks = true;
                else if (is(w, "loops") && !r->loops)
                        r->loops = true;
                else if (r->task || !parse_task(w, r))
                        return "a snapshot takes: loops, stacks, task=LOOP.ID";
        }
        return NULL;
}

static const char *parse_ms(const char *line, size_t left, struct rs_request *r)
{
        r->ms = number((struct word){ line, left }, RS_REQUEST_MS_MAX);
        return r->ms ? NULL : "it takes a number of milliseconds, 1 to 600000";
}

const char *rs_request_parse(const char *line, size_t n, struct rs_request *ret)
{
        struct rs_request r = { .kind = RS_REQUEST_SNAPSHOT };
        const char *wrong = NULL;
        size_t left = n;

        if (n > RS_REQUEST_MAX)
                return "a request is one line of at most 256 bytes";
        if (n && line[n - 1] == ' ')
                return "a request ends with a word";
        struct word w = take_word(&line, &left);
        if (is(w, "snapshot"))
                wrong = parse_snapshot(line, left, &r);
        else if (is(w, "stats") && !left)
                r.kind = RS_REQUEST_STATS;
        else if (is(w, "sample") && !(wrong = parse_ms(line, left, &r)))
                r.kind = RS_REQUEST_SAMPLE;
        else if (!wrong && is(w, "trace") && !(wrong = parse_ms(line, left, &r)))
                r.kind = RS_REQUEST_TRACE;
        else if (!wrong)
                wrong = "no such request: snapshot, stats, sample MS, trace MS";
        if (!wrong)
                *ret = r;
        return wrong;
}
