/* SPDX-License-Identifier: MIT */
/* Figures as text: the exposition format 0.0.4 of Prometheus.
 *
 * They are gathered as samples that know nothing of the objects any more (names are copied), so that the text is made
 * wherever and whenever there is time. A sample belongs to a family, which has a name, a help line and a type; all
 * samples of a family stand together, as the format asks for. Objects of one kind that have the same name are one
 * sample: two of the same labels would make a reader refuse the whole.
 *
 * Of another thread's loop everything is read by copies, and believed only as far as it makes sense. */

#include "inspect/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <resha/stats.h>

#include "base/alloc.h"
#include "base/json.h"
#include "core/core.h"
#include "inspect/walk.h"
#include "sys/observe.h"
#include "sys/sys.h"

enum { SAMPLES_MOST = 4000, FAMILIES_MOST = 400, OBJECTS_MOST = 100 * 1000, LOOK_AT_CLOCK = 8 };

/* The one histogram; its name is nobody else's. */
#define LAG "resha_loop_lag_seconds"

struct family {
        char name[96], help[192], label[32];
        enum resha_figure_type type;
        bool seconds;
};

struct sample {
        unsigned family, loop;
        uint64_t value;
        char name[96]; /* of the object; "": none */
};

struct histogram {
        unsigned loop;
        uint64_t sum;
        uint64_t buckets[RESHA_LAG_BUCKETS];
};

struct rs_metrics {
        struct family *families;
        struct sample *samples;
        struct histogram *lags;
        size_t n_families, n_samples, n_lags;
        size_t room_families, room_samples, room_lags;
        unsigned loop; /* that is being gone through; 0: none */
        uint64_t walk; /* of it */
        bool failed, full;
};

/* ---- gathering ---- */

struct rs_metrics *rs_metrics_new(void)
{
        return resha_calloc(1, sizeof(struct rs_metrics));
}

void rs_metrics_free(struct rs_metrics *m)
{
        if (!m)
                return;
        resha_free(m->families);
        resha_free(m->samples);
        resha_free(m->lags);
        resha_free(m);
}

/* The next element of an array that grows; NULL: no memory, or more than `most`. */
static void *grow(struct rs_metrics *m, void **array, size_t *n, size_t *room, size_t size, size_t most)
{
        if (*n >= most) {
                m->full = true;
                return NULL;
        }
        if (*n == *room) {
                size_t more = *room ? *room * 2 : 16;
                void *p = resha_realloc(*array, more * size);
                if (!p) {
                        m->failed = true;
                        return NULL;
                }
                *array = p;
                *room = more;
        }
        return (char *)*array + (*n)++ * size;
}

static void copy_text(char *to, size_t size, const char *from)
{
        snprintf(to, size, "%s", from ? from : "");
}

/* The number of the family of that name; SIZE_MAX: there is none, and cannot be one. */
static size_t family_of(struct rs_metrics *m, const struct family *wanted)
{
        for (size_t i = 0; i < m->n_families; i++)
                if (strcmp(m->families[i].name, wanted->name) == 0)
                        return i;
        struct family *f = grow(m, (void **)&m->families, &m->n_families, &m->room_families, sizeof *f, FAMILIES_MOST);
        if (!f)
                return SIZE_MAX;
        *f = *wanted;
        return m->n_families - 1;
}

static void add_sample(struct rs_metrics *m, const struct family *f, unsigned loop, const char *name, uint64_t value)
{
        size_t family = family_of(m, f);

        if (family == SIZE_MAX)
                return;
        for (size_t i = m->n_samples; i-- > 0;) {
                struct sample *s = &m->samples[i];
                if (s->family != family || s->loop != loop || strcmp(s->name, name) != 0)
                        continue;
                if (f->type == RESHA_FIGURE_MOST)
                        s->value = value > s->value ? value : s->value;
                else
                        s->value += value;
                return;
        }
        struct sample *s = grow(m, (void **)&m->samples, &m->n_samples, &m->room_samples, sizeof *s, SAMPLES_MOST);
        if (!s)
                return;
        *s = (struct sample){ .family = (unsigned)family, .loop = loop, .value = value };
        copy_text(s->name, sizeof s->name, name);
}

