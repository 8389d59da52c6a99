/* SPDX-License-Identifier: MIT */
/* Traces that another thread asks for while the loop runs: what it gets is whole, or says what is missing. Their files
 * are left in $TRACE_FOLDER, for ./live to look whether they are in order. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/core.h"
#include "inspect/trace.h"
#include "sys/observe.h"
#include "sys/sys.h"
#include "sys/thread.h"
#include "test.h"

enum { TASKS = 300, PATIENCE_NS = 2000000000 };

struct asker {
        struct rs_inbox *inbox;
        struct rs_trace *trace;
        struct rs_loop *loop;
        size_t events;   /* of the ring */
        uint64_t enough; /* switches of the loop, before a sleepy one drains */
        bool sleepy;
        bool over; /* set by it */
        bool begun, told;
        struct rs_post begin, end;
        struct rs_thread thread;
        FILE *file;
        uint64_t bytes;
        char path[512];
};

static int to_file(void *arg, const char *text, size_t n)
{
        struct asker *a = arg;

        a->bytes += n;
        return fwrite(text, 1, n, a->file) == n ? 0 : -EIO;
}

static void begin(struct rs_post *p)
{
        struct asker *a = RS_CONTAINER(p, struct asker, begin);

        if (!a->begun)
                rs_trace_begin(a->trace, rs_loop_current);
        a->begun = true;
        if (rs_trace_tell(a->trace, rs_loop_current))
                rs_inbox_post(a->inbox, p);
        else
                __atomic_store_n(&a->told, true, __ATOMIC_SEQ_CST);
}

static void end(struct rs_post *p)
{
        struct asker *a = RS_CONTAINER(p, struct asker, end);

        rs_trace_end(a->trace, rs_loop_current);
        __atomic_store_n(&a->over, true, __ATOMIC_SEQ_CST);
}

static bool is(const bool *flag)
{
        return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

static uint64_t switches_of(const struct rs_loop *l)
{
        uint64_t n = 0;

        return rs_observe_read(&n, &l->switches, sizeof n) ? n : 0;
}

/* Until the trace is large enough to tell, or nothing comes any more. */
static void *ask(void *arg)
{
        struct asker *a = arg;
        struct rs_trace_out out;
        int64_t until = rs_sys_now() + PATIENCE_NS;

        rs_trace_open(&out, to_file, a, 0);
        a->trace = rs_trace_new(&out, 3, "live", a->events);
        a->begin.fn = begin;
        a->end.fn = end;
        rs_inbox_post(a->inbox, &a->begin);
        while ((!is(&a->told) || (!a->sleepy && a->bytes < 400000)) && rs_sys_now() < until) {
                usleep(2000);
                if (!a->sleepy)
                        rs_trace_drain(a->trace);
        }
        while (a->sleepy && switches_of(a->loop) < a->enough)
                usleep(2000);
        rs_inbox_post(a->inbox, &a->end);
        while (!is(&a->over))
                usleep(2000);
        rs_trace_free(a->trace);
        rs_trace_close(&out);
        fclose(a->file);
        return NULL;
}

static int parked(void *arg)
{
        return resha_event_wait(arg);
}

static int busy(void *arg)
{
        struct asker *a = arg;
        int rc = 0;

        while (rc == 0 && !is(&a->over))
                rc = resha_sleep(RESHA_US(50));
        return rc;
}

static int program(void *arg)
{
        struct asker *a = arg;
        resha_event never = { 0 };
        RESHA_GROUP(g);

        a->loop = rs_loop_current;
        a->inbox = rs_inbox_hold(a->loop);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        for (int i = 0; i < TASKS; i++)
                resha_spawn(&g, parked, &never);
        int rc = resha_yield();
        rs_thread_start(&a->thread, "asker", ask, a);
        for (int i = 0; i < 3 && rc == 0; i++)
                resha_spawn(&g, busy, a);
        while (rc == 0 && !is(&a->over))
                rc = resha_sleep(RESHA_US(100));
        rs_thread_join(a->thread);
        rs_inbox_release(a->inbox);
        return resha_group_end(&g, rc);
}

static void open_file(struct asker *a, const char *name)
{
        snprintf(a->path, sizeof a->path, "%s/%s.json", getenv("TRACE_FOLDER"), name);
        a->file = fopen(a->path, "w");
        ASSERT_TRUE(a->file != NULL);
}

/* The text of the file. */
static char *traced(struct asker *a, const char *name)
{
        static char text[4 << 20];

        open_file(a, name);
        ASSERT_OK(resha_run(program, a, &(resha_run_opts){ .backend = getenv("RESHA_TEST_BACKEND") }));
        FILE *f = fopen(a->path, "r");
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
        return text;
}

TEST(trace_of_a_running_loop_shows_who_waits_and_who_runs)
{
        struct asker a = { .events = RS_TRACE_EVENTS };
        const char *text = traced(&a, "whole");
        size_t waits = 0;

        for (const char *s = text; (s = strstr(s, "\"cat\":\"wait\",\"name\":\"event\"")); s++)
                waits++;
        ASSERT_EQ(waits, TASKS);
        ASSERT_HAS(text, "\"name\":\"live: loop 3 (");
        ASSERT_HAS(text, "\"args\":{\"name\":\"busy\"}");
        ASSERT_HAS(text, "the trace ends here");
}

TEST(trace_that_is_read_too_late_says_what_is_lost)
{
        struct asker a = { .events = 1 << 12, .sleepy = true, .enough = 10000 };

        ASSERT_HAS(traced(&a, "lost"), " events were lost, in ");
}

static int two_at_once(void *arg)
{
        struct asker *a = arg;
        struct rs_trace_out out;
        struct rs_loop *l = rs_loop_current;

        rs_trace_open(&out, to_file, a, 0);
        struct rs_trace *first = rs_trace_new(&out, 1, "a", 1 << 12), *second = rs_trace_new(&out, 2, "b", 1 << 12);
        rs_trace_begin(first, l);
        rs_trace_begin(second, l);
        int rc = resha_yield();
        rs_trace_end(first, l);
        if (rc == 0)
                rc = resha_sleep(RESHA_US(10));
        rs_trace_free(first);
        rs_trace_end(second, l);
        ASSERT_PTR(l->ring, NULL);
        rs_trace_free(second);
        rs_trace_close(&out);
        fclose(a->file);
        return rc;
}

TEST(traces_of_one_loop_at_once_share_its_ring)
{
        struct asker a = { 0 };

        open_file(&a, "two");
        ASSERT_OK(resha_run(two_at_once, &a, &(resha_run_opts){ .backend = getenv("RESHA_TEST_BACKEND") }));
}
