/* SPDX-License-Identifier: MIT */

/* `resha demo`: seven acts. In the first four, twenty stories are fetched by the pipeline of `resha fetch hn`, each
 * time with other limits, and the pictures are drawn from its events while they happen; the others are of work that
 * blocks (blocking.c), of a look from outside that was taken in act 4 (glimpse.c), and of work that computes
 * (computing.c). */

#include "demo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

#include "blocking.h"
#include "closing.h"
#include "computing.h"
#include "fetch.h"
#include "glimpse.h"
#include "options.h"
#include "origin.h"
#include "pipeline.h"
#include "preset.h"
#include "stage.h"
#include "status.h"

enum { STORIES = 20 };

struct act {
        const char *title;
        unsigned concurrency;
        unsigned show;  /* lanes; 0: all */
        const char *db; /* NULL: not stored */
        bool bad_day;
        const char *more; /* said where lanes are left out, with their number */
};

static const char stories_db[] = "stories.db";

static const struct act acts[] = {
        { .title = "1  One at a time", .concurrency = 1 },
        { .title = "2  Five at a time: gather(fetch, ids, .limit = 5)", .concurrency = 5, .db = stories_db },
        { .title = "3  All at once",
          .concurrency = STORIES,
          .show = 3,
          .more = "more lanes like these: fast, and rude" },
        { .title = "4  A bad day: 07 answers 503, 11 never answers, 14 is null",
          .concurrency = 5,
          .db = ":memory:",
          .bad_day = true },
};

static const struct origin_fault bad_day[] = {
        { .rank = 7, .kind = ORIGIN_BUSY },
        { .rank = 11, .kind = ORIGIN_NEVER },
        { .rank = 14, .kind = ORIGIN_NULL },
};

struct demo {
        const struct options *o;
        struct origin *origin;
        struct derive derive;
        struct clock clock;
        struct text command;
        struct stage_style style;
        bool fast;
        struct blocking *blocking;
        struct computing *computing;
        struct glimpse glimpse;
        struct text closing;
        int exit_code;
};

/* One act while it runs. */
struct scene {
        struct demo *demo;
        const struct act *act;
        struct stage stage;
        int block_of[STORIES + 1]; /* the block of each job in flight; 0 is the list of ids */
        struct text notes;
        struct counts counts;
};

static bool is_set(const char *name)
{
        const char *value = getenv(name);
        return value && *value;
}

static void note_retry(struct scene *s, const struct pipeline_event *e)
{
        text_printf(&s->notes, "   %02llu tried again after ", (unsigned long long)e->job->number);
        text_printf(&s->notes, "%.1f s (%d%s)", (double)e->delay.ns / 1e9, e->status, e->asked ? ", Retry-After" : "");
}

static void note_failure(struct scene *s, const struct job *job)
{
        double seconds = (double)resha_between(job->started, job->finished).ns / 1e9;
        text_printf(&s->notes, "   %02llu ", (unsigned long long)job->number);
        if (job->status)
                text_printf(&s->notes, "failed: %s", job->error);
        else
                text_printf(&s->notes, "timed out after %.1f s", seconds);
}

/* The task that fetches it. */
static void name_task(const struct job *job)
{
        char name[40];
        if (!job->number)
                snprintf(name, sizeof name, "list of stories");
        else if (job->attempts > 1)
                snprintf(name, sizeof name, "story %02u, attempt %u", (unsigned)job->number, job->attempts);
        else
                snprintf(name, sizeof name, "story %02u", (unsigned)job->number);
        resha_task_set_name(name);
}

static void observe(void *arg, const struct pipeline_event *e)
{
        struct scene *s = arg;
        uint64_t number = e->job ? e->job->number : 0;
        char label[LANES_LABEL];
        if (number > STORIES)
                return;
        switch (e->kind) {
        case PIPELINE_STARTED:
                name_task(e->job);
                snprintf(label, sizeof label, number ? "%02u" : "id", (unsigned)number);
                s->block_of[number] = lanes_begin(&s->stage.lanes, label);
                break;
        case PIPELINE_ANSWERED:
                resha_task_set_name("fetcher");
                lanes_end(&s->stage.lanes, s->block_of[number], e->rc < 0 || e->status != 200,
                          e->status > 299 ? 'x' : 0);
                break;
        case PIPELINE_RETRY: note_retry(s, e); break;
        case PIPELINE_FAILED: note_failure(s, e->job); break;
        case PIPELINE_SAVED: break;
        }
}

