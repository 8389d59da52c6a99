/* SPDX-License-Identifier: MIT */
/* Programs that use processes, in the simulated world: whatever is cancelled or fails, in the program or in one of its
 * processes, no process outlives its owner, no output is made up, and statuses are those of what has happened. */

#include <signal.h>
#include <string.h>

#include "scenario.h"

enum { BYTES = 900, WORKERS = 3 };

static char byte_at(size_t i)
{
        return (char)('a' + (i * 7 + i / 100) % 26);
}

/* ---- a filter, fed and read at once ---- */

struct filter {
        int running, ended; /* tasks of the program */
        size_t got;
        bool whole;
};

/* Copies, and says on the other output how much it was. */
static int copies(resha_test_process *p, void *arg)
{
        struct filter *f = arg;
        char buf[128], said[32];
        size_t all = 0;
        ssize_t n;
        int rc = 0;

        f->running++;
        while (rc == 0 && (n = resha_read(resha_test_process_stream(p, 0), buf, sizeof buf)) != 0) {
                rc = n < 0 ? (int)n : resha_write_all(resha_test_process_stream(p, 1), buf, (size_t)n, NULL);
                all += n > 0 ? (size_t)n : 0;
        }
        snprintf(said, sizeof said, "%zu bytes", all);
        if (rc == 0)
                rc = resha_write_all(resha_test_process_stream(p, 2), said, strlen(said), NULL);
        f->running--;
        f->ended++;
        return rc;
}

static bool is_beginning(const resha_output *o)
{
        for (size_t i = 0; i < o->size; i++)
                if (o->data[i] != byte_at(i))
                        return false;
        return o->size <= BYTES;
}

static int filter(void *arg)
{
        struct filter *f = arg;
        resha_output out RESHA_CLEANUP(resha_output_free) = { 0 };
        resha_output err RESHA_CLEANUP(resha_output_free) = { 0 };
        const char *argv[] = { "copies", NULL };
        char input[BYTES];
        int rc = resha_test_program("copies", copies, f);

        for (size_t i = 0; i < BYTES; i++)
                input[i] = byte_at(i);
        if (rc == 0)
                rc = resha_process_run(&(resha_process_opts){ .argv = argv }, input, BYTES, BYTES, &out, &err, NULL);
        resha_test_expect(is_beginning(&out));
        resha_test_expect(!out.held && !err.held);
        resha_test_expect(rc != 0 || (out.size == BYTES && strcmp(err.data, "900 bytes") == 0));
        resha_test_expect(f->running == 0);
        f->whole = rc == 0;
        return rc;
}

static void check_filter(void *state, int rc, const resha_test_trial *t)
{
        struct filter *f = state;

        (void)t;
        resha_test_expect(f->running == 0 && f->ended <= 1);
        resha_test_expect(rc != 0 || f->whole);
}

SCENARIO(sim_process_filter, filter, .state = sizeof(struct filter), .check = check_filter, .seeds = 12)

/* ---- by hand: spawn, streams, wait; the owner's block is left anywhere ---- */

struct hand {
        int alive;
        resha_process *p;
        bool asked;
        char line[16];
};

static int greets(resha_test_process *p, void *arg)
{
        struct hand *h = arg;
        char name[16];

        h->alive++;
        ssize_t n = resha_read_line(resha_test_process_stream(p, 0), name, sizeof name);
        int rc = n < 0 ? (int)n : resha_write_all(resha_test_process_stream(p, 1), "hello ", 6, NULL);
        if (rc == 0)
                rc = resha_write_all(resha_test_process_stream(p, 1), name, (size_t)n, NULL);
        if (rc == 0)
                rc = resha_sleep(RESHA_S(1));
        h->alive--;
        return rc;
}

static int asks(void *arg)
{
        struct hand *h = arg;
        int rc = resha_write_all(resha_process_stdin(h->p), "world\n", 6, NULL);

        h->asked = rc == 0;
        resha_process_close_stdin(h->p);
        return rc;
}

static int waits(void *arg)
{
        struct hand *h = arg;

        return resha_process_wait(h->p, NULL);
}

static int converse(struct hand *h)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, asks, h);
        resha_spawn(&g, waits, h);
        resha_spawn(&g, waits, h);
        ssize_t n = resha_read_line(resha_process_stdout(h->p), h->line, sizeof h->line);
        return resha_group_end(&g, n < 0 ? (int)n : 0);
}

static int by_hand(void *arg)
{
        struct hand *h = arg;
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        const char *argv[] = { "greets", NULL };
        resha_process_opts o = { .argv = argv, .in = RESHA_PIPE, .out = RESHA_PIPE, .err = RESHA_NULL };
        int rc = resha_test_program("greets", greets, h);

        if (rc == 0)
                rc = resha_process_spawn(&o, &p);
        if (rc < 0)
                return rc;
        h->p = p;
        rc = converse(h);
        if (rc == 0)
                rc = resha_process_check(p);
        resha_test_expect(rc != 0 || !h->asked || strcmp(h->line, "hello world\n") == 0);
        return rc;
}

static void check_hand(void *state, int rc, const resha_test_trial *t)
{
        struct hand *h = state;

        (void)rc, (void)t;
        resha_test_expect(h->alive == 0);
}

SCENARIO(sim_process_by_hand, by_hand, .state = sizeof(struct hand), .check = check_hand, .seeds = 12)

/* ---- stubborn ones ---- */

struct stubborn {
        int alive;
};

