/* SPDX-License-Identifier: MIT */
#ifndef PAIR_H
#define PAIR_H

/* A connection of two streams of this loop. */

#include <string.h>

#include "test.h"

struct pair {
        resha_stream *here, *there;
};

static inline void pair_close(struct pair *p)
{
        resha_stream_closep(&p->here);
        resha_stream_closep(&p->there);
}

/* PAIR(p): an open pair, closed when it goes out of scope. */
#define PAIR(p) \
        struct pair p RESHA_CLEANUP(pair_close) = { NULL, NULL }; \
        pair_open(&p)

static inline void pair_open(struct pair *p)
{
        resha_listener *n RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr a;

        ASSERT_OK(resha_tcp_listen("127.0.0.1", 0, &n));
        ASSERT_OK(resha_listener_addr(n, &a));
        ASSERT_OK(resha_tcp_connect_addr(&a, &p->here));
        ASSERT_EQ(resha_accept(n, &p->there), 1);
}

/* A task of g that writes text to s, and then ends that direction if asked to. The test goes on meanwhile: a connection
 * of the simulated world may hold a single byte. */
struct speech {
        resha_stream *stream;
        const char *text;
        bool end;
};

static inline int speak_task(void *arg)
{
        const struct speech *s = arg;
        int rc = resha_write_all(s->stream, s->text, strlen(s->text), NULL);

        return rc == 0 && s->end ? resha_stream_shutdown(s->stream) : rc;
}

static inline void speak(resha_group *g, resha_stream *s, const char *text, bool end)
{
        struct speech speech = { s, text, end };

        ASSERT_OK(resha_spawn_copy(g, speak_task, &speech));
}

#endif
