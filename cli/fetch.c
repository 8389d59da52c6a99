/* SPDX-License-Identifier: MIT */

/* `resha fetch`: reads the options, opens what they name, runs the pipeline, and says how it went. Everything that can
 * be wrong before the first request is found before the first request. */

#include "fetch.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <resha/resha.h>

#include "closing.h"
#include "help.h"
#include "options.h"
#include "pipeline.h"
#include "preset.h"
#include "progress.h"
#include "summary.h"

static const char prefix[] = "resha fetch";

struct fetch {
        const struct options *o;
        struct text command;
        char fingerprint[17];
        struct clock clock;
        struct derive derive;
        struct plan *plan;
        struct store *store;
        resha_sqlite *memory; /* reads the JSON of ids where there is no store */
        struct output *output;
        struct hosts *hosts;
        resha_http *session;
        struct summary *summary;
        struct pipeline *pipeline;
        struct progress progress;
        int exit_code;
};

static void fetch_done(struct fetch *f)
{
        pipeline_free(f->pipeline);
        resha_http_free(f->session);
        hosts_free(f->hosts);
        output_closep(&f->output);
        store_close(f->store);
        resha_sqlite_close(f->memory);
        plan_free(f->plan);
        summary_free(f->summary);
        derive_done(&f->derive);
        text_done(&f->command);
}

/* Says why and sets the exit status; the first failure counts. */
static int give_up(struct fetch *f, int exit_code, int rc)
{
        progress_say(&f->progress, "%s: %s", prefix, resha_error_of(rc)->text);
        if (f->exit_code == EXIT_DONE || f->exit_code == EXIT_SOME_FAILED)
                f->exit_code = exit_code;
        return rc;
}

static int open_plan(struct fetch *f)
{
        struct list *list = NULL;
        int rc = f->o->input ? list_open(f->o->input, &list) : 0;
        if (rc < 0)
                return give_up(f, EXIT_USAGE, rc);
        rc = plan_new(&(struct plan_options){ .urls = f->o->urls,
                                              .n_urls = f->o->n_urls,
                                              .list = list,
                                              .each = f->o->each,
                                              .ids_path = f->o->ids,
                                              .base_url = f->o->base_url,
                                              .first = f->o->first },
                      &f->plan);
        if (rc < 0)
                list_free(list);
        return rc < 0 ? give_up(f, EXIT_USAGE, rc) : 0;
}

static int open_derive(struct fetch *f)
{
        TEXT(problem);
        if (!f->o->columns || !f->o->db)
                return 0;
        int rc = derive_init(&f->derive, f->o->table ? f->o->table : "item", f->o->key, f->o->columns, &problem);
        return rc < 0 ? give_up(f, EXIT_USAGE, problem.len ? resha_fail(rc, "%s", text_string(&problem)) : rc) : 0;
}

/* Where results go. Without --db and --output: to stdout, for eyes or for programs. */
static int open_targets(struct fetch *f)
{
        const struct options *o = f->o;
        bool eyes = !o->output && isatty(STDOUT_FILENO);
        int rc = 0;
        if (o->db)
                rc = store_open(&(struct store_options){ .path = o->db,
                                                         .command = text_string(&f->command),
                                                         .fingerprint = f->fingerprint,
                                                         .derive = o->columns ? &f->derive : NULL,
                                                         .clock = &f->clock },
                                &f->store);
        else if (plan_has_ids(f->plan))
                rc = resha_sqlite_open(":memory:", NULL, &f->memory);
        if (rc >= 0 && (o->output || !o->db))
                rc = output_open(o->output ? o->output : "-", eyes ? OUTPUT_LINES : OUTPUT_JSON, f->progress.terminal,
                                 &f->output);
        if (rc >= 0 && o->summary)
                rc = summary_open(o->summary, &f->summary);
        return rc < 0 ? give_up(f, EXIT_CANNOT_WRITE, rc) : 0;
}

