/* SPDX-License-Identifier: MIT */
/* The answer to `sample MS`: who has the thread, looked at some thousand times a second, from the inspector's thread.
 * The loops are not disturbed: two words of each are copied. Hits are counted by place of spawn, SITES at most; looks
 * that found the loop asleep, or busy with itself, are told apart. */

#include <stdlib.h>

#include "base/alloc.h"
#include "inspect/answer.h"
#include "inspect/snapshot.h"
#include "sys/observe.h"
#include "sys/sys.h"

enum { SITES = 512, LOOPS = 64, STEP_NS = 1000000 };

struct site {
        uint32_t loop;
        const char *site, *name; /* static; name NULL: that of the task is its own */
        uint64_t hits;
};

struct looks {
        uint32_t loop;
        uint64_t of, sleeps, itself, others; /* others: of places for which there was no room */
};

struct samples {
        size_t sites_n, loops_n;
        struct site sites[SITES];
        struct looks loops[LOOPS];
};

static struct looks *looks_of(struct samples *s, uint32_t loop)
{
        for (size_t i = 0; i < s->loops_n; i++)
                if (s->loops[i].loop == loop)
                        return &s->loops[i];
        if (s->loops_n == LOOPS)
                return NULL;
        s->loops[s->loops_n] = (struct looks){ .loop = loop };
        return &s->loops[s->loops_n++];
}

static void hit(struct samples *s, struct looks *k, const struct rs_task *t)
{
        const char *name = t->named ? NULL : t->name;

        for (size_t i = 0; i < s->sites_n; i++) {
                struct site *x = &s->sites[i];
                if (x->loop == k->loop && x->site == t->site && x->name == name) {
                        x->hits++;
                        return;
                }
        }
        if (s->sites_n == SITES)
                k->others++;
        else
                s->sites[s->sites_n++] = (struct site){ k->loop, t->site, name, 1 };
}

static void look(struct samples *s, const struct rs_view *v)
{
        const struct rs_task *current = NULL;
        struct rs_task t;
        struct looks *k = looks_of(s, v->number);

        if (!k)
                return;
        k->of++;
        if (v->sleeps)
                k->sleeps++;
        else if (!rs_observe_read(&current, &v->loop->current, sizeof current) || !current ||
                 !rs_observe_read(&t, current, sizeof t) || !t.fn)
                k->itself++;
        else
                hit(s, k, &t);
}

static void look_at_all(struct samples *s)
{
        struct rs_view v = { 0 };

        while (rs_view_next(v.number, &v))
                look(s, &v);
}

static void put_text(struct rs_json *j, const char *key, const char *from)
{
        char text[RS_SEEN_SITE];

        if (rs_reader_copies.text(from, text, sizeof text))
                rs_json_text(j, key, text);
}

static int most_first(const void *a, const void *b)
{
        const struct site *x = a, *y = b;

        return x->hits < y->hits ? 1 : x->hits > y->hits ? -1 : 0;
}

static void tell(struct samples *s, struct rs_json *j)
{
        qsort(s->sites, s->sites_n, sizeof *s->sites, most_first);
        for (size_t i = 0; i < s->sites_n; i++) {
                const struct site *x = &s->sites[i];
                rs_json_begin(j, "sample");
                rs_json_int(j, "loop", x->loop);
                put_text(j, "site", x->site);
                put_text(j, "name", x->name);
                rs_json_int(j, "hits", (int64_t)x->hits);
                rs_json_int(j, "of", (int64_t)looks_of(s, x->loop)->of);
                rs_json_end(j);
        }
        for (size_t i = 0; i < s->loops_n; i++) {
                const struct looks *k = &s->loops[i];
                rs_json_begin(j, "samples");
                rs_json_int(j, "loop", k->loop);
                rs_json_int(j, "of", (int64_t)k->of);
                rs_json_int(j, "sleeps", (int64_t)k->sleeps);
                rs_json_int(j, "itself", (int64_t)k->itself);
                rs_json_int(j, "others", (int64_t)k->others);
                rs_json_end(j);
        }
}

void rs_answer_sample(struct rs_answer *a, const struct rs_request *r)
{
        struct samples *s = resha_calloc(1, sizeof *s);
        int64_t now = rs_sys_now(), over = now + (int64_t)r->ms * 1000000;
        bool debug;

        if (!s) {
                rs_snapshot_error(&a->json, "no memory for samples");
                return;
        }
        unsigned loops = rs_view_count(&debug);
        rs_snapshot_head(&a->json, loops, debug);
        while (now < over && rs_answer_pause(a, now + STEP_NS < over ? now + STEP_NS : over)) {
                look_at_all(s);
                now = rs_sys_now();
        }
        tell(s, &a->json);
        rs_snapshot_tail(&a->json);
        resha_free(s);
}
