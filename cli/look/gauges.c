/* SPDX-License-Identifier: MIT */

/* Reads the few lines it knows of the text format of Prometheus: name{loop="1",le="0.001"} value. */

#include "gauges.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is(const char *line, const char *name)
{
        size_t size = strlen(name);
        return strncmp(line, name, size) == 0 && line[size] == '{';
}

/* The value of a label in quotes; `other` if it has none. */
static double label(const char *line, const char *name, double other)
{
        const char *end = strchr(line, '}'), *p = strstr(line, name);
        return p && end && p < end ? strtod(p + strlen(name), NULL) : other;
}

static struct gauge *of_loop(struct gauges *g, uint32_t loop)
{
        for (size_t i = 0; i < g->n; i++)
                if (g->loop[i].loop == loop)
                        return &g->loop[i];
        if (g->n == GAUGE_LOOPS)
                return NULL;
        g->loop[g->n] = (struct gauge){ .loop = loop, .seconds = -1, .idle = -1 };
        return &g->loop[g->n++];
}

void gauges_add(struct gauges *g, const char *line)
{
        if (strncmp(line, "resha_loop_", 11) != 0)
                return;
        double loop = label(line, "loop=\"", 0);
        const char *end = strstr(line, "} ");
        struct gauge *x = end && loop >= 1 && loop < 4e9 ? of_loop(g, (uint32_t)loop) : NULL;
        if (!x)
                return;
        double value = strtod(end + 2, NULL);
        if (is(line, "resha_loop_seconds_total"))
                x->seconds = value;
        else if (is(line, "resha_loop_idle_seconds_total"))
                x->idle = value;
        else if (is(line, "resha_loop_lag_seconds_sum"))
                x->lag_sum = value;
        else if (is(line, "resha_loop_lag_seconds_count"))
                x->lag_count = value;
        else if (is(line, "resha_loop_lag_seconds_bucket") && x->n_buckets < GAUGE_BUCKETS) {
                x->bound[x->n_buckets] = label(line, "le=\"", INFINITY);
                x->below[x->n_buckets++] = value;
        }
}

const struct gauge *gauges_find(const struct gauges *g, uint32_t loop)
{
        for (size_t i = 0; i < g->n; i++)
                if (g->loop[i].loop == loop)
                        return &g->loop[i];
        return NULL;
}

double gauge_busy(const struct gauge *before, const struct gauge *now)
{
        if (!before || !now || before->seconds < 0 || before->idle < 0 || now->seconds <= before->seconds)
                return -1;
        double busy = 1 - (now->idle - before->idle) / (now->seconds - before->seconds);
        return busy < 0 ? 0 : busy > 1 ? 1 : busy;
}

double gauge_lag(const struct gauge *before, const struct gauge *now)
{
        if (!before || !now || before->n_buckets != now->n_buckets || !now->n_buckets)
                return -1;
        double total = now->below[now->n_buckets - 1] - before->below[now->n_buckets - 1];
        if (total <= 0)
                return 0;
        for (unsigned i = 0; i < now->n_buckets; i++)
                if (now->below[i] - before->below[i] >= total)
                        return now->bound[i];
        return INFINITY;
}
