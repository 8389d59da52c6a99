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
 * Of the tasks after those, the ones that are called as none before them have a lane for each name, in which all of
 * them are painted; the others are counted. Asked for, a lane says what it has waited for longest.
 *
 * It is drawn from the event ring, which forgets: the picture says how many events are missing. */

#include "inspect/timeline.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inspect/follow.h"
#include "sys/terminal.h"

enum { MAX_LANES = 40, MAX_CROWDS = 8, MAX_WAITS = 4, MAX_TASKS = 100000 };
enum { MAX_CELLS = 120, MIN_CELLS = 20, MAX_LINE = 1024, DEFAULT_WIDTH = 80, MIN_WIDTH = 40, LEAST_NAME = 24 };

enum cell { NOTHING, WAITED, RAN, CANCELLED };

struct waited {
        const char *what;
        int64_t ns;
};

struct lane {
        bool main;   /* nobody spawned it */
        bool silent; /* has only waited for its children so far */
        bool ran;
        size_t tasks; /* more than one: a crowd */
        struct waited waits[MAX_WAITS];
        char name[RS_TRACK_NAME + 24];
        unsigned char cells[MAX_CELLS]; /* enum cell */
        int64_t busy[MAX_CELLS];        /* ns that it ran in each */
};

/* What rs_track.lane is for tasks without one: how they are called is not known yet, or like others. */
enum { NAMELESS = UINT32_MAX, ALIKE = UINT32_MAX - 1 };