/* ---- of the loop itself ---- */

#define COUNTER(field, name, help) \
        { \
                "resha_" name "_total", help, offsetof(resha_stats, field), RESHA_FIGURE_COUNTER, false \
        }
#define GAUGE(field, name, help) \
        { \
                "resha_" name, help, offsetof(resha_stats, field), RESHA_FIGURE_GAUGE, false \
        }

static const struct {
        const char *name, *help;
        size_t offset;
        enum resha_figure_type type;
        bool seconds;
} of_loop[] = {
        { "resha_loop_seconds_total", "Time since the loop began.", offsetof(resha_stats, age), RESHA_FIGURE_COUNTER,
          true },
        { "resha_loop_idle_seconds_total", "Time in which the loop slept, with nothing to do.",
          offsetof(resha_stats, slept), RESHA_FIGURE_COUNTER, true },
        COUNTER(polls, "polls", "Looks of the loop at its backend."),
        COUNTER(sleeps, "sleeps", "Looks that waited for something to come."),
        COUNTER(switches, "task_switches", "Times that a task gave the thread away."),
        COUNTER(spawned, "tasks_spawned", "Tasks that were made."),
        COUNTER(ended, "tasks_ended", "Tasks that have ended."),
        COUNTER(wakes, "wakes", "Operations that had to wait for the world, and are done."),
        COUNTER(timers, "timers_fired", "Timers that fired."),
        COUNTER(calls, "system_calls", "System calls of the loop's backend."),
        COUNTER(reports, "reports", "Reports to the sink of the run, or counted without one."),
        COUNTER(ignored, "cancels_ignored", "Waits of cancelled tasks that went on."),
        GAUGE(tasks, "tasks", "Tasks that are alive."),
        GAUGE(ready, "tasks_ready", "Tasks that wait for their turn, counted to 10,000."),
        GAUGE(jobs, "jobs", "Thread jobs and look-ups under way, and references to the loop."),
        GAUGE(stacks, "stacks_kept", "Stacks of tasks that have ended, kept for the next."),
        GAUGE(shown, "open", "Streams, listeners, files, pools and other things that are open."),
        GAUGE(descriptors, "open_descriptors", "Those of them that have a file descriptor."),
        { "resha_loop_lag_most_seconds", "The longest that what became ready waited for the loop.",
          offsetof(resha_stats, lag_most), RESHA_FIGURE_GAUGE, true },
};

static void add_stats(struct rs_metrics *m, unsigned loop, const resha_stats *s)
{
        for (size_t i = 0; i < sizeof of_loop / sizeof of_loop[0]; i++) {
                struct family f = { .type = of_loop[i].type, .seconds = of_loop[i].seconds };
                uint64_t value;
                copy_text(f.name, sizeof f.name, of_loop[i].name);
                copy_text(f.help, sizeof f.help, of_loop[i].help);
                memcpy(&value, (const char *)s + of_loop[i].offset, sizeof value);
                add_sample(m, &f, loop, "", value);
        }
        struct histogram *h = grow(m, (void **)&m->lags, &m->n_lags, &m->room_lags, sizeof *h, FAMILIES_MOST);
        if (!h)
                return;
        h->loop = loop;
        h->sum = (uint64_t)s->lag_sum.ns;
        memcpy(h->buckets, s->lag, sizeof h->buckets);
}

/* ---- of what is shown ---- */

static const struct rs_reader *reader_of(bool here)
{
        return here ? &rs_reader_here : &rs_reader_copies;
}

/* "" for NULL. */
static bool take_text(const struct rs_reader *r, char *to, size_t size, const char *from)
{
        to[0] = '\0';
        return !from || r->text(from, to, size);
}

static bool valid_name(const char *name)
{
        if (!isalpha((unsigned char)name[0]) && name[0] != '_')
                return false;
        for (; *name; name++)
                if (!isalnum((unsigned char)*name) && *name != '_')
                        return false;
        return true;
}

