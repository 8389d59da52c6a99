/* SPDX-License-Identifier: MIT */
/* Our end of the tests with programs of others: a client and a server whose every option is a word KEY=VALUE.
 *
 *     tls-tool server [OPTION...]           prints its port, then a line about each connection
 *     tls-tool get PORT PATH [OPTION...]    asks for PATH by HTTP/1.0, prints a line about the connection, and the
 *     answer tls-tool talk PORT [OPTION...]        sends the lines of standard input, prints what comes
 *     tls-tool starttls PORT [OPTION...]    says STARTTLS in plain text, and then as get of /
 *
 * The server answers /about with its line about the connection, /bytes/N with N bytes of a pattern, and PUT of anything
 * with the number of bytes, if they are of the pattern. A failure is a line "CODE: text", and exit status 1.
 *
 * Options: host, cert, key, trust, crl, peer (ask, require), alpn (a,b), min, max (1.2, 1.3), times (of get: N
 * connections one after the other), name (HOST:CERT:KEY), finish (0: the server leaves without saying so), plain (1:
 * the server wants a line STARTTLS first). */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>
#include <resha/tls.h>

enum { LINE = 1024, PIECE = 16384, WORDS = 8 };

struct tool {
        const char *what, *path, *host;
        uint16_t port;
        unsigned times;
        bool cut, plain;
        resha_tls_opts opts;
        resha_tls_name name;
        const char *alpn[WORDS];
        resha_tls *tls;
};

/* ---- about a connection ---- */

static int describe(resha_stream *s, char *text, size_t size)
{
        resha_tls_info i;
        int rc = resha_tls_about(s, &i);

        if (rc < 0)
                return rc;
        snprintf(text, size, "version=%s cipher=%s alpn=%s host=%s resumed=%d verified=%d subject=%s\n",
                 i.version == RESHA_TLS_1_3 ? "1.3" : "1.2", i.cipher, i.alpn, i.host, i.resumed, i.verified,
                 i.subject);
        return 0;
}

static void tell(const char *text)
{
        fputs(text, stdout);
        fflush(stdout);
}

static int tell_failure(int rc)
{
        const char *name = resha_errname(rc);

        printf("%s: %s\n", name ? name : "?", resha_error_of(rc)->text);
        fflush(stdout);
        return rc;
}

/* ---- the server ---- */

static char pattern(uint64_t at)
{
        return (char)('a' + (at * 7 + at / 26) % 26);
}

static int send_text(resha_stream *s, const char *text)
{
        return resha_write_all(s, text, strlen(text), NULL);
}

static int send_pattern(resha_stream *s, uint64_t total)
{
        char *buf = resha_malloc(PIECE);
        int rc = buf ? 0 : -ENOMEM;

        for (uint64_t at = 0; at < total && rc == 0;) {
                size_t n = total - at < PIECE ? (size_t)(total - at) : PIECE;
                for (size_t i = 0; i < n; i++)
                        buf[i] = pattern(at + i);
                rc = resha_write_all(s, buf, n, NULL);
                at += n;
        }
        resha_free(buf);
        return rc;
}

static int take_pattern(resha_stream *s, uint64_t total)
{
        char *buf = resha_malloc(PIECE);
        ssize_t n = buf ? 1 : -ENOMEM;

        for (uint64_t at = 0; at < total && n > 0; at += n > 0 ? (uint64_t)n : 0) {
                n = resha_read(s, buf, total - at < PIECE ? (size_t)(total - at) : PIECE);
                for (ssize_t i = 0; i < n; i++)
                        if (buf[i] != pattern(at + (uint64_t)i))
                                n = resha_fail(-EILSEQ, "byte %" PRIu64 " is not the one that was sent", at);
        }
        resha_free(buf);
        return n <= 0 ? resha_fail(n < 0 ? (int)n : -ENODATA, "a body ends too early") : 0;
}

/* The headers; *ret_size is what comes behind them. */
static int read_headers(resha_stream *s, char *first, uint64_t *ret_size)
{
        char line[LINE];
        ssize_t n = resha_read_line(s, first, LINE);

        *ret_size = 0;
        while (n > 0 && (n = resha_read_line(s, line, sizeof line)) > 2)
                if (strncasecmp(line, "Content-Length:", 15) == 0)
                        *ret_size = strtoull(line + 15, NULL, 10);
        return n < 0 ? (int)n : n > 0 ? 0 : -ENODATA;
}

