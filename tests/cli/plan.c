/* SPDX-License-Identifier: MIT */

/* Plans: what becomes of arguments, lists, templates and ids, in order and up to a limit. */

#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "plan.h"

static const char *ids_of(const char *json, const char *path)
{
        static char copy[512];
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;
        IDS(ids);
        TEXT(t);
        const char *id;
        size_t size;
        ASSERT_OK(resha_sqlite_open(":memory:", NULL, &db));
        int rc = ids_add_json(&ids, db, json, strlen(json), path);
        while (ids_next(&ids, &id, &size) > 0)
                text_printf(&t, "%s ", id);
        if (rc < 0)
                text_printf(&t, "! %s", resha_error_of(rc)->text);
        snprintf(copy, sizeof copy, "%s", text_string(&t));
        return copy;
}

TASK(ids_in_json)
{
        ASSERT_STR(ids_of("[1, 22,\"a b\",3.5]", NULL), "1 22 a b 3.5 ");
        ASSERT_STR(ids_of("{\"items\":[{\"id\":7},{\"id\":\"x\"},{\"no\":1},5]}", "$.items[*].id"), "7 x ");
        ASSERT_STR(ids_of("{\"items\":[{\"id\":7},{\"id\":8}]}", "items[*].id"),
                   "! --ids items[*].id: must begin with $");
        ASSERT_STR(ids_of("{\"a\":[{\"b\":[{\"c\":1},{\"c\":2}]},{\"b\":[{\"c\":3}]}]}", "$.a[*].b[*].c"), "1 2 3 ");
        ASSERT_STR(ids_of("{\"a\":[[1,2],[3]]}", "$.a[*][*]"), "1 2 3 ");
        ASSERT_STR(ids_of("{\"a\":[1,2]}", "$.a"), "1 2 ");
        ASSERT_STR(ids_of("[]", NULL), "");
        ASSERT_HAS(ids_of("[{\"id\":1}]", NULL), "no numbers or texts at $");
        ASSERT_HAS(ids_of("<html>", NULL), "malformed JSON");
        ASSERT_STR(ids_of("{\"items\":[]}", "$.items[*].id"), "");
        ASSERT_STR(ids_of("{\"items\":[1]}", "$.itmes"), "! there is nothing at $.itmes");
        return 0;
}

/* All jobs of a plan as "number:url;" or "number:!error;". */
static const char *jobs_of(struct plan *p)
{
        static char copy[1024];
        TEXT(t);
        struct job *j;
        int rc;
        while ((rc = plan_next(p, true, &j)) > 0) {
                if (j->outcome == JOB_FAILED)
                        text_printf(&t, "%d:!%s;", (int)j->number, j->error);
                else
                        text_printf(&t, "%d:%s;", (int)j->number, j->url);
                job_free(j);
        }
        text_printf(&t, "%d", rc);
        snprintf(copy, sizeof copy, "%s", text_string(&t));
        return copy;
}

static struct list *list_of(const char *text)
{
        char path[64];
        struct list *l = NULL;
        snprintf(path, sizeof path, "/tmp/resha-plan-%d", (int)getpid());
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ASSERT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
        close(fd);
        ASSERT_OK(list_open(path, &l));
        unlink(path);
        return l;
}

TASK(plan_of_arguments_and_a_list)
{
        const char *urls[] = { "http://a/", "gopher://b/" };
        struct plan *p RESHA_CLEANUP(plan_freep) = NULL;
        struct plan_options o = { .urls = urls, .n_urls = 2, .list = list_of("http://c/\n# no\nhttp://d/ x\n") };
        ASSERT_OK(plan_new(&o, &p));
        ASSERT_EQ(plan_total(p), 4);
        ASSERT_STR(jobs_of(p), "1:http://a/;2:!no URL: it does not begin with http:// or https://;3:http://c/;"
                               "4:!line 3 is no URL: it has a blank in it (write %20);0");
        return 0;
}

TASK(plan_shows_what_is_no_url)
{
        char long_line[70000];
        const char *urls[] = { "http://a/\033[31m", long_line };
        struct plan *p RESHA_CLEANUP(plan_freep) = NULL;
        memset(long_line, 'x', sizeof long_line - 1);
        memcpy(long_line + sizeof long_line - 2, "\n", 2);
        struct plan_options o = { .urls = urls, .n_urls = 1, .list = list_of(long_line) };
        ASSERT_OK(plan_new(&o, &p));
        struct job *job RESHA_CLEANUP(job_freep) = NULL;
        ASSERT_EQ(plan_next(p, true, &job), 1);
        ASSERT_STR(job->key, "http://a/\xef\xbf\xbd[31m");
        ASSERT_STR(jobs_of(p), "2:!line 1 is no URL: it is longer than 64 KiB;0");
        return 0;
}

