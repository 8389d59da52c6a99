/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <resha/resha.h>

struct message { int refs; size_t len; char text[]; };
struct client { struct client *next, **link; resha_stream *stream; resha_queue *out; resha_group *group; };
struct room { struct client *first; };

static void message_unref(struct message *m) { if (--m->refs == 0) resha_free(m); }
static void message_unrefp(struct message **m) { if (*m) message_unref(*m); }
static void message_drop(void *item) { message_unref(*(struct message **)item); }

static int writer(void *arg)
{
        struct client *c = arg;
        int rc;
        for (;;) {
                struct message *m RESHA_CLEANUP(message_unrefp) = NULL;
                if ((rc = resha_queue_get(c->out, &m)) <= 0 ||
                    (rc = resha_write_all(c->stream, m->text, m->len, NULL)) < 0)
                        return rc;
        }
}

static void broadcast(struct room *room, const char *text, size_t len)
{
        struct message *m RESHA_CLEANUP(message_unrefp) = resha_malloc(sizeof *m + len);
        if (!m)
                return;
        *m = (struct message){ .refs = 1, .len = len };
        memcpy(m->text, text, len);
        for (struct client *c = room->first; c; c = c->next) {
                if (resha_queue_try_put(c->out, &m) > 0)
                        m->refs++;
                else
                        resha_group_cancel(c->group);           /* slow: evict */
        }
}

static void leave(struct client *c)
{
        if (!c->link)
                return;
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        resha_queue_free(c->out);                               /* drops what is left */
}

static int serve(resha_stream *stream, void *arg)               /* the stream is closed by resha_serve */
{
        struct room *room = arg;
        struct client c RESHA_CLEANUP(leave) = { .stream = stream };
        int rc = resha_queue_new(sizeof(struct message *), 64, message_drop, &c.out);
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);                                         /* ends before c does */
        resha_group_begin(&g, &(resha_group_opts){ .background = true }); /* the writer goes when the reader does */
        c.group = &g;
        c.next = room->first, c.link = &room->first, room->first = &c;
        if (c.next)
                c.next->link = &c.next;
        resha_spawn(&g, writer, &c);
        char line[512];
        ssize_t n;
        while ((n = resha_read_line(stream, line, sizeof line)) > 0)
                broadcast(room, line, (size_t)n);
        return resha_group_end(&g, (int)n);         /* evicted: 0; reset: its error; outside cancel: -ECANCELED */
}

static int program(void *arg)
{
        struct room room = { 0 };
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        int rc = resha_tcp_listen("127.0.0.1", (uint16_t)strtoul(arg, NULL, 10), &l);
        return rc < 0 ? rc : resha_serve(l, serve, &room,
                                         &(resha_serve_opts){ .max_connections = 1000, .grace = RESHA_S(5) });
}

int main(int argc, char **argv) { return argc != 2 || resha_run(program, argv[1], NULL) < 0; }