static int open_session(struct fetch *f)
{
        const struct options *o = f->o;
        struct rlimit files;
        if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max &&
            o->concurrency * 2 + 64 > files.rlim_cur) {
                files.rlim_cur = files.rlim_max;
                setrlimit(RLIMIT_NOFILE, &files); /* if not: the error names what is missing */
        }
        int rc = resha_http_new(&(resha_http_opts){ .total = o->timeout,
                                                    .connect = o->connect_timeout,
                                                    .read = o->timeout,
                                                    .max_connections = (unsigned)o->concurrency,
                                                    .max_body = o->max_body,
                                                    .headers = o->headers,
                                                    .header_count = o->n_headers },
                                &f->session);
        if (rc >= 0)
                rc = hosts_new(o->rates, o->n_rates, &f->hosts);
        return rc < 0 ? give_up(f, EXIT_USAGE, rc) : 0;
}

static void observe(void *arg, const struct pipeline_event *event)
{
        struct fetch *f = arg;
        if (event->kind == PIPELINE_FAILED && f->summary)
                summary_add_failure(f->summary, event->job);
        progress_event(&f->progress, event);
}

static int open_pipeline(struct fetch *f)
{
        const struct options *o = f->o;
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        struct pipeline_options p = {
                .plan = f->plan,
                .session = f->session,
                .json = f->store ? store_db(f->store) : f->memory,
                .store = f->store,
                .output = f->output,
                .hosts = f->hosts,
                .clock = &f->clock,
                .concurrency = (unsigned)o->concurrency,
                .null_is_empty = o->columns != NULL,
                .timeout = o->timeout,
                .retry = { .retries = (unsigned)o->retries,
                           .total = o->retry_for,
                           .base = RESHA_S(1),
                           .max = RESHA_S(30) },
                .grace = RESHA_S(5),
                .seed = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)getpid(),
                .observe = observe,
                .observe_arg = f,
        };
        int rc = pipeline_new(&p, &f->pipeline);
        f->progress.pipeline = f->pipeline;
        return rc < 0 ? give_up(f, EXIT_CANNOT_WRITE, rc) : 0;
}

/* Ctrl-C: once stops, twice leaves at once. What is committed stays whole either way. */
static int listen_to_signals(void *arg)
{
        static const int signals[] = { SIGINT, SIGTERM };
        struct fetch *f = arg;
        int got;
        int rc = resha_signal_wait(signals, 2, &got);
        if (rc < 0)
                return rc;
        pipeline_stop(f->pipeline);
        progress_say(&f->progress, "%s: stopping; what is in flight may finish; once more to leave at once", prefix);
        rc = resha_signal_wait(signals, 2, &got);
        if (rc < 0)
                return rc;
        progress_say(&f->progress, "%s: left at once", prefix);
        _exit(EXIT_INTERRUPTED);
}

static int run_pipeline(struct fetch *f)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, listen_to_signals, f);
        if (f->progress.terminal)
                resha_spawn(&g, progress_draw, &f->progress);
        return resha_group_end(&g, pipeline_run(f->pipeline));
}

static void judge(struct fetch *f, int rc)
{
        if (rc < 0 && rc != -ECANCELED)
                give_up(f, pipeline_plan_failed(f->pipeline) ? EXIT_USAGE : EXIT_CANNOT_WRITE, rc);
        else if (rc == -ECANCELED || pipeline_stopped(f->pipeline))
                f->exit_code = EXIT_INTERRUPTED;
        else
                f->exit_code = pipeline_counts(f->pipeline)->failed ? EXIT_SOME_FAILED : EXIT_DONE;
}

