/* SPDX-License-Identifier: MIT */

/* The pipeline in the simulated world, over a transport that misbehaves: 1 seed is one world, with its own delays,
 * faults, limits, stops and cancels. After each: no URL lost or doubled, the limit never passed, what was reported as
 * saved is there, and a run that was cut short is finished by the next one without asking again for what it had.
 *
 *     RESHA_TEST_BACKEND=sim:7 cli-pipeline   the world of seed 7, of 0 by default
 *     PIPELINE_SEEDS=2000 cli-pipeline        those of seeds 0 to 1999 */

#include "test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline.h"

enum fault { GOOD, BUSY, BUSY_ASKING, BROKEN, GONE, RESET, CUT, SLOW, NOTHING, NO_JSON, NO_KEY, N_FAULTS };

static const char *const fault_names[N_FAULTS] = {
        "good",    "503",    "503 with Retry-After", "500", "404", "reset", "cut short", "too slow", "null",
        "no JSON", "no key",
};

enum { MAX_ITEMS = 64, TIMEOUT_MS = 1000 };

/* What the world of a seed is like, and what the transport saw. */
struct world {
        struct rng rng;
        unsigned items, concurrency;
        bool with_list, stops, cancels, breaks; /* the last: the database, at one item */
        enum fault faults[MAX_ITEMS + 1];       /* of item i, from 1: while attempts are left in `bad_attempts` */
        unsigned bad_attempts[MAX_ITEMS + 1];
        unsigned asked[MAX_ITEMS + 1];    /* requests in this phase */
        bool answered[MAX_ITEMS + 1];     /* well and whole, in this phase */
        bool saved_before[MAX_ITEMS + 1]; /* by an earlier phase */
        unsigned in_flight, most;
        resha_duration interval; /* between two requests; 0: no rate */
        resha_instant last;      /* the last request */
        unsigned fired[N_FAULTS], stopped, cancelled, resumed, broken;
        uint64_t reported; /* rows, in the last SAVED event */
        char path[64];
};

static bool transient(enum fault f)
{
        return f == BUSY || f == BUSY_ASKING || f == BROKEN || f == RESET || f == CUT || f == SLOW;
}

static int answer(resha_http_sink *sink, int status, const char *header, const char *body)
{
        int rc = resha_http_sink_status(sink, status);
        if (rc >= 0 && header)
                rc = resha_http_sink_header(sink, header, strlen(header));
        return rc < 0 ? rc : resha_http_sink_body(sink, body, strlen(body));
}

static int answer_item(struct world *w, unsigned item, resha_http_sink *sink)
{
        char body[128];
        enum fault f = w->faults[item];
        if (transient(f) && w->bad_attempts[item] == 0)
                f = GOOD;
        else if (transient(f))
                w->bad_attempts[item]--;
        w->fired[f]++;
        snprintf(body, sizeof body, "{\"id\":%u,\"title\":\"item \\\"%u\\\"\",\"score\":%u}", item, item,
                 item * 7 % 100);
        switch (f) {
        case BUSY: return answer(sink, 503, NULL, "later");
        case BUSY_ASKING: return answer(sink, 503, "Retry-After: 1", "later");
        case BROKEN: return answer(sink, 500, NULL, "oops");
        case GONE: return answer(sink, 404, NULL, "no");
        case RESET: return -ECONNRESET;
        case CUT: return answer(sink, 200, NULL, "{\"id\"") < 0 ? -EIO : RESHA_HTTP_ETRUNCATED;
        case SLOW: return resha_sleep(RESHA_S(1000));
        case NOTHING: return answer(sink, 200, NULL, "null\n");
        case NO_JSON: return answer(sink, 200, NULL, "<html>");
        case NO_KEY: return answer(sink, 200, NULL, "{\"title\":\"none\"}");
        default: break;
        }
        int rc = answer(sink, 200, "ETag: \"x\"", body);
        w->answered[item] = rc >= 0;
        return rc;
}

static int answer_list(struct world *w, resha_http_sink *sink)
{
        TEXT(t);
        text_putc(&t, '[');
        for (unsigned i = 1; i <= w->items; i++)
                text_printf(&t, i > 1 ? ",%u" : "%u", i);
        text_putc(&t, ']');
        return answer(sink, 200, NULL, text_string(&t));
}

