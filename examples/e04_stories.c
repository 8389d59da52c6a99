/* SPDX-License-Identifier: MIT */
/* E4: ten stories, one by one, then all at once.   e4 https://hacker-news.firebaseio.com */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/http.h>
#include <resha/resha.h>

enum { STORIES = 10 };

struct story {
        resha_http *session;
        const char *base;
        long id;
        size_t size;
};

static int fetch(void *arg)
{
        struct story *s = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        char url[256];

        snprintf(url, sizeof url, "%s/v0/item/%ld.json", s->base, s->id);
        int rc = resha_http_get(s->session, url, &r);
        if (rc >= 0)
                resha_response_body(r, &s->size);
        return rc;
}

/* The first ten of "[1, 2, ...]". */
static int fetch_ids(resha_http *session, const char *base, struct story s[STORIES])
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        char url[256], *end;

        snprintf(url, sizeof url, "%s/v0/topstories.json", base);
        int rc = resha_http_get(session, url, &r);
        if (rc < 0)
                return rc;
        const char *at = resha_response_body(r, NULL);
        for (int i = 0; i < STORIES; i++, at = end) {
                at = strpbrk(at, "0123456789");
                if (!at)
                        return resha_fail(-EPROTO, "%s gives %d ids only", url, i);
                s[i] = (struct story){ .session = session, .base = base, .id = strtol(at, &end, 10) };
        }
        return 0;
}

static void report(const char *how, const struct story *s, resha_instant start)
{
        size_t bytes = 0;

        for (int i = 0; i < STORIES; i++)
                bytes += s[i].size;
        printf("%s: %.1f s (%zu bytes)\n", how, (double)resha_between(start, resha_now()).ns / 1e9, bytes);
}

static int program(void *arg)
{
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        struct story s[STORIES];

        int rc = resha_http_new(NULL, &session);
        if (rc >= 0)
                rc = fetch_ids(session, arg, s);
        if (rc < 0)
                return rc;

        resha_instant start = resha_now();
        for (int i = 0; i < STORIES && rc >= 0; i++)
                rc = fetch(&s[i]);
        if (rc < 0)
                return rc;
        report("one by one", s, start);

        start = resha_now();
        rc = resha_gather(fetch, s, STORIES, sizeof s[0], NULL);
        if (rc >= 0)
                report("all at once", s, start);
        return rc;
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : "https://hacker-news.firebaseio.com");
}
