/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <stdio.h>
#include <resha/http.h>
#include <resha/resha.h>

struct mirror { resha_http *session; const char *url; resha_response *response; };

static int get(void *arg)
{
        struct mirror *m = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(m->session, m->url, &r);
        if (rc < 0)
                return rc;
        if (resha_response_status(r) != 200)
                return resha_fail(-EPROTO, "%s: status %d", m->url, resha_response_status(r));
        m->response = r, r = NULL;                      /* ownership moves on success only */
        return 0;
}
static void drop(void *item) { struct mirror *m = item; resha_response_free(m->response); }

static int program(void *arg)
{
        char **urls = arg;
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        int rc = resha_http_new(NULL, &session);
        if (rc < 0)
                return rc;
        struct mirror m[] = { { session, urls[1], 0 }, { session, urls[2], 0 }, { session, urls[3], 0 } };
        size_t winner;
        rc = resha_race(get, m, 3, sizeof m[0], &(resha_race_opts){ .drop = drop }, &winner);
        if (rc < 0)
                return rc;
        printf("winner %zu\n", winner);
        resha_response_free(m[winner].response);
        return 0;
}

int main(int argc, char **argv) { return argc != 4 || resha_run(program, argv, NULL) < 0; }
