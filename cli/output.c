/* SPDX-License-Identifier: MIT */

/* Results as text. A batch is put together on the loop's thread and written in one go on another, so that a full pipe
 * holds back the pipeline and not the requests in flight.
 *
 * JSON Lines are valid whatever the server sent: a body that is UTF-8 is the string "body", any other is
 * "body_base64". */

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/pool.h>

#include "json.h"

struct output {
        const char *name;
        int fd;
        enum output_format format;
        bool clear_first;
        struct text text;
};

int output_open(const char *path, enum output_format format, bool clear_first, struct output **ret_output)
{
        bool is_stdout = strcmp(path, "-") == 0;
        struct output *o = resha_malloc(sizeof *o);
        if (!o)
                return -ENOMEM;
        *o = (struct output){ .name = is_stdout ? "stdout" : path, .format = format, .clear_first = clear_first };
        o->fd = is_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (o->fd < 0) {
                int rc = resha_fail(-errno, "%s: %s", path, strerror(errno));
                resha_free(o);
                return rc;
        }
        *ret_output = o;
        return 0;
}

static void add_json(struct text *t, const struct job *j)
{
        size_t size;
        const char *body = job_body(j, &size);
        text_putc(t, '{');
        json_field_string(t, "url", j->key);
        if (j->status)
                json_field_int(t, "status", j->status);
        else
                json_field_string(t, "status", NULL);
        json_field_string(t, "content_type", j->answer.content_type);
        if (!j->answer.body) {
                json_field_string(t, "body", NULL);
        } else if (utf8_valid(body, size)) {
                json_field_name(t, "body");
                json_add_string(t, body, size);
        } else {
                json_field_name(t, "body_base64");
                text_putc(t, '"');
                json_add_base64(t, body, size);
                text_putc(t, '"');
        }
        json_field_string(t, "error", j->error);
        json_field_int(t, "attempts", j->attempts);
        json_field_string(t, "started_at", j->started_text);
        json_field_string(t, "finished_at", j->finished_text);
        text_puts(t, "}\n");
}

/* Failures have their line on stderr, which is the same screen. */
static void add_line(struct text *t, const struct job *j)
{
        size_t size;
        job_body(j, &size);
        if (j->outcome == JOB_FAILED)
                return;
        text_printf(t, "%d  ", j->status);
        size_t from = t->len;
        text_add_size(t, size);
        while (t->len - from < 9)
                text_putc(t, ' ');
        text_add_duration(t, resha_between(j->started, j->finished));
        text_printf(t, "  %s\n", j->key);
}

static int write_all(void *arg)
{
        struct output *o = arg;
        size_t done = 0;
        while (done < o->text.len) {
                ssize_t n = write(o->fd, o->text.data + done, o->text.len - done);
                if (n >= 0) {
                        done += (size_t)n;
                } else if (errno == EAGAIN) {
                        struct pollfd p = { .fd = o->fd, .events = POLLOUT };
                        poll(&p, 1, -1);
                } else if (errno != EINTR) {
                        return resha_fail(-errno, "%s: %s", o->name, strerror(errno));
                }
        }
        return 0;
}

int output_write(struct output *o, struct job *const *jobs, size_t n)
{
        text_clear(&o->text);
        for (size_t i = 0; i < n; i++) {
                if (jobs[i]->kind != JOB_URL || job_is_old(jobs[i]))
                        continue;
                if (o->format == OUTPUT_LINES && o->clear_first && o->text.len == 0)
                        text_puts(&o->text, "\r\033[K");
                if (o->format == OUTPUT_JSON)
                        add_json(&o->text, jobs[i]);
                else
                        add_line(&o->text, jobs[i]);
        }
        if (o->text.failed)
                return -ENOMEM;
        return o->text.len ? resha_pool_run(NULL, write_all, o, NULL) : 0;
}

int output_close(struct output *o)
{
        int rc = 0;
        if (!o)
                return 0;
        if (o->fd != STDOUT_FILENO && close(o->fd) < 0)
                rc = resha_fail(-errno, "%s: %s", o->name, strerror(errno));
        text_done(&o->text);
        resha_free(o);
        return rc;
}

void output_closep(struct output **o)
{
        (void)output_close(*o);
        *o = NULL;
}