static int answer(resha_stream *s, const char *about)
{
        char first[LINE], text[LINE + 100];
        uint64_t size = 0, body = strlen(about);
        int rc = read_headers(s, first, &size);

        if (rc == 0 && size > 0) {
                rc = take_pattern(s, size);
                snprintf(text, sizeof text, "HTTP/1.0 200 OK\r\n\r\n%" PRIu64 " bytes\n", size);
                return rc < 0 ? rc : send_text(s, text);
        }
        bool bytes = strncmp(first, "GET /bytes/", 11) == 0;
        if (bytes)
                body = strtoull(first + 11, NULL, 10);
        snprintf(text, sizeof text, "HTTP/1.0 200 OK\r\nContent-Length: %" PRIu64 "\r\n\r\n", body);
        if (rc == 0)
                rc = send_text(s, text);
        return rc < 0 ? rc : bytes ? send_pattern(s, body) : send_text(s, about);
}

static int serve(resha_stream *s, void *arg)
{
        const struct tool *t = arg;
        char about[LINE];
        int rc = describe(s, about, sizeof about);

        if (rc == 0) {
                tell(about);
                rc = answer(s, about);
        }
        if (rc == 0 && t->cut)
                resha_stream_abort(s);
        else if (rc == 0)
                rc = resha_stream_finish(s);
        if (rc < 0)
                tell_failure(rc);
        return rc;
}

static void refused(resha_stream *plain, int code, void *arg)
{
        (void)plain, (void)arg;
        tell_failure(code);
}

static int serve_plain(resha_stream *plain, void *arg)
{
        const struct tool *t = arg;
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char line[LINE];
        ssize_t n = resha_read_line(plain, line, sizeof line);
        int rc = n > 0 ? resha_tls_start(plain, t->tls, NULL, &s) : -ENODATA;

        return rc < 0 ? tell_failure(rc) : serve(s, arg);
}

static int server(struct tool *t)
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at;
        int rc = resha_tls_server(&t->opts, &t->tls);

        if (rc == 0)
                rc = resha_tcp_listen("127.0.0.1", 0, &l);
        if (rc == 0)
                rc = resha_listener_addr(l, &at);
        if (rc < 0)
                return rc;
        printf("%" PRIu16 "\n", resha_addr_port(&at));
        fflush(stdout);
        if (t->plain)
                return resha_serve(l, serve_plain, t, NULL);
        return resha_tls_serve(l, t->tls, serve, t, &(resha_tls_serve_opts){ .refused = refused });
}

/* ---- the clients ---- */

static int connect_plain(const struct tool *t, resha_stream **ret_stream)
{
        resha_addr at;
        int rc = resha_addr_parse("127.0.0.1", t->port, &at);

        return rc < 0 ? rc : resha_tcp_connect_addr(&at, ret_stream);
}

/* What comes, to its end. */
static int print_all(resha_stream *s)
{
        char *buf = resha_malloc(PIECE);
        ssize_t n = buf ? 1 : -ENOMEM;

        while (n > 0 && (n = resha_read(s, buf, PIECE)) > 0) {
                fwrite(buf, 1, (size_t)n, stdout);
                fflush(stdout);
        }
        resha_free(buf);
        return (int)n;
}

static int get(struct tool *t, resha_stream *plain)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        char text[LINE];
        int rc = resha_tls_start(plain, t->tls, &(resha_tls_start_opts){ .host = t->host, .port = t->port }, &s);

        if (rc == 0)
                rc = describe(s, text, sizeof text);
        if (rc < 0)
                return rc;
        tell(text);
        snprintf(text, sizeof text, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", t->path, t->host);
        rc = send_text(s, text);
        if (rc == 0)
                rc = print_all(s);
        return rc < 0 ? rc : resha_stream_finish(s);
}

static int get_times(struct tool *t)
{
        int rc = 0;

        for (unsigned i = 0; i < t->times && rc == 0; i++) {
                resha_stream *plain RESHA_CLEANUP(resha_stream_closep) = NULL;
                rc = connect_plain(t, &plain);
                if (rc == 0)
                        rc = get(t, plain);
        }
        return rc;
}

static int starttls(struct tool *t)
{
        resha_stream *plain RESHA_CLEANUP(resha_stream_closep) = NULL;
        char line[LINE];
        int rc = connect_plain(t, &plain);

        if (rc == 0)
                rc = send_text(plain, "STARTTLS\r\n");
        if (rc == 0)
                rc = (int)resha_read_line(plain, line, sizeof line);
        t->path = "/";
        return rc < 0 ? rc : get(t, plain);
}

static int print_stream(void *arg)
{
        return print_all(arg);
}

