/* SPDX-License-Identifier: MIT */
/* New certificates while connections go on: hundreds are open, the files change, and a reload later those go on as they
 * were, and new ones see the new certificate. */

#include <string.h>

#include "authority.h"
#include "common.h"

enum { OPEN = 100 };

static struct {
        struct cert *root;
        resha_tls *client, *server;
        resha_listener *listener;
        resha_addr addr;
} all;

static void write_files(const char *name)
{
        const struct cert *leaf = cert_new(all.root, &(struct cert_opts){ .name = name, .alt = "DNS:a.example" });

        temp_file("own.pem", cert_chain_pem(leaf));
        temp_file("own.key", cert_key_pem(leaf));
}

static void make(void)
{
        all.root = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true });
        write_files("First");
        const resha_tls_opts server = { .cert_file = temp_path("own.pem"), .key_file = temp_path("own.key") };
        const resha_tls_opts client = { .trust_file = temp_file("trusted.pem", cert_pem(all.root)),
                                        .no_sessions = true };
        all.server = tls_server(&server);
        all.client = tls_client(&client);
}

static int echo(resha_stream *s, __attribute__((unused)) void *arg)
{
        char buf[64];
        ssize_t n;

        while ((n = resha_read(s, buf, sizeof buf)) > 0) {
                int rc = resha_write_all(s, buf, (size_t)n, NULL);
                if (rc < 0)
                        return rc;
        }
        return (int)n;
}

static int serve(__attribute__((unused)) void *arg)
{
        return resha_tls_serve(all.listener, all.server, echo, NULL, NULL);
}

/* A connection that works, and whose certificate it sees. */
static int open_one(resha_stream **ret_stream, const char *subject)
{
        resha_stream *plain = NULL, *s = NULL;
        resha_tls_info info;
        int rc = resha_tcp_connect_addr(&all.addr, &plain);

        if (rc == 0)
                rc = resha_tls_start(plain, all.client, &(resha_tls_start_opts){ .host = "a.example" }, &s);
        ASSERT_OK(rc);
        ASSERT_OK(resha_tls_about(s, &info));
        ASSERT_STR(info.subject, subject);
        ASSERT_TRUE(info.verified);
        ret_stream[0] = s;
        ret_stream[1] = plain;
        return 0;
}

static void ask(resha_stream *s)
{
        char buf[8] = "";

        ASSERT_OK(resha_write_all(s, "hello", 5, NULL));
        ASSERT_EQ(resha_read_exactly(s, buf, 5), 5);
        ASSERT_STR(buf, "hello");
}

static int clients(__attribute__((unused)) void *arg)
{
        static resha_stream *streams[OPEN][2];
        resha_stream *later[2];

        for (int i = 0; i < OPEN; i++)
                open_one(streams[i], "CN=First");
        write_files("Second");
        temp_file("own.key", "no key\n");
        ASSERT_EQ(resha_tls_reload(all.server), RESHA_TLS_ECERT);
        open_one(later, "CN=First");
        resha_stream_close(later[0]);
        resha_stream_close(later[1]);
        write_files("Third");
        ASSERT_OK(resha_tls_reload(all.server));
        open_one(later, "CN=Third");
        for (int i = 0; i < OPEN; i++) {
                ask(streams[i][0]);
                resha_stream_close(streams[i][0]);
                resha_stream_close(streams[i][1]);
        }
        ask(later[0]);
        resha_stream_close(later[0]);
        resha_stream_close(later[1]);
        resha_listener_shutdown(all.listener);
        return 0;
}

static int program(__attribute__((unused)) void *arg)
{
        make();
        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &all.listener));
        ASSERT_OK(resha_listener_addr(all.listener, &all.addr));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, NULL);
        resha_spawn(&g, clients, NULL);
        int rc = resha_group_end(&g, 0);
        resha_listener_close(all.listener);
        resha_tls_unref(all.client);
        resha_tls_unref(all.server);
        return rc;
}

TEST(connections_go_on_over_a_reload)
{
        RUN(program, NULL);
}