static int perform(void *impl, const resha_http_attempt *attempt, resha_http_sink *sink)
{
        struct world *w = impl;
        const char *slash = strrchr(attempt->url, '/');
        unsigned item = (unsigned)strtoul(slash + 1, NULL, 10);
        if (++w->in_flight > w->most)
                w->most = w->in_flight;
        if (w->last.ns && resha_between(w->last, resha_now()).ns < w->interval.ns)
                FAIL("%s is asked for %lld ns after the last one, sooner than the rate allows", attempt->url,
                     (long long)resha_between(w->last, resha_now()).ns);
        w->last = resha_now();
        if (item)
                w->asked[item]++;
        int rc = resha_sleep(RESHA_MS(rng_below(&w->rng, 300)));
        if (rc >= 0)
                rc = item ? answer_item(w, item, sink) : answer_list(w, sink);
        w->in_flight--;
        return rc;
}

static void make_world(struct world *w, uint64_t seed)
{
        static const enum fault choice[] = { GOOD, GOOD,  GOOD, GOOD, BUSY,    BUSY_ASKING, BROKEN,
                                             GONE, RESET, CUT,  SLOW, NOTHING, NO_JSON,     NO_KEY };
        *w = (struct world){ .rng = { seed * 2654435761u } };
        w->items = 1 + (unsigned)rng_below(&w->rng, MAX_ITEMS);
        w->concurrency = 1 + (unsigned)rng_below(&w->rng, 12);
        w->with_list = rng_below(&w->rng, 2);
        w->stops = rng_below(&w->rng, 4) == 0;
        w->cancels = !w->stops && rng_below(&w->rng, 4) == 0;
        w->breaks = !w->stops && !w->cancels && rng_below(&w->rng, 4) == 0;
        if (rng_below(&w->rng, 4) == 0)
                w->interval = RESHA_MS(100);
        for (unsigned i = 1; i <= w->items; i++) {
                w->faults[i] = choice[rng_below(&w->rng, sizeof choice / sizeof choice[0])];
                w->bad_attempts[i] = 1 + (unsigned)rng_below(&w->rng, 4);
        }
        snprintf(w->path, sizeof w->path, "%s/resha-pipeline-%d.db",
                 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
}

static void remove_files(const struct world *w)
{
        static const char *const ends[] = { "", "-wal", "-shm" };
        for (size_t i = 0; i < 3; i++) {
                char name[80];
                snprintf(name, sizeof name, "%s%s", w->path, ends[i]);
                unlink(name);
        }
}

/* One run of the pipeline on the world's database. */
struct phase {
        struct world *w;
        struct clock clock;
        struct derive derive;
        struct text urls; /* without a list: all, one after another */
        const char *words[MAX_ITEMS];
        struct plan *plan;
        struct store *store;
        struct hosts *hosts;
        resha_http *session;
        struct pipeline *pipeline;
        struct counts counts;
        resha_duration stop_after;
};

static void phase_done(struct phase *p)
{
        pipeline_free(p->pipeline);
        resha_http_free(p->session);
        hosts_free(p->hosts);
        store_close(p->store);
        plan_free(p->plan);
        derive_done(&p->derive);
        text_done(&p->urls);
}

static void observe(void *arg, const struct pipeline_event *e)
{
        struct phase *p = arg;
        if (e->kind == PIPELINE_SAVED)
                p->w->reported = e->counts->rows;
}

static void open_plan(struct phase *p)
{
        static const char *const template[] = { "http://h/item/{}" };
        struct plan_options o = { .urls = template, .n_urls = 1, .each = "http://h/list" };
        if (!p->w->with_list) {
                size_t at[MAX_ITEMS];
                for (unsigned i = 1; i <= p->w->items; i++) {
                        at[i - 1] = p->urls.len;
                        text_printf(&p->urls, "http://h/item/%u", i);
                        text_putc(&p->urls, '\0');
                }
                for (unsigned i = 0; i < p->w->items; i++)
                        p->words[i] = p->urls.data + at[i];
                o = (struct plan_options){ .urls = p->words, .n_urls = p->w->items };
        }
        ASSERT_OK(plan_new(&o, &p->plan));
}

static void open_phase(struct phase *p)
{
        TEXT(problem);
        resha_http_transport transport = { .perform = perform, .impl = p->w };
        clock_init(&p->clock, INT64_C(1769862896789));
        open_plan(p);
        ASSERT_OK(derive_init(&p->derive, "item", "id", "id,title,score", &problem));
        ASSERT_OK(store_open(&(struct store_options){ .path = p->w->path,
                                                      .command = "test",
                                                      .fingerprint = "0123456789abcdef",
                                                      .derive = &p->derive,
                                                      .clock = &p->clock },
                             &p->store));
        const struct rate rate = { .count = 10, .per = RESHA_S(1) };
        ASSERT_OK(hosts_new(&rate, p->w->interval.ns > 0, &p->hosts));
        ASSERT_OK(resha_http_new(&(resha_http_opts){ .transport = &transport, .max_connections = 1000 }, &p->session));
        struct pipeline_options o = {
                .plan = p->plan,
                .session = p->session,
                .json = store_db(p->store),
                .store = p->store,
                .hosts = p->hosts,
                .clock = &p->clock,
                .concurrency = p->w->concurrency,
                .null_is_empty = true,
                .timeout = RESHA_MS(TIMEOUT_MS),
                .retry = { .retries = 2, .total = RESHA_S(60), .base = RESHA_S(1), .max = RESHA_S(30) },
                .grace = RESHA_US(200500), /* never at the same moment as an answer */
                .seed = p->w->rng.state,
                .observe = observe,
                .observe_arg = p,
        };
        ASSERT_OK(pipeline_new(&o, &p->pipeline));
}

/* From now on the database fails when one of the items is stored, and rolls back what comes with it. */
static void break_database(struct phase *p)
{
        TEXT(sql);
        text_printf(&sql,
                    "create temp trigger broken before insert on fetch when new.url like '%%/item/%u'"
                    " begin select raise(rollback, 'broken on purpose'); end",
                    1 + (unsigned)rng_below(&p->w->rng, p->w->items));
        ASSERT_OK(resha_sqlite_execute(store_db(p->store), text_string(&sql), NULL, 0, NULL));
}

static int stop_later(void *arg)
{
        struct phase *p = arg;
        int rc = resha_sleep(p->stop_after);
        if (rc >= 0)
                pipeline_stop(p->pipeline);
        return rc;
}

/* Runs it; maybe with a stop or a cancel on the way. 1: to its end, 0: cut short. */
static int run_phase(struct phase *p, bool disturb)
{
        struct world *w = p->w;
        resha_duration when = RESHA_MS(rng_below(&w->rng, 4000));
        memset(w->asked, 0, sizeof w->asked);
        memset(w->answered, 0, sizeof w->answered);
        w->reported = 0;
        w->last = (resha_instant){ 0 };
        open_phase(p);
        w->resumed += store_resumed(p->store);
        int rc;
        if (disturb && w->breaks)
                break_database(p);
        if (disturb && w->cancels) {
                RESHA_SCOPE(s);
                resha_timeout_begin(&s, when);
                rc = pipeline_run(p->pipeline);
                rc = resha_scope_end(&s, rc);
                w->cancelled += rc == -ETIME;
                ASSERT_TRUE(rc == 0 || rc == -ETIME);
        } else {
                RESHA_GROUP(g);
                resha_group_begin(&g, &(resha_group_opts){ .background = true });
                p->stop_after = when;
                if (disturb && w->stops)
                        resha_spawn(&g, stop_later, p);
                rc = resha_group_end(&g, pipeline_run(p->pipeline));
                w->broken += rc < 0;
                if (!disturb || !w->breaks)
                        ASSERT_OK(rc);
        }
        p->counts = *pipeline_counts(p->pipeline);
        bool cut = rc < 0 || pipeline_stopped(p->pipeline);
        w->stopped += pipeline_stopped(p->pipeline);
        ASSERT_EQ(w->in_flight, 0);
        ASSERT_TRUE(w->most <= w->concurrency);
        if (rc >= 0)
                ASSERT_OK(store_end(p->store, cut ? "interrupted" : "complete"));
        return !cut;
}

static int64_t ask(struct phase *p, const char *sql)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        ASSERT_OK(resha_sqlite_query(store_db(p->store), sql, NULL, 0, &rows));
        return resha_rows_int(rows, 0, 0);
}