static int send_stdin(void *arg)
{
        resha_stream *in RESHA_CLEANUP(resha_stream_closep) = NULL;
        char line[LINE];
        ssize_t n = resha_stream_stdio(0, &in);

        while (n >= 0 && (n = resha_read_line(in, line, sizeof line)) > 0)
                n = resha_write_all(arg, line, (size_t)n, NULL);
        return (int)n;
}

/* Until the peer ends. */
static int talk(struct tool *t)
{
        resha_stream *plain RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_task printer = { 0 };
        char text[LINE];
        int status = 0, rc = connect_plain(t, &plain);
        RESHA_GROUP(g);

        if (rc == 0)
                rc = resha_tls_start(plain, t->tls, &(resha_tls_start_opts){ .host = t->host }, &s);
        if (rc == 0)
                rc = describe(s, text, sizeof text);
        if (rc < 0)
                return rc;
        tell(text);
        resha_group_begin(&g, NULL);
        resha_spawn_task(&g, print_stream, s, &printer);
        resha_spawn(&g, send_stdin, s);
        rc = resha_task_wait(&printer, &status);
        resha_group_cancel(&g);
        rc = resha_group_end(&g, rc);
        return rc < 0 ? rc : status < 0 ? status : resha_stream_finish(s);
}

/* ---- the command line ---- */

static enum resha_tls_version version(const char *text)
{
        return strcmp(text, "1.3") == 0 ? RESHA_TLS_1_3 : RESHA_TLS_1_2;
}

static void split(char *text, const char *between, const char **words, size_t most)
{
        char *rest = NULL;

        for (char *w = strtok_r(text, between, &rest); w && most > 1; w = strtok_r(NULL, between, &rest), most--)
                *words++ = w;
}

static void set_name(struct tool *t, char *text)
{
        const char *words[4] = { NULL };

        split(text, ":", words, 4);
        t->name = (resha_tls_name){ .host = words[0], .cert_file = words[1], .key_file = words[2] };
        t->opts.names = &t->name;
        t->opts.name_count = 1;
}

static bool set_option(struct tool *t, const char *key, char *value)
{
        struct {
                const char *key, **at;
        } texts[] = {
                { "host", &t->host },         { "cert", &t->opts.cert_file },
                { "key", &t->opts.key_file }, { "trust", &t->opts.trust_file },
                { "crl", &t->opts.crl_file },
        };

        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
                if (strcmp(key, texts[i].key) == 0) {
                        *texts[i].at = value;
                        return true;
                }
        if (strcmp(key, "peer") == 0)
                t->opts.peer = strcmp(value, "ask") == 0 ? RESHA_TLS_PEER_ASK : RESHA_TLS_PEER_REQUIRE;
        else if (strcmp(key, "min") == 0)
                t->opts.min_version = version(value);
        else if (strcmp(key, "max") == 0)
                t->opts.max_version = version(value);
        else if (strcmp(key, "times") == 0)
                t->times = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(key, "finish") == 0)
                t->cut = true;
        else if (strcmp(key, "plain") == 0)
                t->plain = true;
        else if (strcmp(key, "name") == 0)
                set_name(t, value);
        else if (strcmp(key, "alpn") == 0)
                split(value, ",", t->alpn, WORDS);
        else
                return false;
        t->opts.alpn = t->alpn[0] ? t->alpn : NULL;
        return true;
}

static int program(void *arg)
{
        struct tool *t = arg;
        int rc;

        if (strcmp(t->what, "server") == 0) {
                rc = server(t);
        } else {
                rc = resha_tls_client(&t->opts, &t->tls);
                if (rc == 0)
                        rc = strcmp(t->what, "get") == 0        ? get_times(t)
                             : strcmp(t->what, "starttls") == 0 ? starttls(t)
                                                                : talk(t);
        }
        resha_tls_unrefp(&t->tls);
        return rc < 0 && rc != -ECANCELED ? tell_failure(rc) : rc;
}

int main(int argc, char **argv)
{
        struct tool t = { .what = argc > 1 ? argv[1] : "", .host = "a.example", .times = 1 };
        int i = 2;

        if (strcmp(t.what, "server") != 0 && i < argc)
                t.port = (uint16_t)strtoul(argv[i++], NULL, 10);
        if (strcmp(t.what, "get") == 0 && i < argc)
                t.path = argv[i++];
        for (; i < argc; i++) {
                char *equals = strchr(argv[i], '=');
                if (equals)
                        *equals = '\0';
                if (!equals || !set_option(&t, argv[i], equals + 1)) {
                        fprintf(stderr, "usage: see the head of counterparts/tool.c; not '%s'\n", argv[i]);
                        return 2;
                }
        }
        if (!*t.what)
                return 2;
        return resha_run(program, &t, NULL) < 0;
}
