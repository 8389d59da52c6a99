/* SPDX-License-Identifier: MIT */
/* Handshakes, full or resumed, SLOTS at a time: each connection shakes hands, says that it ends, reads to the server's
 * end and makes room for the next. That each was what it had to be, full or resumed, is looked at. A resumed one goes
 * on from the newest ticket that the server has sent. */

#include "load.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

static struct connection slots[SLOTS];
static SSL_SESSION *newest; /* to go on from; NULL: all are full */
static bool wanted;         /* that they go on */

static int session_came(SSL *ssl, SSL_SESSION *session)
{
        (void)ssl;
        SSL_SESSION_free(newest);
        newest = session;
        return 1;
}

static void start(struct load *l, struct connection *c)
{
        load_connect(l, c, false);
        if (wanted && newest && !SSL_set_session(c->ssl, newest))
                load_die("session");
        load_watch(l, c);
}

/* Whether the connection is over. */
static bool go_on(const struct load *l, struct connection *c, bool resumed)
{
        char byte;
        bool end = false;
        int rc;

        (void)l;
        if (!c->shaken) {
                rc = SSL_do_handshake(c->ssl);
                if (rc != 1) {
                        load_waits(c, rc, NULL);
                        return false;
                }
                if (SSL_session_reused(c->ssl) != resumed)
                        load_die(resumed ? "the session was not resumed" : "the session was resumed");
                c->shaken = true;
                if (SSL_shutdown(c->ssl) < 0)
                        load_die("close_notify");
        }
        rc = SSL_read(c->ssl, &byte, 1);
        if (rc > 0)
                load_die("the server speaks");
        return !load_waits(c, rc, &end) && end;
}

static void turn(struct load *l)
{
        static struct epoll_event events[EVENTS];
        int n = load_events(l, events);

        for (int i = 0; i < n; i++) {
                struct connection *c = events[i].data.ptr;
                if (!go_on(l, c, wanted))
                        continue;
                l->done++;
                load_drop(c);
                start(l, c);
        }
}

/* A first one, for its ticket. */
static void fill(struct load *l)
{
        struct connection c;
        bool end = false;
        char byte;

        load_connect(l, &c, true);
        if (SSL_connect(c.ssl) != 1 || SSL_shutdown(c.ssl) < 0)
                load_die("handshake");
        (void)!load_waits(&c, SSL_read(c.ssl, &byte, 1), &end);
        if (!end || !newest)
                load_die("the server gave no session to resume");
        load_drop(&c);
}

void load_handshakes(struct load *l, bool resumed)
{
        wanted = resumed;
        if (resumed) {
                SSL_CTX_set_session_cache_mode(l->tls, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
                SSL_CTX_sess_set_new_cb(l->tls, session_came);
                fill(l);
        }
        for (size_t i = 0; i < SLOTS; i++)
                start(l, &slots[i]);
        load_measure(l, turn);
        for (size_t i = 0; i < SLOTS; i++)
                load_drop(&slots[i]);
        SSL_SESSION_free(newest);
}
