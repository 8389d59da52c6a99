/* SPDX-License-Identifier: MIT */

/* What to fetch. Nothing is held but the position: a list is read through a buffer, ids are packed bytes. So the size
 * of the plan does not matter for memory, and the first request can start before the last line of stdin is there. */

#include "plan.h"

#include <string.h>

#include <resha/alloc.h>
#include <resha/error.h>

#include "url.h"

static const char query_prefix[] = "sql:";

struct plan {
        struct plan_options o;
        struct ids ids;
        bool ids_loaded;
        size_t next_url;
        int64_t listed; /* entries of the list, -1: not known */
        uint64_t given; /* jobs made */
        struct text work;
};

int plan_new(const struct plan_options *opts, struct plan **ret_plan)
{
        struct plan *p = resha_malloc(sizeof *p);
        if (!p)
                return -ENOMEM;
        *p = (struct plan){ .o = *opts, .listed = opts->list ? list_count(opts->list) : 0 };
        *ret_plan = p;
        return 0;
}

void plan_free(struct plan *p)
{
        if (!p)
                return;
        list_free(p->o.list);
        ids_done(&p->ids);
        text_done(&p->work);
        resha_free(p);
}

void plan_freep(struct plan **p)
{
        plan_free(*p);
        *p = NULL;
}

bool plan_has_ids(const struct plan *p)
{
        return p->o.each != NULL;
}

/* An address relative to --base-url, or as it is; in p->work. */
static void resolve(struct plan *p, const char *ref, size_t size)
{
        text_clear(&p->work);
        if (p->o.base_url)
                url_add_resolved(&p->work, p->o.base_url, ref, size);
        else
                text_add(&p->work, ref, size);
}

/* Whether --each names a URL, not a file: it is absolute, or a path that is made absolute by --base-url. */
static bool each_is_url(const struct plan *p)
{
        const char *each = p->o.each;
        return each && strcmp(each, "-") != 0 && strncmp(each, query_prefix, strlen(query_prefix)) != 0 &&
               (p->o.base_url || strncasecmp(each, "http://", 7) == 0 || strncasecmp(each, "https://", 8) == 0);
}

bool plan_has_ids_job(const struct plan *p)
{
        return each_is_url(p);
}

int plan_ids_job(struct plan *p, struct job **ret_job)
{
        if (!each_is_url(p) || p->ids_loaded)
                return 0;
        resolve(p, p->o.each, strlen(p->o.each));
        const char *problem = p->work.failed ? NULL : url_problem(p->work.data, p->work.len);
        if (problem) {
                TEXT(public);
                url_add_public(&public, p->o.each, strlen(p->o.each));
                return resha_fail(-EINVAL, "--each %s: %s", text_string(&public), problem);
        }
        *ret_job = p->work.failed ? NULL : job_new(JOB_IDS, 0, p->work.data, p->work.len);
        return *ret_job ? 1 : -ENOMEM;
}

int plan_take_ids(struct plan *p, resha_sqlite *db, const char *json, size_t size)
{
        p->ids_loaded = true;
        return ids_add_json(&p->ids, db, json, size, p->o.ids_path);
}

int plan_load_ids(struct plan *p, resha_sqlite *db)
{
        if (!p->o.each || p->ids_loaded || each_is_url(p))
                return 0;
        p->ids_loaded = true;
        if (strncmp(p->o.each, query_prefix, strlen(query_prefix)) == 0)
                return ids_add_query(&p->ids, db, p->o.each + strlen(query_prefix));
        return ids_add_file(&p->ids, db, p->o.each, p->o.ids_path);
}

static const char *work_problem(const struct plan *p)
{
        return url_problem(text_string(&p->work), p->work.len);
}

/* What is no URL is shown and stored all the same: a 0 byte would make another URL of it, an escape would reach the
 * terminal. */
static void replace_controls(struct text *t)
{
        TEXT(clean);
        for (size_t i = 0, n; i < t->len; i += n ? n : 1) {
                n = url_control(t->data + i, t->len - i);
                if (n)
                        text_puts(&clean, "\xef\xbf\xbd");
                else
                        text_putc(&clean, t->data[i]);
        }
        text_clear(t);
        text_add(t, text_string(&clean), clean.len);
        t->failed |= clean.failed;
}

/* A job for what is in p->work, or one that has failed already. */
static int make_job(struct plan *p, unsigned long line, const char *problem, struct job **ret_job)
{
        if (problem)
                replace_controls(&p->work);
        struct job *j = p->work.failed ? NULL : job_new(JOB_URL, p->given + 1, text_string(&p->work), p->work.len);
        if (!j)
                return -ENOMEM;
        if (problem) {
                TEXT(why);
                if (line)
                        text_printf(&why, "line %lu is ", line);
                text_printf(&why, "no URL: it %s", problem);
                job_fail(j, text_string(&why));
        }
        p->given++;
        *ret_job = j;
        return 1;
}

static int next_of_list(struct plan *p, bool wait, struct job **ret_job)
{
        const char *line = "";
        size_t size = 0;
        unsigned long number = 0;
        int rc = p->o.list ? list_next(p->o.list, wait, &line, &size, &number) : 0;
        if (rc == -EMSGSIZE) {
                text_clear(&p->work);
                text_printf(&p->work, "(line %lu)", number);
                return make_job(p, number, "is longer than 64 KiB", ret_job);
        }
        if (rc <= 0)
                return rc;
        resolve(p, line, size);
        return make_job(p, number, work_problem(p), ret_job);
}

int plan_next(struct plan *p, bool wait, struct job **ret_job)
{
        const char *id;
        size_t size;
        if (p->o.first && p->given == p->o.first)
                return 0;
        if (p->o.each) {
                int rc = ids_next(&p->ids, &id, &size);
                if (rc <= 0)
                        return rc;
                TEXT(filled);
                url_add_filled(&filled, p->o.urls[0], id, size);
                resolve(p, text_string(&filled), filled.len);
                return filled.failed ? -ENOMEM : make_job(p, 0, work_problem(p), ret_job);
        }
        if (p->next_url < p->o.n_urls) {
                const char *url = p->o.urls[p->next_url++];
                resolve(p, url, strlen(url));
                return make_job(p, 0, work_problem(p), ret_job);
        }
        return next_of_list(p, wait, ret_job);
}

int64_t plan_total(const struct plan *p)
{
        int64_t n = p->o.each       ? (p->ids_loaded ? (int64_t)p->ids.count : -1)
                    : p->listed < 0 ? -1
                                    : (int64_t)p->o.n_urls + p->listed;
        int64_t first = p->o.first < (uint64_t)INT64_MAX ? (int64_t)p->o.first : INT64_MAX;
        return n >= 0 && first && n > first ? first : n;
}
