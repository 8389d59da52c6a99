/* SPDX-License-Identifier: MIT */
/* G1: a chat room: each line goes to all others. A member has a bounded queue and a task that writes it out: who does
 * not read is put out once the queue is full, and nobody waits for that one. When the room closes, everybody gets what
 * was said, and a good-bye.   g1 PORT serves (nc 127.0.0.1 PORT) until SIGTERM; without a port it shows itself. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

enum { LINE = 200, QUEUE = 100 };

struct line {
        char text[LINE];
};

struct member {
        struct member *next;
        struct room *room;
        resha_stream *stream;
        resha_queue *out;
        resha_group *tasks; /* those of this member */
        char name[20];
};

struct room {
        resha_listener *listener;
        struct member *first;
        int count;
};

/* To all but `from`. Never waits. */
static void say(struct room *room, const struct member *from, const char *name, const char *text)
{
        struct line line;

        snprintf(line.text, sizeof line.text, "%s: %.*s\n", name, (int)strcspn(text, "\n"), text);
        for (struct member *m = room->first; m; m = m->next)
                if (m != from && resha_queue_try_put(m->out, &line) == -EAGAIN)
                        resha_group_cancel(m->tasks); /* does not read */
}

static int write_out(void *arg)
{
        struct member *m = arg;
        struct line line;
        int rc;

        while ((rc = resha_queue_get(m->out, &line)) == 1)
                if ((rc = resha_write_all(m->stream, line.text, strlen(line.text), NULL)) < 0)
                        break;
        return rc < 0 ? rc : resha_stream_shutdown(m->stream); /* the room is closed, and all has been written */
}

static void forget(void *line) /* one that a member who is gone did not get */
{
        (void)line;
}

static void leave(struct member *m)
{
        struct member **p = &m->room->first;

        while (*p && *p != m)
                p = &(*p)->next;
        if (*p) {
                *p = m->next;
                m->room->count--;
                say(m->room, m, m->name, "(gone)");
        }
        resha_queue_free(m->out);
}

static int talk(resha_stream *stream, void *arg) /* the handler of one connection */
{
        struct member me RESHA_CLEANUP(leave) = { .room = arg, .stream = stream };
        char text[LINE - 30];
        int rc = resha_queue_new(sizeof(struct line), QUEUE, forget, &me.out);
        ssize_t n = rc < 0 ? rc : resha_read_line(stream, me.name, sizeof me.name);

        if (n <= 0)
                return (int)n;
        me.name[strcspn(me.name, "\r\n")] = '\0';
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true }); /* who has gone needs no writer */
        me.tasks = &g;
        me.next = me.room->first;
        me.room->first = &me;
        me.room->count++;
        resha_spawn(&g, write_out, &me);
        (void)resha_queue_try_put(me.out, &(struct line){ "room: welcome\n" });
        say(me.room, &me, me.name, "(here)");
        while ((n = resha_read_line(stream, text, sizeof text)) > 0) {
                say(me.room, &me, me.name, text);
                /* What others write of it goes out before this one says more: a pasted text puts nobody out. A yield
                 * would not do: it gives a turn to those who are ready, not to those whose write the kernel has not
                 * seen. */
                rc = resha_sleep(RESHA_US(1));
                if (rc < 0)
                        break;
        }
        return resha_group_end(&g, n > 0 ? rc : (int)n);
}

static int serve(void *arg)
{
        struct room *room = arg;

        return resha_serve(room->listener, talk, room, &(resha_serve_opts){ .grace = RESHA_S(2) });
}

static void close_room(struct room *room)
{
        say(room, NULL, "room", "good-bye");
        for (struct member *m = room->first; m; m = m->next)
                resha_queue_shutdown(m->out);
        resha_listener_shutdown(room->listener); /* serve() returns once all have gone, or after the grace */
}

/* ---- a demonstration ---- */

struct guest {
        const char *name;
        resha_stream *stream;
};

static int enter(const struct room *room, struct guest *g)
{
        char line[LINE];
        resha_addr addr;
        int rc = resha_listener_addr(room->listener, &addr);

        if (rc == 0)
                rc = resha_tcp_connect_addr(&addr, &g->stream);
        snprintf(line, sizeof line, "%s\n", g->name);
        if (rc == 0)
                rc = resha_write_all(g->stream, line, strlen(line), NULL);
        ssize_t n = rc < 0 ? rc : resha_read_line(g->stream, line, sizeof line);
        if (n > 0)
                printf("%s reads   %s", g->name, line);
        return n > 0 ? 0 : n < 0 ? (int)n : -ECONNRESET;
}

static int read_all(void *arg)
{
        const struct guest *g = arg;
        char line[LINE];
        ssize_t n;

        while ((n = resha_read_line(g->stream, line, sizeof line)) > 0)
                if (!strstr(line, "blah"))
                        printf("%s reads   %s", g->name, line);
        return (int)n;
}

/* Carol never reads. The kernel takes a good deal for her before her queue here fills. */
static int flood(const struct room *room, const struct guest *ann)
{
        char line[LINE - 40];
        int rc = 0;

        memset(line, '.', sizeof line);
        memcpy(line, "blah", 4);
        line[sizeof line - 1] = '\n';
        while (rc == 0 && room->count == 3)
                rc = resha_write_all(ann->stream, line, sizeof line, NULL);
        if (rc == 0)
                rc = resha_sleep(RESHA_S(1));
        printf("carol, who did not read, is out; %d are left\n", room->count);
        return rc;
}

static int show(struct room *room)
{
        struct guest guests[] = { { "ann", NULL }, { "bob", NULL }, { "carol", NULL } };
        RESHA_GROUP(g);
        int rc = 0;

        resha_group_begin(&g, NULL);
        for (int i = 0; rc == 0 && i < 3; i++) {
                rc = enter(room, &guests[i]);
                if (rc == 0 && i < 2)
                        resha_spawn(&g, read_all, &guests[i]);
        }
        if (rc == 0)
                rc = resha_write_all(guests[0].stream, "hello\n", 6, NULL);
        if (rc == 0)
                rc = resha_sleep(RESHA_S(1));
        if (rc == 0)
                rc = resha_write_all(guests[1].stream, "hello ann\n", 10, NULL);
        if (rc == 0)
                rc = flood(room, &guests[0]);
        close_room(room);
        rc = resha_group_end(&g, rc); /* ann and bob read to the end */
        for (int i = 0; i < 3; i++)
                resha_stream_close(guests[i].stream);
        return rc;
}

static int run(struct room *room, bool demonstrate)
{
        const int stop = SIGTERM;
        int signal, rc;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        resha_spawn(&g, serve, room);
        rc = demonstrate ? show(room) : resha_signal_wait(&stop, 1, &signal);
        if (!demonstrate)
                close_room(room);
        return resha_group_end(&g, rc);
}

static int program(void *arg)
{
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        const char *port = arg;
        int rc = resha_tcp_listen("127.0.0.1", port ? (uint16_t)strtoul(port, NULL, 10) : 0, &listener);
        struct room room = { .listener = listener };

        return rc < 0 ? rc : run(&room, !port);
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : NULL);
}
