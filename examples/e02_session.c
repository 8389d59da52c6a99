/* SPDX-License-Identifier: MIT */
/* E2: a session keeps its connections open for the next request. Ten requests by ten sessions, then by one; the server
 * counts.   e2 http://127.0.0.1:8017 */
#include <stdio.h>
#include <string.h>

#include <resha/http.h>
#include <resha/resha.h>

static const char *base = "http://127.0.0.1:8017";

static int get(resha_http *session, const char *path, resha_response **ret_response)
{
        char url[256];

        snprintf(url, sizeof url, "%s%s", base, path);
        return resha_http_get(session, url, ret_response);
}

/* What the server has seen so far; asked for over the session's one connection. */
static int connections(resha_http *session)
{
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = get(session, "/stats", &r), n = 0;

        if (rc < 0)
                return rc;
        const char *at = strstr(resha_response_body(r, NULL), "\"connections\":");
        return at && sscanf(at, "\"connections\":%d", &n) == 1 ? n : resha_fail(-EPROTO, "no count in /stats");
}

static int ten_requests(resha_http *shared)
{
        int rc = 0;

        for (int i = 0; i < 10 && rc >= 0; i++) {
                resha_http *own RESHA_CLEANUP(resha_http_freep) = NULL;
                resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
                if (!shared)
                        rc = resha_http_new(NULL, &own);
                if (rc >= 0)
                        rc = get(shared ? shared : own, "/v0/item/1001.json", &r);
        }
        return rc;
}

static int program(void *arg)
{
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        int rc = resha_http_new(NULL, &session);

        (void)arg;
        for (int shared = 0; shared < 2 && rc >= 0; shared++) {
                int before = rc = connections(session);
                if (rc >= 0)
                        rc = ten_requests(shared ? session : NULL);
                if (rc >= 0)
                        rc = connections(session);
                if (rc >= 0)
                        printf("%s: %d new connections\n",
                               shared ? "one session for all      " : "a session for each of ten", rc - before);
        }
        return rc;
}

int main(int argc, char **argv)
{
        base = argc > 1 ? argv[1] : base;
        return resha_main(program, NULL);
}