TASK(plan_is_cut_at_first)
{
        const char *urls[] = { "http://a/" };
        struct plan *p RESHA_CLEANUP(plan_freep) = NULL;
        struct plan_options o = { .urls = urls, .n_urls = 1, .list = list_of("http://b/\nhttp://c/\n"), .first = 2 };
        ASSERT_OK(plan_new(&o, &p));
        ASSERT_EQ(plan_total(p), 2);
        ASSERT_STR(jobs_of(p), "1:http://a/;2:http://b/;0");
        return 0;
}

TASK(plan_of_a_template_and_a_fetched_list)
{
        const char *urls[] = { "/v0/item/{}.json" };
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;
        struct plan *p RESHA_CLEANUP(plan_freep) = NULL;
        struct job *job RESHA_CLEANUP(job_freep) = NULL;
        struct plan_options o = { .urls = urls, .n_urls = 1, .each = "/v0/top.json", .base_url = "http://h:1/v0" };
        ASSERT_OK(resha_sqlite_open(":memory:", NULL, &db));
        ASSERT_OK(plan_new(&o, &p));
        ASSERT_TRUE(plan_has_ids(p));
        ASSERT_EQ(plan_ids_job(p, &job), 1);
        ASSERT_STR(job->url, "http://h:1/v0/top.json");
        ASSERT_EQ(plan_total(p), -1);
        ASSERT_OK(plan_take_ids(p, db, "[5,\"a/b\"]", 9));
        ASSERT_EQ(plan_total(p), 2);
        ASSERT_STR(jobs_of(p), "1:http://h:1/v0/item/5.json;2:http://h:1/v0/item/a%2Fb.json;0");
        return 0;
}

TASK(plan_of_ids_from_a_query)
{
        const char *urls[] = { "http://h/{}" };
        resha_sqlite *db RESHA_CLEANUP(resha_sqlite_closep) = NULL;
        struct plan *p RESHA_CLEANUP(plan_freep) = NULL;
        struct job *job = NULL;
        struct plan_options o = { .urls = urls,
                                  .n_urls = 1,
                                  .each = "sql:select 3 union select 'x' union select null" };
        ASSERT_OK(resha_sqlite_open(":memory:", NULL, &db));
        ASSERT_OK(plan_new(&o, &p));
        ASSERT_EQ(plan_ids_job(p, &job), 0);
        ASSERT_OK(plan_load_ids(p, db));
        ASSERT_STR(jobs_of(p), "1:http://h/3;2:http://h/x;0");
        return 0;
}

TASK(job_has_two_spellings_of_a_private_url)
{
        static const char url[] = "http://me:s3cret@h/x";
        struct job *j RESHA_CLEANUP(job_freep) = job_new(JOB_URL, 1, url, sizeof url - 1);
        ASSERT_STR(j->url, url);
        ASSERT_STR(j->key, "http://h/x");
        return 0;
}

/* An answer with a body of *impl bytes, each 'b'. */
static int give_body(void *impl, const resha_http_attempt *attempt, resha_http_sink *sink)
{
        static const char type[] = "Content-Type: text/x", etag[] = "ETag: \"e\"";
        char body[JOB_ROOM + 1];
        const size_t *size = impl;
        (void)attempt;
        memset(body, 'b', sizeof body);
        int rc = resha_http_sink_status(sink, 200);
        if (rc >= 0)
                rc = resha_http_sink_header(sink, type, sizeof type - 1);
        if (rc >= 0)
                rc = resha_http_sink_header(sink, etag, sizeof etag - 1);
        return rc < 0 ? rc : resha_http_sink_body(sink, body, *size);
}

/* Bytes beside the body: the two headers' values and three zeros. */
enum { BESIDE = sizeof "text/x" + sizeof "\"e\"" + 1 };

TASK(job_takes_an_answer_into_its_room_or_keeps_it_whole)
{
        static const size_t sizes[] = { 0, 1, JOB_ROOM - BESIDE, JOB_ROOM - BESIDE + 1, JOB_ROOM, JOB_ROOM + 1 };
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                size_t size = sizes[i];
                resha_http_transport t = { .perform = give_body, .impl = &size };
                resha_http *h RESHA_CLEANUP(resha_http_freep) = NULL;
                resha_response *r = NULL;
                struct job *j RESHA_CLEANUP(job_freep) = job_new(JOB_URL, 1, "http://me:s3cret@h/x", 20);
                ASSERT_OK(resha_http_new(&(resha_http_opts){ .transport = &t }, &h));
                ASSERT_OK(resha_http_get(h, j->url, &r));
                job_take_answer(j, r);
                ASSERT_EQ(j->answer.whole != NULL, size > JOB_ROOM - BESIDE);
                ASSERT_STR(j->answer.content_type, "text/x");
                ASSERT_STR(j->answer.etag, "\"e\"");
                ASSERT_PTR(j->answer.last_modified, NULL);
                const char *body = job_body(j, &size);
                ASSERT_EQ(size, sizes[i]);
                ASSERT_EQ(strlen(body), size);
                ASSERT_EQ(strspn(body, "b"), size);
                ASSERT_STR(j->key, "http://h/x");
        }
        return 0;
}
