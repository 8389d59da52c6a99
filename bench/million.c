/* SPDX-License-Identifier: MIT */
/* How many tasks can be asleep at once, and what memory does each take?
 *
 *     million [TASKS]
 *
 * Starts TASKS tasks (a million) that sleep until the same instant, and measures resident memory and page tables when
 * all of them sleep. All must wake and be joined. Where a limit is in the way, fewer can be started: that must be said
 * by an error, lose no task, and leave a program that goes on; shown by a second group. Prints one line of JSON. The
 * exit code is 0 in both cases, and 1 if anything else happened. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <resha/resha.h>

#include "lib/bench.h"

enum { AFTERWARDS = 1000 };

struct sleepers {
        resha_instant wake;
        uint64_t asleep, woken, cancelled;
};

struct memory {
        long rss, pte; /* KiB */
};

/* A line of /proc/self/status, as "VmRSS:". */
static long status_kib(const char *text, const char *field)
{
        const char *line = strstr(text, field);

        return line ? strtol(line + strlen(field), NULL, 10) : -1;
}

static struct memory memory_now(void)
{
        char text[4096] = "";
        FILE *f = fopen("/proc/self/status", "re");

        if (f) {
                text[fread(text, 1, sizeof text - 1, f)] = 0;
                fclose(f);
        }
        return (struct memory){ status_kib(text, "VmRSS:"), status_kib(text, "VmPTE:") };
}

static int sleeper(void *arg)
{
        struct sleepers *s = arg;

        s->asleep++;
        int rc = resha_sleep_until(s->wake);
        *(rc == 0 ? &s->woken : &s->cancelled) += 1;
        return rc;
}

struct outcome {
        uint64_t started;
        struct sleepers sleepers;
        struct memory before, asleep;
        resha_duration create, join;
        int rc;
        resha_error error;
};

/* Ends with -EAGAIN at a limit, when those that had been started have been cancelled and joined. */
static int sleep_together(struct outcome *o, uint64_t n)
{
        struct sleepers *s = &o->sleepers;
        resha_instant start = resha_now();
        int rc = 0;
        RESHA_GROUP(g);

        *s = (struct sleepers){ .wake = resha_after(RESHA_US(20 * (int64_t)n + 1000000)) };
        o->started = 0;
        o->before = memory_now();
        resha_group_begin(&g, NULL);
        for (uint64_t i = 0; i < n && rc == 0; i++) {
                rc = resha_spawn(&g, sleeper, s);
                o->started += rc == 0;
        }
        while (rc == 0 && s->asleep < o->started)
                rc = resha_yield();
        o->create = resha_between(start, resha_now());
        o->asleep = memory_now();
        if (rc == 0 && s->woken)
                rc = resha_fail(-ETIME, "%" PRIu64 " woke before all were asleep: too slow a machine", s->woken);
        if (rc == 0)
                rc = resha_sleep_until(s->wake);
        start = rc == 0 ? s->wake : resha_now();
        rc = resha_group_end(&g, rc);
        o->join = resha_between(start, resha_now());
        return rc;
}

static double each(double kib_or_ns, uint64_t n)
{
        return n ? kib_or_ns / (double)n : 0;
}

static void print(const struct outcome *o)
{
        struct utsname u;
        uint64_t n = o->started;
        double rss = (double)(o->asleep.rss - o->before.rss) * 1024;
        double pte = (double)(o->asleep.pte - o->before.pte) * 1024;
        const char *guards = getenv("RESHA_GUARDS");

        uname(&u);
        printf("{\"kernel\": \"%s\", \"guards\": \"%s\", \"started\": %" PRIu64 ", \"asleep\": %" PRIu64 ", ",
               u.release, guards ? guards : "default", n, o->sleepers.asleep);
        printf("\"woken\": %" PRIu64 ", \"cancelled\": %" PRIu64 ", \"bytes_each\": %.0f, ", o->sleepers.woken,
               o->sleepers.cancelled, each(rss + pte, n));
        printf("\"rss_each\": %.0f, \"pte_each\": %.0f, \"create_ns\": %.0f, \"join_ns\": %.0f, ", each(rss, n),
               each(pte, n), each((double)o->create.ns, n), each((double)o->join.ns, n));
        printf("\"error\": \"%s\"}\n", o->rc < 0 ? o->error.text : "");
}

static int program(void *arg)
{
        static struct outcome first, second;
        uint64_t n = *(uint64_t *)arg;

        first.rc = sleep_together(&first, n);
        first.error = *resha_error_of(first.rc);
        print(&first);
        if (first.rc < 0 && first.rc != -EAGAIN)
                return first.rc;
        if (first.sleepers.asleep != first.started ||
            first.sleepers.woken + first.sleepers.cancelled != first.started ||
            (first.rc == 0 && first.sleepers.woken != n))
                return resha_fail(-EPROTO, "tasks were lost");
        int rc = sleep_together(&second, AFTERWARDS);
        if (rc == 0 && second.sleepers.woken != AFTERWARDS)
                return resha_fail(-EPROTO, "afterwards only %" PRIu64 " tasks of %d woke", second.sleepers.woken,
                                  AFTERWARDS);
        return rc;
}

int main(int argc, char **argv)
{
        uint64_t n = bench_argument(argc, argv, 1, 1000000);

        return resha_main(program, &n);
}