/* Of the labels we use ourselves, and those that belong to Prometheus, none can be an object's. */
static bool valid_label(const char *name)
{
        return valid_name(name) && strcmp(name, "loop") != 0 && strncmp(name, "__", 2) != 0;
}

static void add_figure(struct rs_metrics *m, unsigned loop, const struct rs_reader *r, const resha_figure *figure,
                       const char *label, const char *name, uint64_t value)
{
        struct family f = { .type = figure->type, .seconds = RS_READ_BOOL(figure->seconds) };

        copy_text(f.label, sizeof f.label, label);
        if (take_text(r, f.name, sizeof f.name, figure->name) && valid_name(f.name) &&
            strncmp(f.name, LAG, sizeof LAG - 1) != 0 && take_text(r, f.help, sizeof f.help, figure->help))
                add_sample(m, &f, loop, name, value);
}

static void add_object(struct rs_metrics *m, unsigned loop, bool here, const struct rs_shown *s)
{
        const struct rs_reader *r = reader_of(here);
        resha_figure figures[RESHA_FIGURES_MAX];
        uint64_t values[RESHA_FIGURES_MAX];
        char name[sizeof m->samples->name], label[sizeof m->families->label];
        resha_shown_kind kind;
        bool past = RS_READ_BOOL(s->past);

        if (!r->read(&kind, s->kind, sizeof kind) || kind.count == 0 || kind.count > RESHA_FIGURES_MAX || !s->values)
                return;
        if (here && kind.refresh && !past)
                kind.refresh(s->object);
        if (!r->read(figures, kind.figures, kind.count * sizeof figures[0]) ||
            !r->read(values, s->values, kind.count * sizeof values[0]) || !take_text(r, name, sizeof name, s->name) ||
            !take_text(r, label, sizeof label, kind.label))
                return;
        for (size_t i = 0; i < kind.count; i++)
                if (!past || figures[i].type == RESHA_FIGURE_COUNTER)
                        add_figure(m, loop, r, &figures[i], valid_label(label) ? label : "name", name, values[i]);
}

static bool add_loop(struct rs_metrics *m, unsigned number, struct rs_loop *l, bool here)
{
        resha_stats stats;
        struct rs_loop copy;
        struct rs_backend backend;

        if (here) {
                rs_stats_here(l, &stats);
        } else {
                int64_t now = rs_sys_now(); /* before it is looked at: else it may have woken, and slept less */
                if (!rs_observe_read(&copy, l, sizeof copy))
                        return false;
                rs_stats(&copy, now, &stats);
                if (rs_observe_read(&backend, copy.backend, sizeof backend))
                        stats.calls = backend.calls;
        }
        add_stats(m, number, &stats);
        return true;
}

static bool add_objects_here(struct rs_metrics *m, struct rs_loop *l, int64_t until)
{
        const struct rs_shown *s;

        for (unsigned n = 1; (s = rs_shown_walk_at(&l->shown_walks, m->walk)); n++) {
                if (n % LOOK_AT_CLOCK == 0 && rs_sys_now() >= until)
                        return false;
                add_object(m, (unsigned)(l->last_mark >> RS_MARK_RUN), true, s);
                rs_shown_walk_on(l, m->walk);
        }
        return true;
}

/* From `at` on. */
static void add_objects(struct rs_metrics *m, const struct rs_loop *l, unsigned loop, const struct rs_node *at)
{
        struct rs_shown s;

        for (size_t i = 0; at && i < OBJECTS_MOST; i++, at = s.node.next) {
                const void *from = RS_CONTAINER((void *)(uintptr_t)at, struct rs_shown, node);
                if (!rs_observe_read(&s, from, sizeof s) || s.loop != l)
                        return;
                add_object(m, loop, false, &s);
        }
}

static void add_past(struct rs_metrics *m, const struct rs_loop *l, unsigned loop, bool here)
{
        const struct rs_node *n = NULL;

        if (!here && rs_observe_read(&n, &l->shown_past.first, sizeof n))
                add_objects(m, l, loop, n);
        for (n = here ? l->shown_past.first : NULL; n; n = n->next)
                add_object(m, loop, true, RS_CONTAINER((void *)(uintptr_t)n, struct rs_shown, node));
}