static int does_not_end(resha_test_process *p, void *arg)
{
        struct stubborn *s = arg;
        int rc = resha_test_process_on(p, SIGTERM, RESHA_TEST_IGNORE);

        s->alive++;
        if (rc == 0)
                rc = resha_sleep(RESHA_S(3600));
        s->alive--;
        return rc;
}

static int ends_stubborn(void *arg)
{
        struct stubborn *s = arg;
        resha_process *p = NULL;
        const char *argv[] = { "stubborn", NULL };
        int rc = resha_test_program("stubborn", does_not_end, s);

        if (rc == 0)
                rc = resha_process_spawn(&(resha_process_opts){ .argv = argv, .out = RESHA_PIPE }, &p);
        if (rc < 0)
                return rc;
        rc = resha_sleep(RESHA_S(1));
        resha_instant t = resha_now();
        resha_process_close(p);
        int64_t ms = (resha_now().ns - t.ns) / 1000000;
        resha_test_expect(ms <= 3000 + 10);
        resha_test_expect(s->alive == 0);
        return rc;
}

SCENARIO(sim_process_stubborn, ends_stubborn, .state = sizeof(struct stubborn), .seeds = 12)

/* ---- what holds the pipe ---- */

struct held {
        int alive;
        bool held;
};

static int daemon_of(resha_test_process *p, void *arg)
{
        struct held *h = arg;

        (void)p;
        h->alive++;
        int rc = resha_sleep(RESHA_S(3600));
        h->alive--;
        return rc;
}

static int leaves_daemon(resha_test_process *p, void *arg)
{
        int rc = resha_write_all(resha_test_process_stream(p, 1), "started", 7, NULL);

        return rc < 0 ? rc : resha_test_process_fork(p, daemon_of, arg);
}

/* It is left alone, but for the group; and its pipe never holds anybody up. */
static int start_daemon(void *arg)
{
        struct held *h = arg;
        resha_output out RESHA_CLEANUP(resha_output_free) = { 0 };
        const char *argv[] = { "daemon", NULL };
        resha_instant t = resha_now();
        int rc = resha_test_program("daemon", leaves_daemon, h);

        if (rc == 0)
                rc = resha_process_run(&(resha_process_opts){ .argv = argv, .group = resha_test_seed() % 2 }, NULL, 0,
                                       100, &out, NULL, NULL);
        resha_test_expect((resha_now().ns - t.ns) / 1000000 < 5000);
        resha_test_expect(rc != 0 || strcmp(out.data, "started") == 0);
        h->held = out.held;
        return rc;
}

static void check_held(void *state, int rc, const resha_test_trial *t)
{
        struct held *h = state;

        resha_test_expect(h->alive == 0); /* the run is over */
        resha_test_expect(rc != 0 || h->held || t->disturbed);
}

SCENARIO(sim_process_held, start_daemon, .state = sizeof(struct held), .check = check_held, .seeds = 12)

/* ---- many at once, with signals and time limits in between ---- */

struct crowd {
        int alive;
        struct worker {
                struct crowd *c;
                int i;
                resha_exit exit;
                bool known;
        } workers[WORKERS];
};

static int works(resha_test_process *p, void *arg)
{
        struct crowd *c = arg;
        int rc = 0;

        c->alive++;
        for (int i = 0; i < 3 && rc == 0; i++) {
                rc = resha_sleep(RESHA_MS(700));
                if (rc == 0)
                        rc = resha_write_all(resha_test_process_stream(p, 1), "tick\n", 5, NULL);
        }
        c->alive--;
        return rc < 0 ? rc : 3;
}

static int manages_under_limit(void *arg)
{
        struct worker *w = arg;
        resha_output out RESHA_CLEANUP(resha_output_free) = { 0 };
        const char *argv[] = { "works", NULL };
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv, .out = RESHA_PIPE }, &p);

        if (rc < 0)
                return rc;
        if (w->i == 1) { /* killed at once */
                rc = resha_process_signal(p, SIGKILL);
                resha_test_expect(rc == 0);
        }
        rc = resha_process_communicate(p, NULL, 0, 0, &out, NULL);
        if (rc == 0)
                rc = resha_process_wait(p, &w->exit);
        w->known = rc == 0;
        return rc;
}

static int manages(void *arg)
{
        struct worker *w = arg;
        int rc = resha_timeout(w->i == 2 ? RESHA_S(1) : RESHA_S(60), manages_under_limit, w);

        return rc == -ETIME && w->i == 2 ? 0 : rc;
}

static int crowd(void *arg)
{
        struct crowd *c = arg;
        int rc = resha_test_program("works", works, c);

        if (rc < 0)
                return rc;
        for (int i = 0; i < WORKERS; i++)
                c->workers[i] = (struct worker){ .c = c, .i = i };
        return resha_gather(manages, c->workers, WORKERS, sizeof c->workers[0], NULL);
}

static void check_crowd(void *state, int rc, const resha_test_trial *t)
{
        const struct crowd *c = state;
        const struct worker *w = c->workers;

        resha_test_expect(c->alive == 0);
        if (rc < 0)
                return;
        resha_test_expect(!w[2].known || t->disturbed); /* its time was over before it was done */
        resha_test_expect(!w[1].known || (w[1].exit.signalled && w[1].exit.code == SIGKILL));
        if (!t->disturbed)
                resha_test_expect(!w[0].exit.signalled && w[0].exit.code == 3);
}

SCENARIO(sim_process_crowd, crowd, .state = sizeof(struct crowd), .check = check_crowd, .seeds = 6, .most = 60)
