/* SPDX-License-Identifier: MIT */
/* E7: retry with exponential back-off: 1, 2, 4 s, less a random part, so that clients do not come back all at once.
 * Three attempts, and only for what may pass: 503 yes, 404 and 401 no.   e7 FIRST-DELAY-IN-MS URL... */
#include <stdio.h>
#include <stdlib.h>

#include <resha/http.h>
#include <resha/resha.h>

enum { MOST = 32 };

struct page {
        resha_http *session;
        const char *url;
        resha_duration base;
        unsigned attempts;
};

static int get(void *arg)
{
        struct page *p = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(p->session, p->url, &r);

        if (rc < 0)
                return rc;
        int status = resha_response_status(r);
        if (status == 503 || status == 429)
                return resha_fail(-EAGAIN, "status %d", status); /* may pass: retried */
        if (status != 200)
                return resha_fail(-ENOENT, "status %d", status); /* will not */
        return 0;
}

static int get_with_retry(void *arg)
{
        struct page *p = arg;

        return resha_retry(get, p, &(resha_retry_opts){ .attempts = 3, .base = p->base, .ret_attempts = &p->attempts });
}

static int program(void *arg)
{
        char **words = arg;
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        struct page pages[MOST];
        resha_error errors[MOST];
        size_t n = 0, failed = 0;
        resha_duration base = RESHA_MS(strtol(words[0], NULL, 10));
        int rc = resha_http_new(NULL, &session);

        for (; n < MOST && words[n + 1]; n++)
                pages[n] = (struct page){ .session = session, .url = words[n + 1], .base = base };
        if (rc >= 0)
                rc = resha_gather(
                        get_with_retry, pages, n, sizeof pages[0],
                        &(resha_gather_opts){ .keep_going = true, .ret_errors = errors, .ret_failed = &failed });
        if (rc < 0)
                return rc;
        for (size_t i = 0; i < n; i++)
                printf("%s: %s, attempts: %u\n", pages[i].url, errors[i].code ? errors[i].text : "fetched",
                       pages[i].attempts);
        printf("Successful: %zu, Failed: %zu\n", n - failed, failed);
        return 0;
}

int main(int argc, char **argv)
{
        if (argc < 3) {
                fputs("e7 FIRST-DELAY-IN-MS URL...\n", stderr);
                return 2;
        }
        return resha_main(program, argv + 1);
}
