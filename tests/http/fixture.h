/* SPDX-License-Identifier: MIT */
#ifndef FIXTURE_H
#define FIXTURE_H

/* The bad server beside this file, started for a test and always ended. */

#include "test.h"

#include <resha/http.h>

#include <sys/types.h>

struct fixture {
        pid_t pid;
        int in; /* its standard input: the server ends when this is closed, however the test ends */
        int http, https, wrong, selfsigned, silent, full, proxy;
        char ca[128]; /* "": no TLS here */
        resha_http *h;
};

/* Runs fn(f) as main task on the real network, with a server and a session of default options. */
void fixture_run(int (*fn)(struct fixture *f), bool tls, const char *file, int line);

#define NETWORK(n) \
        static int network_##n(struct fixture *f); \
        TEST(n) \
        { \
                fixture_run(network_##n, false, TEST_AT); \
        } \
        static int network_##n(struct fixture *f)

#define NETWORK_TLS(n) \
        static int network_##n(struct fixture *f); \
        TEST(n) \
        { \
                fixture_run(network_##n, true, TEST_AT); \
        } \
        static int network_##n(struct fixture *f)

/* "http://127.0.0.1:PORT/path"; valid for the next seven calls. */
const char *fixture_url(int port, const char *path);

/* A session of its own. */
resha_http *fixture_session(resha_http_opts o);

/* GET that must succeed with this status and body. */
void fixture_get(resha_http *h, const char *url, int status, const char *body);

/* GET that must fail with this code, and with `text` in its record. */
/* What a name that does not exist gives: where no name server answers, nobody can say that. */
int fixture_no_host(void);

void fixture_fail(resha_http *h, const char *url, int code, const char *text);

/* What the server has counted: "connections", "GET /ok". Makes a connection of its own, which is not counted. */
int fixture_count(struct fixture *f, const char *what);

#endif
