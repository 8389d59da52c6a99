/* SPDX-License-Identifier: MIT */
/* RESHA_TIMELINE=1: the picture at the end of a run.
 *
 *     greet "Alice"    ▌~~~~~~~~~~~~~~~~~~▌ 2.0 s     ▌ runs   ~ waits   x cancelled
 *     greet "Bob"      ▌~~~~~~~~~~~~~~~~~~▌
 *
 * A lane is a task, in order of spawn, the first MAX_LANES of them. All lanes share one scale: cell 0 is the start of
 * the run, the last cell its end, an instant belongs to the nearest cell. What a cell shows:
 *
 *     x   the task was cancelled here
 *     ▌   it ran for at least half of this time; or for a moment only, but began or ended here; or for a moment, and
 *         the cell before does not say so already. So a task that wakes up all the time and hardly computes reads
 *         ▌~▌~▌~
 *     ~   it waited, or was ready and had to wait for others
 *
 * The main task has no lane if all that it did was to wait for its children: it would say nothing.
 *
 * It is drawn from the event ring, which forgets: a task whose spawn is lost is called by its number, and the picture
 * says how many events are missing. No memory is allocated. */

#include "inspect/timeline.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sys/terminal.h"

enum { MAX_LANES = 40, MAX_CELLS = 120, MIN_CELLS = 20, MAX_LINE = 1024, DEFAULT_WIDTH = 80, MIN_WIDTH = 40 };

enum state { ABSENT, WAITS, RUNS, ENDED };

enum cell { NOTHING, WAITED, RAN, CANCELLED };

struct lane {
        uint32_t task;
        enum state state;
        bool main;   /* nobody spawned it */
        bool silent; /* has only waited for its children so far */
        bool ran;
        int64_t since; /* when it got into `state` */
        char name[sizeof((struct rs_event *)0)->label + 24];
        unsigned char cells[MAX_CELLS]; /* enum cell */
        int64_t busy[MAX_CELLS];        /* ns that it ran in each */
};

struct picture {
        int64_t start, end;
        int cells;
        bool ascii;
        size_t lanes, more;
        uint64_t lost;                   /* events that the ring has forgotten */
        struct lane lane[MAX_LANES + 1]; /* one may not be shown */
};

/* ---- drawing into lanes ---- */

__extension__ typedef __int128 wide;

/* The instant where cell c begins: half a step before its middle. */
static int64_t cell_start(const struct picture *p, int c)
{
        int64_t span = p->end - p->start;

        return p->cells < 2 ? p->start : p->start + (int64_t)((wide)span * (2 * c - 1) / (2 * (p->cells - 1)));
}

static int cell_at(const struct picture *p, int64_t at)
{
        int64_t span = p->end - p->start;

        if (span <= 0 || at <= p->start)
                return 0;
        if (at >= p->end)
                return p->cells - 1;
        return (int)(((wide)(at - p->start) * 2 * (p->cells - 1) + span) / ((wide)span * 2));
}

static void paint(struct lane *l, int cell, enum cell what)
{
        if (what > l->cells[cell])
                l->cells[cell] = (unsigned char)what;
}

static void paint_wait(const struct picture *p, struct lane *l, int64_t from, int64_t to)
{
        for (int c = cell_at(p, from); c <= cell_at(p, to); c++)
                paint(l, c, WAITED);
}

static void paint_run(const struct picture *p, struct lane *l, int64_t from, int64_t to)
{
        int first = cell_at(p, from);

        for (int c = first; c <= cell_at(p, to); c++) {
                int64_t begin = cell_start(p, c), end = cell_start(p, c + 1);
                l->busy[c] += (to < end ? to : end) - (from > begin ? from : begin);
                paint(l, c, l->busy[c] > (end - begin) / 2 ? RAN : WAITED);
        }
        if (!l->ran || first == 0 || l->cells[first - 1] != RAN)
                paint(l, first, RAN);
        l->ran = true;
}

static void enter(const struct picture *p, struct lane *l, enum state next, int64_t at)
{
        if (l->state == WAITS)
                paint_wait(p, l, l->since, at);
        else if (l->state == RUNS)
                paint_run(p, l, l->since, at);
        if (next == ENDED && l->state != ABSENT)
                paint(l, cell_at(p, at), RAN);
        l->state = next;
        l->since = at;
}

/* ---- reading the ring ---- */

