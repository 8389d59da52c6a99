/* SPDX-License-Identifier: MIT */

/* What people see on stderr. Whoever prints takes the progress line off the screen first; the next tick draws it
 * again. */

#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "status.h"

void progress_init(struct progress *p, const char *prefix, bool quiet, bool verbose)
{
        *p = (struct progress){
                .prefix = prefix,
                .started = resha_now(),
                .quiet = quiet,
                .verbose = verbose && !quiet,
                .terminal = !quiet && isatty(STDERR_FILENO),
                .n_samples = 1, /* nothing, at the start */
        };
        p->samples[0].at = p->started;
}

/* In one write, so that lines of several programs on one terminal do not mix. What cannot be written is nobody's to
 * hear. */
static void put(const struct text *t)
{
        (void)text_write(t, STDERR_FILENO);
}

static void add_erase(struct progress *p, struct text *t)
{
        if (p->shown)
                text_puts(t, "\r\033[K");
        p->shown = false;
}

void progress_say(struct progress *p, const char *format, ...)
{
        TEXT(t);
        char line[2048];
        va_list ap;
        va_start(ap, format);
        vsnprintf(line, sizeof line, format, ap);
        va_end(ap);
        add_erase(p, &t);
        text_printf(&t, "%s\n", line);
        put(&t);
}

static void say_answer(struct progress *p, const struct pipeline_event *e)
{
        TEXT(t);
        if (e->rc < 0)
                status_add_error(&t, e->rc);
        else
                text_printf(&t, "%d", e->status);
        text_puts(&t, "  ");
        text_add_duration(&t, e->took);
        progress_say(p, "%s  %s", text_string(&t), e->job->key);
}

static void say_retry(struct progress *p, const struct pipeline_event *e)
{
        TEXT(t);
        text_add_duration(&t, e->delay);
        progress_say(p, "%s: again in %s%s", e->job->key, text_string(&t), e->asked ? ", as the server asks" : "");
}

void progress_event(void *arg, const struct pipeline_event *e)
{
        struct progress *p = arg;
        if (e->kind == PIPELINE_FAILED)
                progress_say(p, "%s: %s: %s", p->prefix, e->job->key, e->job->error ? e->job->error : "failed");
        if (!p->verbose)
                return;
        if (e->kind == PIPELINE_ANSWERED && e->rc != -ECANCELED)
                say_answer(p, e);
        else if (e->kind == PIPELINE_RETRY)
                say_retry(p, e);
        else if (e->kind == PIPELINE_SAVED)
                progress_say(p, "saved %llu", (unsigned long long)e->counts->rows);
}

static uint64_t finished(const struct counts *c)
{
        return c->done + c->empty + c->failed;
}

/* URLs a second over the samples, 0 if nothing is known. */
static double sample_rate(struct progress *p, uint64_t now_finished)
{
        resha_instant now = resha_now();
        unsigned oldest = p->n_samples < PROGRESS_SAMPLES ? 0 : p->n_samples % PROGRESS_SAMPLES;
        double seconds = (double)resha_between(p->samples[oldest].at, now).ns / 1e9;
        double rate = seconds > 0 ? (double)(now_finished - p->samples[oldest].finished) / seconds : 0;
        p->samples[p->n_samples % PROGRESS_SAMPLES].at = now;
        p->samples[p->n_samples % PROGRESS_SAMPLES].finished = now_finished;
        p->n_samples = p->n_samples + 1 < 2 * PROGRESS_SAMPLES ? p->n_samples + 1 : PROGRESS_SAMPLES;
        return rate;
}

static void draw(struct progress *p)
{
        const struct counts *c = pipeline_counts(p->pipeline);
        int64_t total = pipeline_total(p->pipeline);
        uint64_t n = finished(c);
        double rate = sample_rate(p, n);
        TEXT(line);
        text_add_grouped(&line, n);
        if (total >= 0) {
                text_puts(&line, " of ");
                text_add_grouped(&line, (uint64_t)total);
        }
        text_puts(&line, "  ");
        text_add_grouped(&line, c->failed);
        text_puts(&line, " failed");
        if (rate > 0)
                text_printf(&line, rate < 9.95 ? "  %.1f/s" : "  %.0f/s", rate);
        if (rate > 0 && total >= 0 && (uint64_t)total > n) {
                text_puts(&line, "  ");
                text_add_duration(&line, RESHA_NS((double)((uint64_t)total - n) / rate * 1e9));
                text_puts(&line, " left");
        }
        struct winsize ws = { .ws_col = 0 };
        size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col ? ws.ws_col : 80;
        TEXT(all);
        text_puts(&all, "\r\033[K");
        text_add(&all, text_string(&line), line.len < width ? line.len : width - 1);
        put(&all);
        p->shown = true;
}

int progress_draw(void *arg)
{
        struct progress *p = arg;
        resha_ticker tick;
        int rc = 0;
        resha_ticker_init(&tick, RESHA_MS(100));
        while (p->terminal && (rc = resha_ticker_next(&tick)) > 0)
                draw(p);
        return rc;
}

static void add_some(struct text *t, uint64_t n, const char *what)
{
        if (!n)
                return;
        text_puts(t, "  ");
        text_add_grouped(t, n);
        text_printf(t, " %s", what);
}

void progress_finish(struct progress *p)
{
        const struct counts *c = pipeline_counts(p->pipeline);
        int64_t total = pipeline_total(p->pipeline);
        uint64_t n = finished(c);
        TEXT(t);
        if (p->quiet)
                return;
        text_add_grouped(&t, n);
        text_puts(&t, " of ");
        text_add_grouped(&t, total >= 0 ? (uint64_t)total : n);
        add_some(&t, c->already, "already there");
        add_some(&t, c->unchanged, "unchanged (304)");
        add_some(&t, c->empty, "empty");
        text_puts(&t, "  ");
        text_add_grouped(&t, c->failed);
        text_puts(&t, " failed  ");
        text_add_duration(&t, resha_between(p->started, resha_now()));
        progress_say(p, "%s", text_string(&t));
}
