/* SPDX-License-Identifier: MIT */
/* E5: the status of some sites: one by one takes the sum of their times, at once the longest.   e5 URL URL URL URL */
#include <stdio.h>

#include <resha/http.h>
#include <resha/resha.h>

enum { MOST = 8 };

struct site {
        resha_http *session;
        const char *url;
        int status;
};

static int look(void *arg)
{
        struct site *s = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(s->session, s->url, &r);

        if (rc >= 0)
                s->status = resha_response_status(r);
        return rc;
}

static double seconds_since(resha_instant start)
{
        return (double)resha_between(start, resha_now()).ns / 1e9;
}

static int program(void *arg)
{
        char **urls = arg;
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        struct site sites[MOST];
        size_t n = 0;

        int rc = resha_http_new(NULL, &session);
        for (; n < MOST && urls[n]; n++)
                sites[n] = (struct site){ .session = session, .url = urls[n] };

        resha_instant start = resha_now();
        for (size_t i = 0; i < n && rc >= 0; i++)
                rc = look(&sites[i]);
        if (rc < 0)
                return rc;
        printf("one by one: %.1f s\n", seconds_since(start));

        start = resha_now();
        rc = resha_gather(look, sites, n, sizeof sites[0], NULL);
        if (rc < 0)
                return rc;
        printf("at once:    %.1f s\n", seconds_since(start));
        for (size_t i = 0; i < n; i++)
                printf("%d  %s\n", sites[i].status, sites[i].url);
        return 0;
}

int main(int argc, char **argv)
{
        (void)argc;
        return resha_main(program, argv + 1);
}