/* What was told is there; a run that went to its end has told all that is there. */
static void check_rows(struct phase *p, bool whole)
{
        int64_t rows = ask(p, "select count(*) from fetch where failed_at is null and url like '%/item/%'"
                              " and body not like 'null%'");
        int64_t failed = ask(p, "select count(*) from fetch where failed_at is not null");
        ASSERT_EQ(p->counts.rows, p->w->reported);
        ASSERT_TRUE(rows >= (int64_t)p->counts.rows && failed >= (int64_t)p->counts.failed);
        ASSERT_TRUE(!whole || (rows == (int64_t)p->counts.rows && failed == (int64_t)p->counts.failed));
        ASSERT_EQ(ask(p, "select count(*) from item"), rows);
        ASSERT_EQ(ask(p, "select count(*) from item where title is not 'item \"' || id || '\"'"
                         " or score is not id * 7 % 100"),
                  0);
        ASSERT_EQ(ask(p, "select count(*) from run"), 1);
        int64_t done = ask(p, "select done from run");
        ASSERT_TRUE(done >= (int64_t)p->counts.done && (!whole || done == (int64_t)p->counts.done));
}

/* Each item has come to what its faults make of it. */
static void check_whole(struct phase *p)
{
        struct world *w = p->w;
        int64_t lists = w->with_list;
        ASSERT_EQ((int64_t)(p->counts.done + p->counts.empty + p->counts.failed), w->items + lists);
        ASSERT_EQ(ask(p, "select count(*) from fetch"), w->items + lists);
        ASSERT_EQ(ask(p, "select count(*) from fetch where failed_at is not null and url like '%/list'"), 0);
        for (unsigned i = 1; i <= w->items; i++)
                if (w->saved_before[i] && w->asked[i])
                        FAIL("item %u was saved and asked for again", i);
}

