/* SPDX-License-Identifier: MIT */
/* Starting and ending the bad server, and the usual checks against it. */

#include "fixture.h"

#include <resha/error.h>

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int port_of(const char *line, const char *name)
{
        char key[32];
        snprintf(key, sizeof key, "%s=", name);
        const char *at = strstr(line, key);
        return at ? (int)strtol(at + strlen(key), NULL, 10) : 0;
}

static void server_exec(int in, int out, bool tls)
{
        char path[512];
        const char *source = getenv("RESHA_SOURCE");
        snprintf(path, sizeof path, "%s/tests/http/server", source ? source : ".");
        dup2(in, 0);
        dup2(out, 1);
        for (int fd = 3; fd < 64; fd++)
                close(fd);
        execlp("python3", "python3", "-S", path, tls ? "tls" : (char *)NULL, (char *)NULL);
        _exit(127);
}

static void server_start(struct fixture *f, bool tls)
{
        char line[512];
        int in[2], out[2];
        ASSERT_EQ(pipe(in) | pipe(out), 0);
        f->pid = fork();
        ASSERT_TRUE(f->pid >= 0);
        if (f->pid == 0)
                server_exec(in[0], out[1], tls);
        close(in[0]);
        close(out[1]);
        f->in = in[1];
        size_t have = 0;
        ssize_t n;
        line[0] = 0;
        while (!strchr(line, '\n') && (n = read(out[0], line + have, sizeof line - 1 - have)) > 0) {
                have += (size_t)n;
                line[have] = 0;
        }
        close(out[0]);
        f->http = port_of(line, "http");
        f->https = port_of(line, "https");
        f->wrong = port_of(line, "wrong");
        f->selfsigned = port_of(line, "selfsigned");
        f->silent = port_of(line, "silent");
        f->full = port_of(line, "full");
        f->proxy = port_of(line, "proxy");
        const char *ca = strstr(line, "ca=");
        if (ca)
                snprintf(f->ca, sizeof f->ca, "%.*s", (int)strcspn(ca + 3, "\n"), ca + 3);
        if (!f->http)
                FAIL("the server did not start: %s", line);
}

struct run {
        struct fixture *f;
        int (*fn)(struct fixture *f);
};

static int with_session(void *arg)
{
        struct run *r = arg;
        r->f->h = fixture_session((resha_http_opts){ 0 });
        int rc = r->fn(r->f);
        resha_http_free(r->f->h);
        return rc;
}

void fixture_run(int (*fn)(struct fixture *f), bool tls, const char *file, int line)
{
        struct fixture f = { 0 };
        struct run r = { &f, fn };
        int status;
        if (test_is_sim())
                test_skip("needs a network");
        server_start(&f, tls);
        if (tls && !f.ca[0])
                test_skip("needs the openssl command");
        test_run(with_session, &r, file, line);
        close(f.in);
        ASSERT_EQ(waitpid(f.pid, &status, 0), f.pid);
        ASSERT_EQ(status, 0);
}

const char *fixture_url(int port, const char *path)
{
        static char urls[8][300];
        static unsigned next;
        char *url = urls[next++ % 8];
        snprintf(url, sizeof urls[0], "http://127.0.0.1:%d%s", port, path);
        return url;
}

resha_http *fixture_session(resha_http_opts o)
{
        resha_http *h = NULL;
        ASSERT_OK(resha_http_new(&o, &h));
        return h;
}

void fixture_get(resha_http *h, const char *url, int status, const char *body)
{
        resha_response *r = NULL;
        int rc = resha_http_get(h, url, &r);
        if (rc < 0)
                FAIL("%s: %s: %s", url, resha_errname(rc), resha_error_of(rc)->text);
        ASSERT_EQ(resha_response_status(r), status);
        ASSERT_STR(resha_response_body(r, NULL), body);
        resha_response_free(r);
}

int fixture_no_host(void)
{
        struct addrinfo *list = NULL;
        int rc = getaddrinfo("no-such-host.invalid", NULL, NULL, &list);
        if (rc == 0)
                freeaddrinfo(list);
        return rc == EAI_AGAIN ? -EAGAIN : RESHA_HTTP_EHOST;
}

void fixture_fail(resha_http *h, const char *url, int code, const char *text)
{
        resha_response *r = NULL;
        int rc = resha_http_get(h, url, &r);
        if (rc != code)
                FAIL("%s: %d (%s) %s, expected %s", url, rc, rc < 0 ? resha_errname(rc) : "", resha_error_of(rc)->text,
                     resha_errname(code));
        ASSERT_HAS(resha_error_of(rc)->text, text);
        ASSERT_HAS(resha_error_of(rc)->text, "GET http");
        ASSERT_PTR(r, NULL);
}

int fixture_count(struct fixture *f, const char *what)
{
        char key[64];
        resha_response *r = NULL;
        resha_http *h = fixture_session((resha_http_opts){ 0 });
        ASSERT_OK(resha_http_get(h, fixture_url(f->http, "/count"), &r));
        snprintf(key, sizeof key, "%s=", what);
        const char *at = strstr(resha_response_body(r, NULL), key);
        int n = at ? (int)strtol(at + strlen(key), NULL, 10) : 0;
        resha_response_free(r);
        resha_http_free(h);
        return strcmp(what, "connections") == 0 ? n - 1 : n;
}