/* Writes down how the run ended, and says it. */
static void finish(struct fetch *f, const char *started)
{
        bool whole = f->exit_code == EXIT_DONE || f->exit_code == EXIT_SOME_FAILED;
        const char *outcome = whole ? "complete" : f->exit_code == EXIT_INTERRUPTED ? "interrupted" : "failed";
        int rc = f->store && (whole || f->exit_code == EXIT_INTERRUPTED) ? store_end(f->store, outcome) : 0;
        struct output *output = f->output;
        f->output = NULL;
        int rc2 = output_close(output);
        if (rc < 0 || rc2 < 0)
                give_up(f, EXIT_CANNOT_WRITE, rc < 0 ? rc : rc2);
        progress_finish(&f->progress);
        if (f->exit_code == EXIT_INTERRUPTED)
                progress_say(&f->progress, "%s: interrupted; all that is counted is saved%s", prefix,
                             f->store ? ", and the same command again goes on from here" : "");
        else if (whole && f->store && !f->o->quiet && f->o->closing_line &&
                 (rc = closing_print(store_db(f->store), f->o->closing_line, f->o->closing_query,
                                     pipeline_counts(f->pipeline)->rows)) < 0)
                give_up(f, EXIT_CANNOT_WRITE, rc);
        if (!f->summary)
                return;
        struct summary_facts facts = { .command = text_string(&f->command),
                                       .outcome = outcome,
                                       .took = resha_between(f->progress.started, resha_now()),
                                       .exit_code = f->exit_code,
                                       .resumed = f->store && store_resumed(f->store) };
        snprintf(facts.started, sizeof facts.started, "%s", started);
        clock_format(&f->clock, resha_now(), facts.ended);
        if ((rc = summary_write(f->summary, &facts, f->pipeline)) < 0)
                give_up(f, EXIT_CANNOT_WRITE, rc);
}

static int program(void *arg)
{
        struct fetch f RESHA_CLEANUP(fetch_done) = { .o = ((struct fetch *)arg)->o, .exit_code = EXIT_DONE };
        struct fetch *outer = arg;
        char started[CLOCK_TEXT];
        progress_init(&f.progress, prefix, f.o->quiet, f.o->verbose);
        clock_init(&f.clock, -1);
        clock_format(&f.clock, resha_now(), started);
        options_add_command(f.o, &f.command);
        options_fingerprint(text_string(&f.command), f.fingerprint);
        int rc = open_plan(&f);
        if (rc >= 0)
                rc = open_derive(&f);
        if (rc >= 0)
                rc = open_session(&f);
        if (rc >= 0)
                rc = open_targets(&f);
        if (rc >= 0 && (rc = plan_load_ids(f.plan, f.store ? store_db(f.store) : f.memory)) < 0)
                give_up(&f, EXIT_USAGE, rc);
        if (rc >= 0)
                rc = open_pipeline(&f);
        if (rc >= 0) {
                judge(&f, run_pipeline(&f));
                finish(&f, started);
        }
        outer->exit_code = f.exit_code;
        return 0;
}

int fetch_main(int argc, char **argv)
{
        OPTIONS(o);
        TEXT(problem);
        options_init(&o);
        int rc = options_parse(&o, argc, argv, &problem);
        if (rc >= 0 && o.help)
                return fputs(help_fetch, stdout) < 0 || fflush(stdout) ? EXIT_CANNOT_WRITE : EXIT_DONE;
        if (rc >= 0 && o.version)
                return printf("resha %s\n", resha_version()) < 0 || fflush(stdout) ? EXIT_CANNOT_WRITE : EXIT_DONE;
        if (rc >= 0)
                rc = preset_apply(&o, &problem);
        if (rc >= 0)
                rc = options_check(&o, &problem);
        if (rc < 0) {
                fprintf(stderr, "%s: %s\n", prefix, problem.len ? text_string(&problem) : resha_strerror(rc));
                return EXIT_USAGE;
        }
        struct fetch f = { .o = &o, .exit_code = EXIT_CANNOT_WRITE };
        /* a file that may not grow is an error like a full disk, not the end of the program */
        signal(SIGXFSZ, SIG_IGN);
        rc = resha_run(program, &f, &(resha_run_opts){ .keep_sigint = true });
        if (rc < 0)
                fprintf(stderr, "%s: %s\n", prefix, resha_strerror(rc));
        return f.exit_code;
}
