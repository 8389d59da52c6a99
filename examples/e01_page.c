/* SPDX-License-Identifier: MIT */
/* E1: fetch one page.   e1 http://example.org/ */
#include <stdio.h>

#include <resha/http.h>
#include <resha/resha.h>

static int program(void *arg)
{
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        size_t size;

        int rc = resha_http_new(NULL, &session);
        if (rc >= 0)
                rc = resha_http_get(session, arg, &r);
        if (rc < 0)
                return rc;
        const char *body = resha_response_body(r, &size);
        printf("status %d, %s\n", resha_response_status(r), resha_response_header(r, "Content-Type"));
        printf("%zu bytes: %.12s...\n", size, body);
        return 0;
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : "http://example.org/");
}