bool rs_metrics_add(struct rs_metrics *m, struct rs_loop *l, bool here, int64_t until)
{
        const struct rs_shown *first = NULL;
        uint64_t mark;
        const struct rs_node *n = NULL;
        struct rs_shown_walks walks;
        bool over = true;

        if (!reader_of(here)->read(&mark, &l->last_mark, sizeof mark))
                return true;
        unsigned loop = (unsigned)(mark >> RS_MARK_RUN);
        if (m->loop != loop && !add_loop(m, loop, l, here))
                return true;
        if (m->loop != loop)
                add_past(m, l, loop, here);
        if (here) {
                if (m->loop != loop)
                        m->walk = rs_shown_walk_begin(l);
                over = add_objects_here(m, l, until);
        } else if (m->loop != loop) {
                if (rs_observe_read(&n, &l->shown.first, sizeof n))
                        add_objects(m, l, loop, n);
        } else if (rs_observe_read(&walks, &l->shown_walks, sizeof walks) &&
                   (first = rs_shown_walk_at(&walks, m->walk))) {
                add_objects(m, l, loop, &first->node);
        }
        m->loop = over ? 0 : loop;
        return over;
}

/* ---- the text ---- */

struct text {
        char *data;
        size_t n, room;
        bool failed;
};

static void say(struct text *t, const char *format, ...) RESHA_PRINTF(2, 3);

static void say(struct text *t, const char *format, ...)
{
        for (;;) {
                va_list args;
                va_start(args, format);
                int n = t->data ? vsnprintf(t->data + t->n, t->room - t->n, format, args) : 1024;
                va_end(args);
                if (n < 0 || t->failed)
                        return;
                if (t->data && (size_t)n < t->room - t->n) {
                        t->n += (size_t)n;
                        return;
                }
                size_t room = (t->room + (size_t)n + 1) * 2;
                char *p = resha_realloc(t->data, room);
                t->failed = !p;
                if (t->failed)
                        return;
                t->data = p;
                t->room = room;
        }
}

/* Backslashes and line ends, in values of labels quotes as well, are escaped; what is no text becomes '?'. */
static void say_escaped(struct text *t, const char *text, bool quotes)
{
        const unsigned char *p = (const unsigned char *)text;

        for (size_t n; *p; p += n ? n : 1) {
                n = rs_utf8_length(p);
                if (*p == '\\' || (*p == '"' && quotes))
                        say(t, "\\%c", *p);
                else if (*p == '\n')
                        say(t, "\\n");
                else if (n == 0 || (*p < 0x20 && *p != '\t') || *p == 0x7f)
                        say(t, "?");
                else
                        say(t, "%.*s", (int)n, (const char *)p);
        }
}

static void say_head(struct text *t, const char *name, const char *help, const char *type)
{
        say(t, "# HELP %s ", name);
        say_escaped(t, help, false);
        say(t, "\n# TYPE %s %s\n", name, type);
}