static void remember_saved(struct phase *p)
{
        resha_rows *rows RESHA_CLEANUP(resha_rows_freep) = NULL;
        ASSERT_OK(resha_sqlite_query(
                store_db(p->store), "select substr(url, 15) from fetch where failed_at is null and url like '%/item/%'",
                NULL, 0, &rows));
        for (size_t r = 0; r < resha_rows_count(rows); r++)
                p->w->saved_before[strtoul(resha_rows_text(rows, r, 0), NULL, 10)] = true;
}

static struct world sum; /* over all seeds */
static unsigned next_seed;

static void add_up(const struct world *w)
{
        for (int f = 0; f < N_FAULTS; f++)
                sum.fired[f] += w->fired[f];
        sum.stopped += w->stopped;
        sum.cancelled += w->cancelled;
        sum.resumed += w->resumed;
        sum.broken += w->broken;
}

/* A stop throws nothing away: what was answered is saved. */
static void check_answered(const struct world *w)
{
        for (unsigned i = 1; i <= w->items; i++)
                if (w->answered[i] && !w->saved_before[i])
                        FAIL("item %u was answered and is not there", i);
}

static int one_world(void *unused)
{
        (void)unused;
        struct world w;
        bool whole = false;
        make_world(&w, next_seed++);
        remove_files(&w);
        for (int i = 0; i < 3 && !whole; i++) {
                struct phase p RESHA_CLEANUP(phase_done) = { .w = &w };
                whole = run_phase(&p, i < 2);
                check_rows(&p, whole);
                if (whole)
                        check_whole(&p);
                remember_saved(&p);
                if (!w.cancels && !w.breaks)
                        check_answered(&w);
        }
        remove_files(&w);
        ASSERT_TRUE(whole);
        add_up(&w);
        return 0;
}

TEST(pipeline_under_seeds)
{
        const char *wanted = getenv("PIPELINE_SEEDS");
        unsigned n = wanted ? (unsigned)strtoul(wanted, NULL, 10) : 1;
        if (wanted) {
                RUN_SEEDS(one_world, NULL, n);
        } else {
                SIM_ONLY();
                next_seed = (unsigned)strtoul(test_backend() + strlen("sim:"), NULL, 10);
                RUN(one_world, NULL);
        }
        printf("%u seeds:", n);
        for (int f = 0; f < N_FAULTS; f++)
                printf(" %s %u,", fault_names[f], sum.fired[f]);
        printf(" stopped %u, cancelled %u, database broken %u, resumed %u\n", sum.stopped, sum.cancelled, sum.broken,
               sum.resumed);
        for (int f = 0; f < N_FAULTS && n >= 2000; f++)
                ASSERT_TRUE(sum.fired[f] >= 100);
        if (n >= 2000)
                ASSERT_TRUE(sum.stopped >= 100 && sum.cancelled >= 100 && sum.broken >= 100 && sum.resumed >= 100);
}
