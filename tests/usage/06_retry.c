/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <resha/http.h>
#include <resha/resha.h>

struct call { resha_http *session; const char *url; resha_response *response; };

static int once(void *arg)
{
        struct call *c = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(c->session, c->url, &r);
        if (rc < 0)
                return rc;
        if (resha_response_status(r) >= 500)
                return resha_fail(-EAGAIN, "%s: status %d", c->url, resha_response_status(r));
        c->response = r, r = NULL;
        return 0;
}

static int get_with_retry(struct call *c)
{
        RESHA_SCOPE(all);
        resha_timeout_begin(&all, RESHA_S(6));
        int rc = 0;
        for (int attempt = 0; attempt < 3; attempt++) {
                rc = resha_timeout(RESHA_S(2), once, c);
                if (rc != -ETIME && rc != -EAGAIN)
                        break;                          /* done, permanent, or cancelled */
                int rc2 = resha_sleep(RESHA_S(1 << attempt));
                if (rc2 < 0)
                        return resha_scope_end(&all, rc2);      /* a plain `return rc2` would be safe too */
        }
        rc = resha_scope_end(&all, rc);
        return resha_scope_expired(&all) ? resha_fail(rc, "%s: gave up after 6 s", c->url) : rc;
}

static int program(void *arg)
{
        resha_http *s RESHA_CLEANUP(resha_http_freep) = NULL;
        int rc = resha_http_new(NULL, &s);
        if (rc < 0)
                return rc;
        struct call c = { s, arg, NULL };
        rc = get_with_retry(&c);
        resha_response_free(c.response);
        return rc;
}
int main(int argc, char **argv) { return argc != 2 || resha_run(program, argv[1], NULL) < 0; }
