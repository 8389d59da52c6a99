/* SPDX-License-Identifier: MIT */

/* The origin: one task for each connection, which reads a request, waits as long as a far server would, and answers.
 * Paths:
 *
 *     /v0/topstories.json    the ids of all stories
 *     /v0/item/ID.json       one story; `null` for an id that does not exist
 *     /stats                 what it has seen: requests, connections, most requests at once */

#include "origin.h"

#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/listener.h>
#include <resha/run.h>

#include "number.h"
#include "stories.h"
#include "text.h"

struct origin {
        struct origin_options o;
        bool fault_used[ORIGIN_MAX_FAULTS];
        resha_listener *listener;
        char url[48];
        uint64_t requests, connections;
        unsigned now, most; /* requests being answered */
};

int origin_open(const struct origin_options *opts, uint16_t port, struct origin **ret_origin)
{
        struct origin *o RESHA_CLEANUP(origin_closep) = resha_calloc(1, sizeof *o);
        resha_addr addr;
        if (!o)
                return -ENOMEM;
        o->o = *opts;
        int rc = resha_tcp_listen("127.0.0.1", port, &o->listener);
        if (rc >= 0)
                rc = resha_listener_addr(o->listener, &addr);
        if (rc < 0)
                return rc;
        snprintf(o->url, sizeof o->url, "http://127.0.0.1:%u", resha_addr_port(&addr));
        *ret_origin = o;
        o = NULL;
        return 0;
}

void origin_close(struct origin *o)
{
        if (!o)
                return;
        resha_listener_close(o->listener);
        resha_free(o);
}

void origin_closep(struct origin **o)
{
        origin_close(*o);
        *o = NULL;
}

const char *origin_url(const struct origin *o)
{
        return o->url;
}

void origin_set_faults(struct origin *o, const struct origin_fault *faults, size_t n)
{
        o->o.n_faults = n < ORIGIN_MAX_FAULTS ? n : ORIGIN_MAX_FAULTS;
        memset(o->fault_used, 0, sizeof o->fault_used);
        if (o->o.n_faults)
                memcpy(o->o.faults, faults, o->o.n_faults * sizeof *faults);
}

struct request {
        char path[256];
        char if_none_match[64];
        bool close, head;
};

/* Value of a header line if it has that name. */
static const char *header_value(const char *line, const char *name)
{
        size_t n = strlen(name);
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
                return NULL;
        return line + n + 1 + strspn(line + n + 1, " \t");
}

/* 1, 0 at the end of the connection, negative. */
static int read_request(resha_stream *s, struct request *r)
{
        char line[4096], method[8], version[16];
        ssize_t n = resha_read_line(s, line, sizeof line);
        *r = (struct request){ .close = false };
        if (n <= 0)
                return (int)n;
        if (sscanf(line, "%7s %255s %15s", method, r->path, version) != 3)
                return -EPROTO;
        r->head = strcmp(method, "HEAD") == 0;
        r->close = strcmp(version, "HTTP/1.0") == 0;
        while ((n = resha_read_line(s, line, sizeof line)) > 0 && line[strspn(line, "\r\n")]) {
                const char *value;
                if ((value = header_value(line, "If-None-Match")))
                        snprintf(r->if_none_match, sizeof r->if_none_match, "%.*s", (int)strcspn(value, "\r\n"), value);
                else if ((value = header_value(line, "Connection")))
                        r->close = strncasecmp(value, "close", 5) == 0;
        }
        return n > 0 ? 1 : (int)n;
}

struct answer {
        int status;
        const char *reason, *more; /* more header lines */
        struct text body;
};

static void answer_done(struct answer *a)
{
        text_done(&a->body);
}

static int send_answer(resha_stream *s, const struct request *r, const struct answer *a)
{
        TEXT(t);
        text_printf(&t, "HTTP/1.1 %d %s\r\nContent-Type: application/json; charset=utf-8\r\n%s", a->status, a->reason,
                    a->more);
        if (a->status != 304)
                text_printf(&t, "Content-Length: %zu\r\n", a->body.len);
        text_puts(&t, r->close ? "Connection: close\r\n\r\n" : "\r\n");
        if (!r->head && a->status != 304)
                text_add(&t, a->body.data, a->body.len);
        return t.failed ? -ENOMEM : resha_write_all(s, t.data, t.len, NULL);
}

static int fault_of(const struct origin *o, uint64_t rank)
{
        for (size_t i = 0; i < o->o.n_faults; i++)
                if (o->o.faults[i].rank == rank)
                        return (int)i;
        return -1;
}

/* Bends the answer: 0; 1: none is to be sent; negative: cancelled. */
static int apply_fault(struct origin *o, uint64_t rank, struct answer *a)
{
        int i = fault_of(o, rank);
        if (i < 0)
                return 0;
        bool first = !o->fault_used[i];
        o->fault_used[i] = true;
        switch (o->o.faults[i].kind) {
        case ORIGIN_BUSY:
                if (first)
                        a->status = 503, a->reason = "Service Unavailable", a->more = "Retry-After: 0.4\r\n";
                break;
        case ORIGIN_NEVER: return resha_sleep(RESHA_S(3600));
        case ORIGIN_NULL:
                text_clear(&a->body);
                text_puts(&a->body, "null");
                break;
        case ORIGIN_GONE: a->status = 404, a->reason = "Not Found"; break;
        case ORIGIN_BROKEN: a->status = 500, a->reason = "Internal Server Error"; break;
        case ORIGIN_RESET: return first;
        }
        return 0;
}