struct picture {
        int64_t start, end;
        int cells;
        bool ascii, waits;
        size_t lanes, crowds, more;
        uint64_t lost;                   /* events that the ring has forgotten */
        struct lane lane[MAX_LANES + 1]; /* one may not be shown */
        struct lane crowd[MAX_CROWDS];
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

/* ---- reading the ring ---- */

static struct lane *lane_of(struct picture *p, const struct rs_track *t)
{
        if (t->lane <= MAX_LANES)
                return &p->lane[t->lane];
        return t->lane < ALIKE ? &p->crowd[t->lane - MAX_LANES - 1] : NULL;
}

/* What the calls that wait for children say they wait for. */
static bool waits_for_children(const char *what)
{
        static const char *const names[] = { "children", "place in group" };

        for (size_t i = 0; what && i < sizeof names / sizeof names[0]; i++)
                if (strcmp(what, names[i]) == 0)
                        return true;
        return false;
}

static bool made(struct rs_follow *f, struct rs_track *t, const struct rs_event *e)
{
        struct picture *p = f->arg;

        t->lane = NAMELESS;
        if (p->lanes == MAX_LANES + 1)
                return true;
        struct lane *l = &p->lane[p->lanes];
        t->lane = (uint32_t)p->lanes++;
        l->silent = true;
        l->main = rs_event_kind(e) == RS_EVENT_SPAWN && e->body == 0;
        l->tasks = 1;
        snprintf(l->name, sizeof l->name, "task %u", (unsigned)t->id);
        return true;
}

/* One that has no lane of its own: in a crowd, if others have not shown what such tasks do. */
static uint32_t crowd_of(struct picture *p, const struct rs_track *t)
{
        for (size_t i = 0; i < p->lanes; i++)
                if (strcmp(p->lane[i].name, t->name) == 0)
                        return ALIKE;
        for (size_t i = 0; i < p->crowds; i++)
                if (strcmp(p->crowd[i].name, t->name) == 0)
                        return (uint32_t)(MAX_LANES + 1 + i);
        if (p->crowds == MAX_CROWDS)
                return ALIKE;
        memcpy(p->crowd[p->crowds].name, t->name, sizeof t->name);
        return (uint32_t)(MAX_LANES + 1 + p->crowds++);
}

static void named(struct rs_follow *f, struct rs_track *t)
{
        struct picture *p = f->arg;

        if (t->lane <= MAX_LANES)
                memcpy(p->lane[t->lane].name, t->name, sizeof t->name);
        if (t->lane != NAMELESS)
                return;
        t->lane = crowd_of(p, t);
        if (t->lane == ALIKE)
                p->more++;
        else
                lane_of(p, t)->tasks++;
}

/* The last place is for whatever waits for yet another thing. */
static void add_wait(struct lane *l, const struct rs_track *t, int64_t ns)
{
        size_t i = 0;

        while (i < MAX_WAITS - 1 && l->waits[i].what && strcmp(l->waits[i].what, t->what) != 0)
                i++;
        if (!l->waits[i].what)
                l->waits[i].what = t->what;
        l->waits[i].ns += ns;
}

static void span(struct rs_follow *f, struct rs_track *t)
{
        struct picture *p = f->arg;
        struct lane *l = lane_of(p, t);

        if (!l)
                return;
        if (t->state == RS_SPAN_RUN) {
                paint_run(p, l, t->since, f->now);
                return;
        }
        paint_wait(p, l, t->since, f->now);
        if (t->state == RS_SPAN_WAIT && t->what) {
                l->silent = l->silent && waits_for_children(t->what);
                add_wait(l, t, f->now - t->since);
        }
}

static void cancelled(struct rs_follow *f, struct rs_track *t, uint32_t by)
{
        struct picture *p = f->arg;
        struct lane *l = lane_of(p, t);

        (void)by;
        if (l)
                paint(l, cell_at(p, f->now), CANCELLED);
}

static void ended(struct rs_follow *f, struct rs_track *t)
{
        struct picture *p = f->arg;
        struct lane *l = lane_of(p, t);

        if (l)
                paint(l, cell_at(p, f->now), RAN);
}

/* In parts: the ring is large, and a task's stack may not be. */
static void read_ring(struct picture *p, const struct rs_ring *ring)
{
        struct rs_ring_reader reader = { .ring = ring };
        struct rs_event events[64];
        struct rs_follow f;
        size_t n;
        bool gap;

        rs_follow_init(&f, MAX_TASKS, p);
        f.guess = ring->at > ring->mask;
        f.made = made;
        f.name = named;
        f.span = span;
        f.cancelled = cancelled;
        f.ended = ended;
        while ((n = rs_ring_read(&reader, events, sizeof events / sizeof events[0], &gap)))
                for (size_t i = 0; i < n; i++) {
                        bool first = !f.timed;
                        rs_follow_take(&f, &events[i]);
                        if (first && f.timed && reader.lost)
                                p->start = f.now;
                }
        p->lost = reader.lost;
        rs_follow_end(&f, p->end);
        for (size_t i = 0; i < f.room; i++)
                if (f.tracks[i].id)
                        ended(&f, &f.tracks[i]);
        p->more += f.passed;
        rs_follow_done(&f);
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

/* What it has waited for longest: "  queue 1.2 s". */
static void append_longest(const struct lane *l, struct line *line)
{
        const struct waited *longest = &l->waits[0];

        for (size_t i = 1; i < MAX_WAITS; i++)
                if (l->waits[i].what && l->waits[i].ns > longest->ns)
                        longest = &l->waits[i];
        if (!longest->what)
                return;
        append(line, "  ");
        append(line, longest == &l->waits[MAX_WAITS - 1] ? "others" : longest->what);
        append(line, in_words(longest->ns).text);
}

static void print_lane(const struct picture *p, const struct lane *l, int name_width, bool first, bool apart, int fd)
{
        struct line line = { 0 };

        append(&line, l->name);
        pad(&line, name_width + GAP - columns(l->name));
        append_cells(p, l, &line);
        if (p->waits) {
                append_longest(l, &line);
        } else if (first) {
                append(&line, in_words(p->end - p->start).text);
                pad(&line, apart ? 0 : LEGEND_GAP);
                append(&line, apart ? "" : legend(p));
        }
        flush(&line, fd);
}

static void print(struct picture *p, int name_width, bool apart, int fd)
{
        size_t printed = 0;

        for (size_t i = 0; i < p->lanes; i++) {
                if (!shown(p, &p->lane[i]))
                        continue;
                if (printed < MAX_LANES)
                        print_lane(p, &p->lane[i], name_width, printed == 0, apart, fd);
                else
                        p->more++;
                printed++;
        }
        for (size_t i = 0; i < p->crowds; i++)
                print_lane(p, &p->crowd[i], name_width, false, apart, fd);
        if (p->more > 0)
                dprintf(fd, "... %zu more lanes like these\n", p->more);
        if (p->lost > 0)
                dprintf(fd, "... %llu earlier events are forgotten: the picture begins after them\n",
                        (unsigned long long)p->lost);
        if (p->waits)
                dprintf(fd, "%s;%s in all; on the right: what it has waited for longest\n", legend(p),
                        in_words(p->end - p->start).text);
        else if (apart)
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

/* Cut to so many columns, and it looks so. */
static void cut(const struct picture *p, char *s, int most)
{
        const char *dots = p->ascii ? "..." : "…";
        int n = columns(s), keep = most - columns(dots);

        if (n <= most)
                return;
        for (n = 0; *s && (n < keep || ((unsigned char)*s & 0xc0) == 0x80); s++)
                n += ((unsigned char)*s & 0xc0) != 0x80;
        memcpy(s, dots, strlen(dots) + 1); /* there is room: names are shorter than their places */
}

static void finish_name(const struct picture *p, struct lane *l, int most)
{
        char count[32] = "";

        clean(l->name, p->ascii);
        cut(p, l->name, most);
        if (l->tasks > 1)
                snprintf(count, sizeof count, p->ascii ? " x%zu" : " ×%zu", l->tasks);
        memcpy(l->name + strlen(l->name), count, strlen(count) + 1);
}

/* How wide they are, at most. */
static int finish_names(struct picture *p, int most)
{
        int width = 0;

        for (size_t i = 0; i < p->lanes + p->crowds; i++) {
                struct lane *l = i < p->lanes ? &p->lane[i] : &p->crowd[i - p->lanes];
                finish_name(p, l, most);
                if (shown(p, l) && columns(l->name) > width)
                        width = columns(l->name);
        }
        return width;
}

enum { WAIT_ROOM = 24 };

/* The names decide how much room the cells have, so the ring is read twice. */
void rs_timeline_print(const struct rs_ring *ring, int64_t start, int64_t end, bool waits, int fd)
{
        int width = rs_terminal_width(fd);

        if (width < MIN_WIDTH)
                width = DEFAULT_WIDTH;
        struct picture p = {
                .start = start, .end = end, .cells = 1, .waits = waits, .ascii = getenv("NO_COLOR") || !is_utf8()
        };
        int most = width / 3 > LEAST_NAME ? width / 3 : LEAST_NAME;
        read_ring(&p, ring);
        int names = finish_names(&p, most);
        if (p.lanes == 0)
                return;
        int room = width - names - GAP - (waits ? WAIT_ROOM : (int)strlen(in_words(end - p.start).text));
        int cells = waits ? room : room - LEGEND_GAP - LEGEND_WIDTH;
        bool apart = cells < MIN_CELLS;
        if (apart)
                cells = room;
        cells = cells > MAX_CELLS ? MAX_CELLS : cells < 10 ? 10 : cells / 10 * 10;
        if (end <= p.start)
                cells = 1;
        p = (struct picture){ .start = start, .end = end, .cells = cells, .ascii = p.ascii, .waits = waits };
        read_ring(&p, ring);
        finish_names(&p, most);
        print(&p, names, apart, fd);
}