/* What the calls that wait for children say they wait for. */
static bool waits_for_children(const char *what)
{
        static const char *const names[] = { "children", "place in group" };

        for (size_t i = 0; what && i < sizeof names / sizeof names[0]; i++)
                if (strcmp(what, names[i]) == 0)
                        return true;
        return false;
}

static void set_name(struct lane *l, const char *name)
{
        snprintf(l->name, sizeof l->name, "%s", name);
}

/* The lane of the event's task, made when it is new; NULL if there are enough. */
static struct lane *lane_of(struct picture *p, const struct rs_event *e)
{
        struct lane *l;

        for (size_t i = p->lanes; i-- > 0;)
                if (p->lane[i].task == e->task)
                        return &p->lane[i];
        if (p->lanes == MAX_LANES + 1) {
                p->more += e->kind == RS_EVENT_SPAWN;
                return NULL;
        }
        l = &p->lane[p->lanes++];
        l->task = e->task;
        l->silent = true;
        if (e->kind == RS_EVENT_SPAWN)
                return l;
        /* Its spawn is forgotten: what it did before can be told from what it does now. */
        snprintf(l->name, sizeof l->name, "task %u", (unsigned)e->task);
        l->state = e->kind == RS_EVENT_PARK || e->kind == RS_EVENT_END ? RUNS : WAITS;
        l->since = p->start;
        return l;
}

static void take(struct picture *p, const struct rs_event *e)
{
        struct lane *l = lane_of(p, e);

        if (!l)
                return;
        switch ((enum rs_event_kind)e->kind) {
        case RS_EVENT_SPAWN:
                l->main = e->parent == 0;
                set_name(l, e->name ? e->name : "task");
                enter(p, l, WAITS, e->at);
                break;
        case RS_EVENT_RUN: enter(p, l, RUNS, e->at); break;
        case RS_EVENT_PARK:
                l->silent = l->silent && waits_for_children(e->name);
                enter(p, l, WAITS, e->at);
                break;
        case RS_EVENT_CANCEL: paint(l, cell_at(p, e->at), CANCELLED); break;
        case RS_EVENT_END: enter(p, l, ENDED, e->at); break;
        case RS_EVENT_NAME: set_name(l, e->label); break;
        }
}

static void read_ring(struct picture *p, const struct rs_ring *ring)
{
        uint64_t first = ring->count > RS_RING_EVENTS ? ring->count - RS_RING_EVENTS : 0;

        p->lost = first;
        if (first > 0)
                p->start = ring->events[first % RS_RING_EVENTS].at;
        for (uint64_t i = first; i < ring->count; i++)
                take(p, &ring->events[i % RS_RING_EVENTS]);
        for (size_t i = 0; i < p->lanes; i++)
                if (p->lane[i].state != ENDED)
                        enter(p, &p->lane[i], ENDED, p->end);
}

static bool shown(const struct picture *p, const struct lane *l)
{
        return !l->main || !l->silent || p->lanes == 1;
}

/* ---- text ---- */

struct line {
        size_t n;
        char text[MAX_LINE];
};

static void append(struct line *l, const char *s)
{
        size_t n = strlen(s);

        if (n > sizeof l->text - 1 - l->n)
                n = sizeof l->text - 1 - l->n;
        memcpy(l->text + l->n, s, n);
        l->n += n;
        l->text[l->n] = 0;
}

static void pad(struct line *l, int spaces)
{
        while (spaces-- > 0)
                append(l, " ");
}

static void flush(struct line *l, int fd)
{
        while (l->n > 0 && l->text[l->n - 1] == ' ')
                l->n--;
        dprintf(fd, "%.*s\n", (int)l->n, l->text);
        l->n = 0;
}

/* Columns of UTF-8 text, if each character takes one. */
static int columns(const char *s)
{
        int n = 0;

        for (; *s; s++)
                n += ((unsigned char)*s & 0xc0) != 0x80;
        return n;
}

/* Control characters would spoil the picture, and a cut label may end within a character. */
static void clean(char *s, bool ascii)
{
        size_t n = strlen(s), back = 0;

        while (back < n && back < 3 && ((unsigned char)s[n - 1 - back] & 0xc0) == 0x80)
                back++;
        if (back < n) {
                unsigned char lead = (unsigned char)s[n - 1 - back];
                size_t needs = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
                if (lead >= 0x80 && back < needs)
                        s[n - 1 - back] = 0;
        }
        for (; *s; s++)
                if ((unsigned char)*s < ' ' || *s == 0x7f || (ascii && (unsigned char)*s >= 0x80))
                        *s = '?';
}