static int make_story(struct origin *o, const struct request *r, struct answer *a, char etag[64])
{
        char id[24];
        uint64_t n = 0;
        size_t digits = strspn(r->path + 9, "0123456789");
        snprintf(id, sizeof id, "%.*s", (int)digits, r->path + 9);
        bool exists = strcmp(r->path + 9 + digits, ".json") == 0 &&
                      number_count(id, STORIES_FIRST_ID, STORIES_FIRST_ID + o->o.items - 1, &n) == 0;
        if (!exists) {
                text_puts(&a->body, "null");
                return 0;
        }
        uint64_t rank = n - STORIES_FIRST_ID + 1;
        stories_add(&a->body, rank, o->o.size);
        if (o->o.etags) {
                snprintf(etag, 64, "ETag: \"s%llu\"\r\n", (unsigned long long)rank);
                a->more = etag;
                if (strncmp(etag + 6, r->if_none_match, strlen(etag + 6) - 2) == 0)
                        a->status = 304, a->reason = "Not Modified";
        }
        return apply_fault(o, rank, a);
}

static int answer(struct origin *o, resha_stream *s, const struct request *r)
{
        struct answer a RESHA_CLEANUP(answer_done) = { .status = 200, .reason = "OK", .more = "" };
        char etag[64];
        int rc = resha_sleep(o->o.delay);
        if (rc < 0)
                return rc;
        if (strcmp(r->path, "/v0/topstories.json") == 0) {
                stories_add_ids(&a.body, o->o.items);
        } else if (strncmp(r->path, "/v0/item/", 9) == 0) {
                rc = make_story(o, r, &a, etag);
        } else if (strcmp(r->path, "/stats") == 0) {
                text_printf(&a.body, "{\"requests\":%llu,\"connections\":%llu,\"most_at_once\":%u}",
                            (unsigned long long)o->requests, (unsigned long long)o->connections, o->most);
        } else {
                a.status = 404, a.reason = "Not Found";
                text_puts(&a.body, "{\"error\":\"no such path\"}");
        }
        if (rc != 0)
                return rc < 0 ? rc : -ECONNRESET;
        return send_answer(s, r, &a);
}

static int serve_connection(resha_stream *s, void *arg)
{
        struct origin *o = arg;
        struct request r;
        int rc;
        o->connections++;
        while ((rc = read_request(s, &r)) > 0) {
                o->requests++;
                if (++o->now > o->most)
                        o->most = o->now;
                rc = answer(o, s, &r);
                o->now--;
                if (rc < 0 || r.close)
                        break;
        }
        return rc;
}

int origin_serve(void *arg)
{
        struct origin *o = arg;
        return resha_serve(o->listener, serve_connection, o, &(resha_serve_opts){ .max_connections = 10000 });
}

struct command {
        struct origin_options opts;
        uint16_t port;
};

static int program(void *arg)
{
        const struct command *c = arg;
        struct origin *o RESHA_CLEANUP(origin_closep) = NULL;
        int rc = origin_open(&c->opts, c->port, &o);
        if (rc < 0)
                return rc;
        printf("%s\n", origin_url(o));
        fflush(stdout);
        return origin_serve(o);
}

static int add_fault(struct origin_options *o, const char *spec)
{
        static const char *const kinds[] = { "busy", "never", "null", "gone", "broken", "reset" };
        char rank[24];
        size_t digits = strspn(spec, "0123456789");
        struct origin_fault f;
        snprintf(rank, sizeof rank, "%.*s", (int)digits, spec);
        if (o->n_faults == ORIGIN_MAX_FAULTS || spec[digits] != '=' || number_count(rank, 1, UINT64_MAX, &f.rank) < 0)
                return -EINVAL;
        for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
                if (strcmp(spec + digits + 1, kinds[i]) != 0)
                        continue;
                f.kind = (enum origin_fault_kind)i;
                o->faults[o->n_faults++] = f;
                return 0;
        }
        return -EINVAL;
}

static int set(struct command *c, const char *name, const char *value)
{
        uint64_t n;
        int rc;
        if (strcmp(name, "--port") == 0) {
                if ((rc = number_count(value, 0, 65535, &n)) == 0)
                        c->port = (uint16_t)n;
        } else if (strcmp(name, "--delay") == 0) {
                rc = strcmp(value, "0") == 0 ? (c->opts.delay = RESHA_NS(0), 0) : number_time(value, &c->opts.delay);
        } else if (strcmp(name, "--items") == 0) {
                rc = number_count(value, 0, 10000000, &c->opts.items);
        } else if (strcmp(name, "--size") == 0) {
                if ((rc = number_size(value, &n)) == 0)
                        c->opts.size = (size_t)n;
        } else {
                rc = strcmp(name, "--fault") == 0 ? add_fault(&c->opts, value) : -EINVAL;
        }
        return rc;
}

int origin_main(int argc, char **argv)
{
        struct command c = { .opts = { .delay = RESHA_MS(200), .items = 500 } };
        for (int i = 0; i < argc; i++) {
                if (strcmp(argv[i], "--etags") == 0) {
                        c.opts.etags = true;
                } else if (i + 1 == argc || set(&c, argv[i], argv[i + 1]) < 0) {
                        fprintf(stderr, "Usage: resha origin [--port N] [--delay T] [--items N] [--size N] [--etags] "
                                        "[--fault RANK=busy|never|null|gone|broken|reset]...\n");
                        return 2;
                } else {
                        i++;
                }
        }
        return resha_main(program, &c);
}
