/* SPDX-License-Identifier: MIT */
/* E6: many URLs, ten at a time, at most five seconds each: a result or an error for every one; no failure loses
 * another's result.   e6 SECONDS URL... */
#include <stdio.h>
#include <stdlib.h>

#include <resha/http.h>
#include <resha/resha.h>

enum { MOST = 500 };

struct page {
        resha_http *session;
        const char *url;
        resha_duration limit;
        int status;
        size_t size;
};

static int get(void *arg)
{
        struct page *p = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(p->session, p->url, &r);

        if (rc < 0)
                return rc;
        p->status = resha_response_status(r);
        resha_response_body(r, &p->size);
        return 0;
}

static int get_in_time(void *arg)
{
        struct page *p = arg;

        return resha_timeout(p->limit, get, p);
}

static int program(void *arg)
{
        char **words = arg;
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        static struct page pages[MOST];
        static resha_error errors[MOST];
        size_t n = 0, failed = 0;
        double seconds = words[0] ? strtod(words[0], NULL) : 5;

        int rc = resha_http_new(NULL, &session);
        if (rc < 0)
                return rc;
        for (; words[0] && n < MOST && words[n + 1]; n++)
                pages[n] = (struct page){ .session = session, .url = words[n + 1], .limit = RESHA_S(seconds) };
        rc = resha_gather(
                get_in_time, pages, n, sizeof pages[0],
                &(resha_gather_opts){ .limit = 10, .keep_going = true, .ret_errors = errors, .ret_failed = &failed });
        for (size_t i = 0; i < n; i++)
                if (errors[i].code)
                        printf("%s: none, %s\n", pages[i].url, errors[i].text);
                else
                        printf("%s: %d, %zu bytes\n", pages[i].url, pages[i].status, pages[i].size);
        printf("%zu of %zu failed\n", failed, n);
        return rc;
}

int main(int argc, char **argv)
{
        (void)argc;
        return resha_main(program, argv + 1);
}
