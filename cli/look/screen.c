/* SPDX-License-Identifier: MIT */

/* Text made safe for a terminal, and cut to its width. */

#include "screen.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "json.h"
#include "stage.h"

struct screen screen_here(void)
{
        struct stage_style style = stage_style_here();
        struct winsize ws = { .ws_col = 0 };
        bool known = style.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0;
        return (struct screen){
                .terminal = style.terminal, .ascii = style.ascii, .color = style.color, .width = known ? ws.ws_col : 0
        };
}

/* C1 controls, marks that turn the direction of text or hide it, and separators of lines: in UTF-8. */
static bool is_harmful(const unsigned char *p, size_t n)
{
        if (n == 2)
                return (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c);
        if (n != 3)
                return false;
        bool general = p[0] == 0xe2 && (p[1] == 0x80 || p[1] == 0x81);
        bool marks = general && p[1] == 0x80 && ((p[2] >= 0x8b && p[2] <= 0x8f) || (p[2] >= 0xa8 && p[2] <= 0xae));
        bool isolates = general && p[1] == 0x81 && p[2] >= 0xa0 && p[2] <= 0xaf;
        return marks || isolates || (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);
}

/* Length of the character at p, and whether it may be shown. */
static size_t character(const unsigned char *p, size_t left, bool *ret_fine)
{
        size_t n = utf8_length(p, left);
        *ret_fine = n == 1 ? p[0] >= ' ' && p[0] != 0x7f : n > 1 && !is_harmful(p, n);
        return n ? n : 1;
}

void screen_add(const struct screen *screen, struct text *t, const char *s)
{
        const unsigned char *p = (const unsigned char *)s;
        size_t size = strlen(s);
        while (size) {
                size_t run = 0;
                bool fine;
                while (run < size && p[run] >= ' ' && p[run] < 0x7f)
                        run++;
                text_add(t, p, run);
                p += run;
                size -= run;
                if (!size)
                        break;
                size_t n = character(p, size, &fine);
                if (fine && !screen->ascii)
                        text_add(t, p, n);
                else
                        text_putc(t, '?');
                p += n;
                size -= n;
        }
}

void screen_add_raw(struct text *t, const char *data, size_t size, bool json)
{
        const unsigned char *p = (const unsigned char *)data;
        for (size_t i = 0, n; i < size; i += n) {
                size_t run = i;
                bool fine;
                while (run < size && ((p[run] >= ' ' && p[run] < 0x7f) || p[run] == '\n' || p[run] == '\t'))
                        run++;
                text_add(t, p + i, run - i);
                i = run;
                if (i == size)
                        break;
                n = character(p + i, size - i, &fine);
                if (fine)
                        text_add(t, p + i, n);
                else if (json && n == 1 && p[i] < 0x80)
                        text_printf(t, "\\u%04x", p[i]);
                else
                        text_putc(t, '?');
        }
}

size_t screen_columns(const char *s, size_t size)
{
        size_t n = 0;
        for (size_t i = 0; i < size; i++)
                n += ((unsigned char)s[i] & 0xc0) != 0x80;
        return n;
}

void screen_add_cut(const struct screen *screen, struct text *t, const char *s, size_t size, size_t columns)
{
        if (!columns || screen_columns(s, size) <= columns) {
                text_add(t, s, size);
                return;
        }
        const char *more = screen->ascii ? "..." : "\u2026";
        size_t room = screen->ascii ? columns > 3 ? columns - 3 : 0 : columns - 1, end = 0;
        for (size_t n = 0; end < size; end++) {
                n += ((unsigned char)s[end] & 0xc0) != 0x80;
                if (n > room)
                        break;
        }
        text_add(t, s, end);
        text_puts(t, more);
}

void screen_add_line(const struct screen *screen, struct text *t, const char *line, size_t size)
{
        while (size && line[size - 1] == ' ')
                size--;
        screen_add_cut(screen, t, line, size, screen->width);
        text_putc(t, '\n');
}

void screen_add_time(struct text *t, int64_t ns)
{
        if (ns >= 0 && ns < 1000000)
                text_printf(t, "%.2f ms", (double)ns / 1e6);
        else if (ns >= 0)
                text_add_duration(t, RESHA_NS(ns));
}
