/* SPDX-License-Identifier: MIT */
/* Answers of an inspector, as `resha ps`, `tree` and `stack` read and draw them: whatever they say, what is drawn is
 * lines of text that a terminal shows. */

#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <resha/alloc.h>

#include "look/pictures.h"

static void check(const struct text *t)
{
        if (t->failed)
                return;
        for (size_t i = 0; i < t->len; i++)
                if ((unsigned char)t->data[i] < ' ' && t->data[i] != '\n')
                        abort();
        if (t->len && t->data[t->len - 1] != '\n')
                abort();
}

static void draw(struct view *v, bool all)
{
        const struct asked a = { .command = "ps", .all = all };
        TEXT(t);
        if (ps_add(v, &a, &t) == 0)
                check(&t);
        text_clear(&t);
        if (tree_add(v, all, &t) == 0)
                check(&t);
        text_clear(&t);
        if (stack_add(v, all, &t) == 0)
                check(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        VIEW(v);
        for (size_t at = 0, n; at < size; at += n + 1) {
                const uint8_t *nl = memchr(data + at, '\n', size - at);
                n = nl ? (size_t)(nl - data) - at : size - at;
                char *line = resha_malloc(n + 1); /* no longer than it must be */
                if (!line)
                        abort();
                memcpy(line, data + at, n);
                (void)snapshot_add(&v.snapshot, line, n);
                resha_free(line);
        }
        if (view_init(&v) < 0)
                return 0;
        v.screen = (struct screen){ .width = size % 3 ? 0 : 20 + size % 80, .ascii = size % 2 };
        draw(&v, false);
        if (v.s->tasks.n < 1000)
                draw(&v, true);
        return 0;
}