struct duration {
        char text[32];
};

static struct duration in_words(int64_t ns)
{
        struct duration d;

        if (ns <= 0 || ns >= INT64_C(1000000000))
                snprintf(d.text, sizeof d.text, " %.1f s", (double)ns / 1e9);
        else if (ns >= 1000000)
                snprintf(d.text, sizeof d.text, " %.1f ms", (double)ns / 1e6);
        else
                snprintf(d.text, sizeof d.text, " %.1f us", (double)ns / 1e3);
        return d;
}

static const char *legend(const struct picture *p)
{
        return p->ascii ? "# runs   ~ waits   x cancelled" : "▌ runs   ~ waits   x cancelled";
}

static void append_cells(const struct picture *p, const struct lane *l, struct line *line)
{
        for (int c = 0; c < p->cells; c++)
                switch ((enum cell)l->cells[c]) {
                case NOTHING: append(line, " "); break;
                case WAITED: append(line, "~"); break;
                case RAN: append(line, p->ascii ? "#" : "▌"); break;
                case CANCELLED: append(line, "x"); break;
                }
}

enum { GAP = 2, LEGEND_GAP = 5, LEGEND_WIDTH = 30 };

static void print(struct picture *p, int name_width, bool legend_apart, int fd)
{
        struct line line = { 0 };
        size_t printed = 0;

        for (size_t i = 0; i < p->lanes; i++) {
                const struct lane *l = &p->lane[i];
                if (!shown(p, l))
                        continue;
                if (printed == MAX_LANES) {
                        p->more++;
                        continue;
                }
                append(&line, l->name);
                pad(&line, name_width + GAP - columns(l->name));
                append_cells(p, l, &line);
                if (printed++ == 0) {
                        append(&line, in_words(p->end - p->start).text);
                        pad(&line, legend_apart ? 0 : LEGEND_GAP);
                        append(&line, legend_apart ? "" : legend(p));
                }
                flush(&line, fd);
        }
        if (p->more > 0)
                dprintf(fd, "... %zu more lanes like these\n", p->more);
        if (p->lost > 0)
                dprintf(fd, "... %llu earlier events are forgotten: the picture begins after them\n",
                        (unsigned long long)p->lost);
        if (legend_apart)
                dprintf(fd, "%s\n", legend(p));
}

/* ---- the page ---- */

static bool is_utf8(void)
{
        static const char *const variables[] = { "LC_ALL", "LC_CTYPE", "LANG" };

        for (size_t i = 0; i < 3; i++) {
                const char *value = getenv(variables[i]);
                if (value && *value)
                        return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
        }
        return false;
}

/* The names decide how much room the cells have, so they are read before the scale is known. */
static int find_names(struct picture *p, const struct rs_ring *ring)
{
        int width = 0;

        p->cells = 1;
        read_ring(p, ring);
        for (size_t i = 0; i < p->lanes; i++) {
                clean(p->lane[i].name, p->ascii);
                if (shown(p, &p->lane[i]) && columns(p->lane[i].name) > width)
                        width = columns(p->lane[i].name);
        }
        return width;
}

void rs_timeline_print(const struct rs_ring *ring, int64_t start, int64_t end, int fd)
{
        struct picture p = { .start = start, .end = end };
        int width = rs_terminal_width(fd), names, room, cells;
        bool apart = false;

        if (width < MIN_WIDTH)
                width = DEFAULT_WIDTH;
        p.ascii = getenv("NO_COLOR") || !is_utf8();
        names = find_names(&p, ring);
        if (p.lanes == 0)
                return;
        room = width - names - GAP - (int)strlen(in_words(end - p.start).text);
        cells = room - LEGEND_GAP - LEGEND_WIDTH;
        if (cells < MIN_CELLS) {
                apart = true;
                cells = room;
        }
        cells = cells > MAX_CELLS ? MAX_CELLS : cells < 10 ? 10 : cells / 10 * 10;
        if (end <= p.start)
                cells = 1;
        p = (struct picture){ .start = start, .end = end, .cells = cells, .ascii = p.ascii };
        read_ring(&p, ring);
        for (size_t i = 0; i < p.lanes; i++)
                clean(p.lane[i].name, p.ascii);
        print(&p, names, apart, fd);
}