struct play {
        struct pipeline *pipeline;
        struct glimpse *glimpse; /* to be taken meanwhile; or NULL */
};

static int run_it(void *arg)
{
        struct play *p = arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        if (p->glimpse)
                resha_spawn(&g, glimpse_take, p->glimpse);
        return resha_group_end(&g, pipeline_run(p->pipeline));
}

static int run_pipeline(struct scene *s, struct plan *plan, resha_http *session, struct hosts *hosts,
                        struct store *store, resha_sqlite *json)
{
        struct demo *d = s->demo;
        struct pipeline *p RESHA_CLEANUP(pipeline_freep) = NULL;
        resha_duration patience = s->act->bad_day ? RESHA_S(1) : RESHA_S(10);
        struct pipeline_options opts = {
                .plan = plan,
                .session = session,
                .json = json,
                .store = store,
                .hosts = hosts,
                .clock = &d->clock,
                .concurrency = s->act->concurrency,
                .at_once = true,
                .null_is_empty = true,
                .timeout = patience,
                .retry = { .retries = 4, .total = patience, .base = RESHA_MS(200), .max = RESHA_S(1) },
                .observe = observe,
                .observe_arg = s,
        };
        int rc = pipeline_new(&opts, &p);
        if (rc < 0)
                return rc;
        rc = stage_play(&s->stage, run_it, &(struct play){ p, s->act->bad_day ? &d->glimpse : NULL });
        s->counts = *pipeline_counts(p);
        return rc;
}

static int open_store(struct demo *d, const char *path, struct store **ret_store)
{
        char fingerprint[17];
        options_fingerprint(text_string(&d->command), fingerprint);
        return store_open(&(struct store_options){ .path = path,
                                                   .command = text_string(&d->command),
                                                   .fingerprint = fingerprint,
                                                   .derive = &d->derive,
                                                   .clock = &d->clock },
                          ret_store);
}

/* Plan, session and database of an act, and its run. */
static int play(struct scene *s)
{
        struct demo *d = s->demo;
        struct plan *plan RESHA_CLEANUP(plan_freep) = NULL;
        struct hosts *hosts RESHA_CLEANUP(hosts_freep) = NULL;
        struct store *store RESHA_CLEANUP(store_closep) = NULL;
        resha_sqlite *memory RESHA_CLEANUP(resha_sqlite_closep) = NULL;
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        origin_set_faults(d->origin, bad_day, s->act->bad_day ? sizeof bad_day / sizeof bad_day[0] : 0);
        int rc = plan_new(&(struct plan_options){ .urls = d->o->urls,
                                                  .n_urls = d->o->n_urls,
                                                  .each = d->o->each,
                                                  .first = STORIES,
                                                  .base_url = origin_url(d->origin) },
                          &plan);
        if (rc >= 0)
                rc = s->act->db ? open_store(d, s->act->db, &store) : resha_sqlite_open(":memory:", NULL, &memory);
        if (rc >= 0)
                rc = resha_http_new(NULL, &session);
        if (rc >= 0)
                rc = hosts_new(NULL, 0, &hosts);
        if (rc >= 0)
                rc = run_pipeline(s, plan, session, hosts, store, store ? store_db(store) : memory);
        if (rc >= 0 && store)
                rc = store_end(store, "complete");
        if (rc >= 0 && store && !s->act->bad_day)
                closing_add(&d->closing, store_db(store), d->o->closing_line, d->o->closing_query, s->counts.rows);
        return rc;
}

static int perform(struct demo *d, const struct act *act)
{
        struct scene *s = resha_calloc(1, sizeof *s);
        TEXT(t);
        if (!s)
                return -ENOMEM;
        s->demo = d;
        s->act = act;
        s->stage = (struct stage){ .style = d->style, .title = act->title, .show = act->show, .more = act->more };
        int rc = play(s);
        if (rc >= 0 && act->bad_day)
                text_printf(&t, "%s\n   %llu stored, %llu empty, %llu failed; nobody else waited for them\n",
                            text_string(&s->notes), (unsigned long long)s->counts.rows,
                            (unsigned long long)s->counts.empty, (unsigned long long)s->counts.failed);
        text_putc(&t, '\n');
        stage_put(&t);
        text_done(&s->notes);
        resha_free(s);
        return rc;
}

