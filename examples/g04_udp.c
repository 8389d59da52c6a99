/* SPDX-License-Identifier: MIT */
/* G4: an echo by UDP. A datagram may get lost on its way or back: a client asks again, and gives up after three times.
 * What does not fit is cut, and told; a port that nobody has is told.   g4 PORT serves (nc -u 127.0.0.1 PORT); without
 * a port it shows itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

struct server {
        resha_dgram *socket;
        int lost; /* the number of the datagram that is lost, for show; 0: none */
};

static int serve(void *arg)
{
        const struct server *v = arg;
        char buf[2048];
        resha_addr from;
        ssize_t n = 0;

        for (int i = 1; n != -ECANCELED; i++) {
                n = resha_dgram_recv(v->socket, buf, sizeof buf, &from);
                if (n >= 0 && i != v->lost) /* one that is too long for us gets no answer */
                        n = resha_dgram_send(v->socket, buf, (size_t)n, &from);
        }
        return (int)n;
}

struct question {
        resha_dgram *socket;
        const char *text;
        char answer[16];
        ssize_t size;
        int times;
};

static int ask_once(void *arg)
{
        struct question *q = arg;
        int rc = resha_dgram_send(q->socket, q->text, strlen(q->text), NULL);

        q->times++;
        if (rc == 0)
                q->size = resha_dgram_recv(q->socket, q->answer, sizeof q->answer, NULL);
        return rc < 0 ? rc : q->size < 0 ? (int)q->size : 0;
}

static int ask(resha_dgram *socket, const char *text)
{
        struct question q = { .socket = socket, .text = text };
        int rc = -ETIME;

        while (rc == -ETIME && q.times < 3)
                rc = resha_timeout(RESHA_S(1), ask_once, &q);
        if (rc == -ECANCELED)
                return rc;
        if (rc < 0)
                printf("\"%s\": %s\n", text, resha_strerror(rc));
        else
                printf("\"%s\": \"%.*s\", at try %d\n", text, (int)q.size, q.answer, q.times);
        return 0;
}

/* On the way to nobody an answer is an error: the next call gets it. */
static int show(const resha_addr *server, const resha_addr *nobody)
{
        resha_dgram *d RESHA_CLEANUP(resha_dgram_closep) = NULL;
        resha_dgram *lost RESHA_CLEANUP(resha_dgram_closep) = NULL;
        int rc = resha_dgram_open(&(resha_dgram_opts){ .peer = server }, &d);

        if (rc == 0)
                rc = ask(d, "one");
        if (rc == 0)
                rc = ask(d, "two");
        if (rc == 0)
                rc = ask(d, "");
        if (rc == 0)
                rc = ask(d, "more than 16 bytes");
        if (rc == 0)
                rc = resha_dgram_open(&(resha_dgram_opts){ .peer = nobody }, &lost);
        return rc < 0 ? rc : ask(lost, "anybody?");
}

static int demonstrate(struct server *v)
{
        resha_addr addr, nobody;
        int rc = resha_dgram_addr(v->socket, false, &addr);

        if (rc < 0)
                return rc;
        nobody = addr;
        resha_addr_set_port(&nobody, 1);
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        v->lost = 2;
        resha_spawn(&g, serve, v);
        return resha_group_end(&g, show(&addr, &nobody));
}

static int program(void *arg)
{
        resha_dgram *server RESHA_CLEANUP(resha_dgram_closep) = NULL;
        const char *port = arg;
        resha_addr addr;
        int rc = resha_addr_parse("127.0.0.1", port ? (uint16_t)strtoul(port, NULL, 10) : 0, &addr);

        if (rc == 0)
                rc = resha_dgram_open(&(resha_dgram_opts){ .local = &addr }, &server);
        struct server v = { .socket = server };
        if (rc < 0)
                return rc;
        return port ? serve(&v) : demonstrate(&v);
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : NULL);
}
