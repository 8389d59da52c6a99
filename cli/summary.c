/* SPDX-License-Identifier: MIT */

/* --summary FILE. Names are those of the columns of table `run` where there is one. */

#include "summary.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>
#include <resha/error.h>

#include "json.h"

enum { MAX_FAILURES = 100 };

struct summary {
        const char *path;
        int fd;
        unsigned n_failures;
        struct text failures; /* JSON objects, separated by commas */
};

int summary_open(const char *path, struct summary **ret_summary)
{
        struct summary *s = resha_malloc(sizeof *s);
        if (!s)
                return -ENOMEM;
        *s = (struct summary){ .path = path, .fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) };
        if (s->fd < 0) {
                int rc = resha_fail(-errno, "--summary %s: %s", path, strerror(errno));
                resha_free(s);
                return rc;
        }
        *ret_summary = s;
        return 0;
}

void summary_free(struct summary *s)
{
        if (!s)
                return;
        close(s->fd);
        text_done(&s->failures);
        resha_free(s);
}

void summary_freep(struct summary **s)
{
        summary_free(*s);
        *s = NULL;
}

void summary_add_failure(struct summary *s, const struct job *job)
{
        if (s->n_failures == MAX_FAILURES)
                return;
        if (s->n_failures++)
                text_putc(&s->failures, ',');
        text_putc(&s->failures, '{');
        json_field_string(&s->failures, "url", job->key);
        if (job->status)
                json_field_int(&s->failures, "status", job->status);
        else
                json_field_string(&s->failures, "status", NULL);
        json_field_string(&s->failures, "error", job->error);
        json_field_int(&s->failures, "attempts", job->attempts);
        text_putc(&s->failures, '}');
}

static void add_facts(struct text *t, const struct summary_facts *f)
{
        json_field_string(t, "command", f->command);
        json_field_string(t, "started_at", f->started);
        json_field_string(t, "ended_at", f->ended);
        json_field_name(t, "seconds");
        text_printf(t, "%lld.%03lld", (long long)(f->took.ns / 1000000000), (long long)(f->took.ns / 1000000 % 1000));
        json_field_string(t, "outcome", f->outcome);
        json_field_name(t, "resumed");
        text_puts(t, f->resumed ? "true" : "false");
        json_field_int(t, "exit", f->exit_code);
}

static void add_counts(struct text *t, const struct pipeline *p)
{
        const struct counts *c = pipeline_counts(p);
        int64_t total = pipeline_total(p);
        if (total >= 0)
                json_field_int(t, "total", total);
        else
                json_field_string(t, "total", NULL);
        json_field_int(t, "done", (int64_t)c->done);
        json_field_int(t, "already", (int64_t)c->already);
        json_field_int(t, "unchanged", (int64_t)c->unchanged);
        json_field_int(t, "empty", (int64_t)c->empty);
        json_field_int(t, "failed", (int64_t)c->failed);
        json_field_int(t, "bytes", (int64_t)c->bytes);
        json_field_int(t, "requests", (int64_t)pipeline_requests(p));
        json_field_int(t, "retries", (int64_t)pipeline_retries(p));
}

int summary_write(struct summary *s, const struct summary_facts *facts, const struct pipeline *p)
{
        TEXT(t);
        text_putc(&t, '{');
        add_facts(&t, facts);
        add_counts(&t, p);
        json_field_name(&t, "failures");
        text_printf(&t, "[%s]}\n", text_string(&s->failures));
        if (t.failed)
                return -ENOMEM;
        if (ftruncate(s->fd, 0) < 0 && errno != EINVAL) /* EINVAL: a pipe or a terminal */
                return resha_fail(-errno, "--summary %s: %s", s->path, strerror(errno));
        int rc = text_write(&t, s->fd);
        return rc < 0 ? resha_fail(rc, "--summary %s: %s", s->path, strerror(-rc)) : 0;
}