static void demo_donep(struct demo **demo)
{
        struct demo *d = *demo;
        origin_close(d->origin);
        derive_done(&d->derive);
        text_done(&d->command);
        text_done(&d->closing);
        glimpse_done(&d->glimpse);
}

static int prepare(struct demo *d)
{
        TEXT(problem);
        clock_init(&d->clock, -1);
        int rc = origin_open(&(struct origin_options){ .delay = RESHA_MS(200), .items = 500 }, 0, &d->origin);
        if (rc < 0)
                return rc;
        rc = derive_init(&d->derive, d->o->table, d->o->key, d->o->columns, &problem);
        if (rc < 0)
                return resha_fail(rc, "%s", text_string(&problem));
        text_printf(&d->command, "resha demo, from %s", origin_url(d->origin));
        /* If the file cannot be written, that is said now and not after the first act. */
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;
        return resha_sqlite_open(stories_db, NULL, &db);
}

/* Between two acts, for eyes. */
static int pause_a_little(struct demo *d)
{
        return d->style.terminal && !d->fast ? resha_sleep(RESHA_MS(1500)) : 0;
}

static int show(struct demo *d)
{
        int rc = 0;
        printf("resha demo: %d stories from a built-in server that takes 200 ms for each\n\n", STORIES);
        fflush(stdout);
        for (size_t i = 0; i < sizeof acts / sizeof acts[0] && rc >= 0; i++)
                if ((rc = perform(d, &acts[i])) >= 0)
                        rc = pause_a_little(d);
        origin_set_faults(d->origin, NULL, 0);
        if (rc >= 0)
                rc = blocking_play(d->blocking, &d->style, origin_url(d->origin));
        if (rc >= 0)
                rc = pause_a_little(d);
        if (rc >= 0) {
                glimpse_show(&d->glimpse);
                rc = pause_a_little(d);
        }
        if (rc >= 0)
                rc = computing_play(d->computing, &d->style);
        if (rc >= 0)
                rc = pause_a_little(d);
        if (rc < 0)
                return rc;
        stage_put(&d->closing);
        printf("Next: %s fetch hn --top 20 --db mine.db     docs/fetch.md     docs/threads.md\n",
               program_invocation_name);
        fflush(stdout);
        return 0;
}

static int program(void *arg)
{
        struct demo *d RESHA_CLEANUP(demo_donep) = arg;
        int rc = prepare(d);
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, origin_serve, d->origin);
        return resha_group_end(&g, show(d));
}

int demo_main(int argc, char **argv)
{
        OPTIONS(o);
        TEXT(problem);
        char preset[] = "hn", *words[] = { preset };
        resha_error error;
        (void)argv;
        if (argc > 0) {
                fputs("Usage: resha demo        (DEMO_FAST=1: without pauses; NO_COLOR=1: plain letters)\n", stderr);
                return EXIT_USAGE;
        }
        options_init(&o);
        if (options_parse(&o, 1, words, &problem) < 0 || preset_apply(&o, &problem) < 0) {
                fprintf(stderr, "resha demo: %s\n", text_string(&problem));
                return EXIT_USAGE;
        }
        struct computing computing RESHA_CLEANUP(computing_done) = { 0 };
        struct blocking blocking = { 0 };
        computing_init(&computing); /* before there are threads */
        struct demo d = { .o = &o,
                          .style = stage_style_here(),
                          .fast = is_set("DEMO_FAST"),
                          .blocking = &blocking,
                          .computing = &computing,
                          .glimpse.after = RESHA_MS(1100) };
        int rc = resha_run(program, &d,
                           &(resha_run_opts){ .ret_error = &error,
                                              .blocked = RESHA_MS(250),
                                              .inspect = true,
                                              .report = blocking_report,
                                              .report_arg = &blocking });
        if (rc < 0 && rc != -ECANCELED)
                fprintf(stderr, "resha demo: %s\n", error.text);
        return rc == -ECANCELED ? EXIT_INTERRUPTED : rc < 0 ? EXIT_CANNOT_WRITE : EXIT_DONE;
}
