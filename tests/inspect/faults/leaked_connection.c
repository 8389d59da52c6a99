/* SPDX-License-Identifier: MIT */
/* The fault: a client that asks a server again and again. When the server says that it is busy, the client gives up
 * that connection, but does not close it. */
#include <string.h>

#include <resha/resha.h>

enum { ASKED = 90 };

struct server {
        uint16_t port;
        unsigned answers;
};

/* Every third one is told to come back later. */
static int answer(resha_stream *s, void *arg)
{
        struct server *server = arg;
        char end;
        const char *text = server->answers++ % 3 ? "fine\n" : "busy\n";
        int rc = resha_write_all(s, text, strlen(text), NULL);
        if (rc < 0)
                return rc;
        ssize_t n = resha_read(s, &end, 1); /* until the client closes it */
        return n < 0 ? (int)n : 0;
}

static int ask(uint16_t port)
{
        resha_stream *s;
        char line[16];
        int rc = resha_tcp_connect("127.0.0.1", port, &s);
        if (rc < 0)
                return rc;
        ssize_t n = resha_read_line(s, line, sizeof line);
        if (n < 0 || strncmp(line, "busy", 4) == 0)
                return n < 0 ? (int)n : 0; /* s is still open */
        resha_stream_close(s);
        return 0;
}

static int client(void *arg)
{
        struct server *server = arg;
        int rc = 0;
        for (int i = 0; rc >= 0 && i < ASKED; i++)
                rc = ask(server->port);
        return rc < 0 ? rc : resha_sleep(RESHA_S(3600));
}

static int program(void *arg)
{
        struct server server = { 0 };
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at;
        (void)arg;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);
        if (rc >= 0)
                rc = resha_listener_addr(l, &at);
        if (rc < 0)
                return rc;
        server.port = resha_addr_port(&at);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, client, &server);
        return resha_group_end(&g, resha_serve(l, answer, &server, NULL));
}

int main(void)
{
        return resha_main(program, NULL);
}
