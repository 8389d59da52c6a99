/* SPDX-License-Identifier: MIT */
/* What does a GET cost? N requests to one URL, C at once, over a session: CPU of the whole process for each request.
 *
 *     http_get URL N C
 *
 * Its peer, peers/http_get_multi.c, is the bare loop on the same libcurl interface. One line of JSON each. */

#include <resha/http.h>
#include <resha/resha.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

struct job {
        resha_http *http;
        const char *url;
        unsigned left; /* requests that nobody has started */
        size_t bytes;
};

static int worker(void *arg)
{
        struct job *j = arg;
        while (j->left > 0) {
                resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
                size_t size;
                j->left--;
                int rc = resha_http_get(j->http, j->url, &r);
                if (rc < 0)
                        return rc;
                (void)resha_response_body(r, &size);
                j->bytes += size;
        }
        return 0;
}

static double cpu_us(void)
{
        struct rusage u;
        getrusage(RUSAGE_SELF, &u);
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

struct args {
        const char *url;
        unsigned requests, at_once;
};

static int program(void *arg)
{
        const struct args *a = arg;
        resha_http *http RESHA_CLEANUP(resha_http_freep) = NULL;
        int rc = resha_http_new(NULL, &http);
        if (rc < 0)
                return rc;
        struct job j = { .http = http, .url = a->url, .left = a->requests };
        resha_instant start = resha_now();
        double cpu = cpu_us();
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        for (unsigned i = 0; i < a->at_once; i++)
                resha_spawn(&g, worker, &j);
        rc = resha_group_end(&g, 0);
        cpu = cpu_us() - cpu;
        double wall = (double)resha_between(start, resha_now()).ns / 1e3;
        if (rc >= 0)
                printf("{\"bench\":\"http_get\",\"who\":\"resha\",\"at_once\":%u,\"requests\":%u,\"bytes\":%zu,"
                       "\"cpu_us\":%.2f,\"wall_us\":%.2f}\n",
                       a->at_once, a->requests, j.bytes, cpu / a->requests, wall / a->requests);
        return rc;
}

int main(int argc, char **argv)
{
        if (argc != 4) {
                fprintf(stderr, "usage: http_get URL REQUESTS AT_ONCE\n");
                return 2;
        }
        struct args a = { argv[1], (unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10) };
        return resha_main(program, &a);
}
