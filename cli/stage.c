/* SPDX-License-Identifier: MIT */

/* The stage. What has been drawn on a terminal is drawn over: up by as many lines as there were, and each line cleared
 * first. The task that does so lives in a background group, and ends with the act. */

#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <resha/resha.h>

enum { TITLE_WIDTH = 65 };

static bool utf8_locale(void)
{
        static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                const char *value = getenv(names[i]);
                if (value && *value)
                        return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
        return false;
}

struct stage_style stage_style_here(void)
{
        const char *value = getenv("NO_COLOR");
        bool plain = value && *value, terminal = isatty(STDOUT_FILENO);
        return (struct stage_style){ .terminal = terminal,
                                     .ascii = plain || !utf8_locale(),
                                     .color = terminal && !plain };
}

void stage_put(const struct text *t)
{
        fwrite(text_string(t), 1, t->len, stdout);
        fflush(stdout);
}

struct lanes_style stage_lanes_style(const struct stage_style *style)
{
        return (struct lanes_style){
                .ascii = style->ascii, .color = style->color, .unit = RESHA_MS(200), .columns = 3, .indent = 3
        };
}

static void draw(struct stage *s, struct text *t)
{
        text_printf(t, "%-*s", TITLE_WIDTH, s->title);
        text_printf(t, "%.1f s\n", (double)lanes_length(&s->lanes).ns / 1e9);
        struct lanes_style style = stage_lanes_style(&s->style);
        style.show = s->show;
        unsigned lines = 1 + lanes_draw(&s->lanes, &style, t);
        if (s->show && s->lanes.n_lanes > s->show) {
                text_printf(t, "   ... %u %s\n", s->lanes.n_lanes - s->show, s->more);
                lines++;
        }
        s->drawn = lines;
}

static void redraw(struct stage *s)
{
        TEXT(t);
        TEXT(lines);
        if (s->drawn)
                text_printf(&t, "\033[%uA", s->drawn);
        draw(s, &lines);
        for (char *p = lines.data, *nl; p && (nl = strchr(p, '\n')); p = nl + 1) {
                text_puts(&t, "\033[K");
                text_add(&t, p, (size_t)(nl + 1 - p));
        }
        stage_put(&t);
}

static int redraw_often(void *arg)
{
        resha_ticker tick;
        int rc;
        resha_ticker_init(&tick, RESHA_MS(50));
        while ((rc = resha_ticker_next(&tick)) > 0)
                redraw(arg);
        return rc;
}

int stage_play(struct stage *s, resha_fn *fn, void *arg)
{
        TEXT(t);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        lanes_init(&s->lanes);
        if (s->style.terminal)
                resha_spawn(&g, redraw_often, s);
        int rc = resha_group_end(&g, fn(arg));
        if (rc < 0)
                return rc;
        if (s->style.terminal)
                redraw(s);
        else
                draw(s, &t);
        stage_put(&t);
        return rc;
}
