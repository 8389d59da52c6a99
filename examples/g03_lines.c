/* SPDX-License-Identifier: MIT */
/* G3: a line protocol: a store of keys and values. GET, SET and DEL, a line each, answered by a line; what is wrong is
 * answered by a line, too. Lines, keys and connections have limits, and a request its time.   g3 PORT serves
 * (nc 127.0.0.1 PORT); without a port it shows itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/resha.h>

enum { LINE = 80, WORD = 32, KEYS = 3 };

struct entry {
        char key[WORD], value[WORD]; /* no key: free */
};

struct store {
        struct entry entries[KEYS];
        resha_listener *listener;
};

static struct entry *find(struct store *s, const char *key)
{
        for (int i = 0; i < KEYS; i++)
                if (strcmp(s->entries[i].key, key) == 0)
                        return &s->entries[i];
        return NULL;
}

/* The answer to one request. One task at a time: nothing here waits, so nothing has to be locked. */
static const char *answer(struct store *s, const char *request)
{
        char verb[8] = "", key[WORD] = "", value[WORD] = "", more[2] = "";
        int words = sscanf(request, "%7s %31s %31s %1s", verb, key, value, more);
        bool get = strcmp(verb, "GET") == 0 && words == 2, set = strcmp(verb, "SET") == 0 && words == 3;
        bool del = strcmp(verb, "DEL") == 0 && words == 2;

        if (!get && !set && !del)
                return "ERROR GET key, SET key value or DEL key";
        struct entry *e = find(s, key);
        if (!e && set)
                e = find(s, "");
        if (!e)
                return set ? "ERROR no room" : "NONE";
        if (get)
                return e->value;
        *e = (struct entry){ .key = "" };
        if (set) {
                memcpy(e->key, key, WORD);
                memcpy(e->value, value, WORD);
        }
        return "OK";
}

static int write_line(resha_stream *s, const char *text)
{
        char line[LINE];

        snprintf(line, sizeof line, "%s\n", text);
        return resha_write_all(s, line, strlen(line), NULL);
}

static ssize_t read_request(resha_stream *stream, char line[LINE])
{
        RESHA_SCOPE(time);
        resha_timeout_begin(&time, RESHA_S(30));
        return resha_scope_end(&time, (int)resha_read_line(stream, line, LINE));
}

static int handle(resha_stream *stream, void *arg)
{
        char line[LINE];
        ssize_t n;
        int rc = 0;

        while (rc == 0 && (n = read_request(stream, line)) > 0)
                rc = write_line(stream, answer(arg, line));
        if (rc < 0 || n == 0)
                return rc;
        if (n != -EMSGSIZE && n != -ETIME)
                return (int)n;
        return write_line(stream, n == -ETIME ? "ERROR no request in 30 s" : "ERROR more than 79 bytes");
}

static int serve(void *arg)
{
        struct store *s = arg;

        return resha_serve(s->listener, handle, s, &(resha_serve_opts){ .max_connections = 1000 });
}

/* ---- a demonstration ---- */

/* Sends text, which is a request and its "\n", or something else, and shows what comes. */
static int ask(resha_stream *s, const char *text)
{
        char line[LINE];
        int rc = resha_write_all(s, text, strlen(text), NULL);
        ssize_t n = rc < 0 ? rc : resha_read_line(s, line, sizeof line);

        int shown = (int)strcspn(text, "\n");
        if (n > 0)
                printf("%-15.*s  %s", shown < 15 ? shown : 15, text, line);
        return n < 0 ? (int)n : 0;
}

static int ask_all(const resha_addr *addr, const char *const *texts, size_t n)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        int rc = resha_tcp_connect_addr(addr, &s);

        for (size_t i = 0; rc == 0 && i < n; i++)
                rc = ask(s, texts[i]);
        return rc;
}

static int show(const struct store *store)
{
        static const char *const requests[] = {
                "GET colour\n",   "SET colour blue\n", "GET colour\n",   "SET shape round\n", "SET size 7\n",
                "SET weight 3\n", "DEL size\n",        "SET weight 3\n", "GET size\n",        "FROB\n",
        };
        static const char *const half = "GET colo", *const endless = "0123456789012345678901234567890123456789"
                                                                     "0123456789012345678901234567890123456789";
        resha_addr addr;
        int rc = resha_listener_addr(store->listener, &addr);

        if (rc == 0)
                rc = ask_all(&addr, requests, sizeof requests / sizeof requests[0]);
        if (rc == 0)
                rc = ask_all(&addr, &half, 1);
        return rc < 0 ? rc : ask_all(&addr, &endless, 1);
}

static int demonstrate(struct store *s)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, serve, s);
        return resha_group_end(&g, show(s));
}

static int program(void *arg)
{
        resha_listener *listener RESHA_CLEANUP(resha_listener_closep) = NULL;
        const char *port = arg;
        int rc = resha_tcp_listen("127.0.0.1", port ? (uint16_t)strtoul(port, NULL, 10) : 0, &listener);
        struct store s = { .listener = listener };

        if (rc < 0)
                return rc;
        return port ? serve(&s) : demonstrate(&s);
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : NULL);
}