static void say_value(struct text *t, uint64_t value, bool seconds)
{
        if (seconds)
                say(t, "%" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
        else
                say(t, "%" PRIu64 "\n", value);
}

static void say_family(struct text *t, const struct rs_metrics *m, size_t family)
{
        const struct family *f = &m->families[family];

        say_head(t, f->name, f->help, f->type == RESHA_FIGURE_COUNTER ? "counter" : "gauge");
        for (size_t i = 0; i < m->n_samples; i++) {
                const struct sample *s = &m->samples[i];
                if (s->family != family)
                        continue;
                say(t, "%s{loop=\"%u\"", f->name, s->loop);
                if (s->name[0]) {
                        say(t, ",%s=\"", f->label);
                        say_escaped(t, s->name, true);
                        say(t, "\"");
                }
                say(t, "} ");
                say_value(t, s->value, f->seconds);
        }
}

/* Buckets are cumulative; the last one has no bound. */
static void say_lag(struct text *t, const struct histogram *h)
{
        uint64_t below = 0;

        for (unsigned i = 0; i < RESHA_LAG_BUCKETS; i++) {
                uint64_t ns = UINT64_C(1) << (10 + i);
                below += h->buckets[i];
                say(t, LAG "_bucket{loop=\"%u\",le=\"", h->loop);
                if (i < RESHA_LAG_BUCKETS - 1)
                        say(t, "%" PRIu64 ".%09" PRIu64 "\"} %" PRIu64 "\n", ns / 1000000000, ns % 1000000000, below);
                else
                        say(t, "+Inf\"} %" PRIu64 "\n", below);
        }
        say(t, LAG "_sum{loop=\"%u\"} ", h->loop);
        say_value(t, h->sum, true);
        say(t, LAG "_count{loop=\"%u\"} %" PRIu64 "\n", h->loop, below);
}

int rs_metrics_text(const struct rs_metrics *m, char **ret_text, size_t *ret_size)
{
        struct text t = { 0 };

        say_head(&t, LAG, "How long what became ready waited for the loop.", "histogram");
        for (size_t i = 0; i < m->n_lags; i++)
                say_lag(&t, &m->lags[i]);
        for (size_t i = 0; i < m->n_families; i++)
                say_family(&t, m, i);
        if (m->full)
                say(&t, "# There is more than this: at most %d samples of %d metrics are told.\n", SAMPLES_MOST,
                    FAMILIES_MOST);
        if (m->failed || t.failed) {
                resha_free(t.data);
                return -ENOMEM;
        }
        *ret_text = t.data;
        *ret_size = t.n;
        return 0;
}

/* ---- the public calls ---- */

/* Asks a loop to bring its objects up to date, for who reads them next. */
struct asked {
        struct rs_post post;
        struct rs_loop *loop;
};

static void asked_lost(struct rs_post *post)
{
        resha_free(RS_CONTAINER(post, struct asked, post));
}

static void asked_refresh(struct rs_post *post)
{
        struct rs_node *n = RS_CONTAINER(post, struct asked, post)->loop->shown.first;

        for (size_t i = 0; n && i < OBJECTS_MOST; n = n->next, i++) {
                struct rs_shown *s = RS_CONTAINER(n, struct rs_shown, node);
                if (s->kind->refresh)
                        s->kind->refresh(s->object);
        }
        asked_lost(post);
}

/* Whatever another thread's loop does meanwhile, it does not end. */
static void add_other(struct rs_loop *l, void *m)
{
        struct asked *asked = l != rs_loop_current ? resha_malloc(sizeof *asked) : NULL;

        if (l != rs_loop_current)
                (void)rs_metrics_add(m, l, false, 0);
        if (!asked)
                return;
        *asked = (struct asked){ .post = { .fn = asked_refresh, .lost = asked_lost, .quiet = true }, .loop = l };
        rs_inbox_post(l->inbox, &asked->post);
}

int resha_stats_text(char **ret_text, size_t *ret_size)
{
        struct rs_loop *l = rs_loop_current;
        size_t size = 0;

        if (!l)
                return -EPERM;
        struct rs_metrics *m = rs_metrics_new();
        if (m) {
                (void)rs_metrics_add(m, l, true, INT64_MAX);
                rs_loops_each(add_other, m);
        }
        int rc = m ? rs_metrics_text(m, ret_text, &size) : -ENOMEM;
        rs_metrics_free(m);
        if (rc == 0 && ret_size)
                *ret_size = size;
        return rc;
}

int resha_stats_write(int fd)
{
        char *text;
        size_t size;
        int rc = resha_stats_text(&text, &size);

        if (rc < 0)
                return rc;
        for (size_t done = 0; rc == 0 && done < size;) {
                ssize_t n = rs_sys_write(fd, text + done, size - done);
                if (n >= 0)
                        done += (size_t)n;
                else if (n != -EINTR)
                        rc = resha_fail_at((int)n, NULL, "statistics to descriptor %d: %s", fd, resha_strerror((int)n));
        }
        resha_free(text);
        return rc;
}
