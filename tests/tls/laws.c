/* SPDX-License-Identifier: MIT */
/* The laws, and configurations for conversations that obey them. */

#include "laws.h"

#include "authority.h"

#include <string.h>

static const int allowed[] = {
        RESHA_TLS_ETRUNCATED, RESHA_TLS_EHANDSHAKE,
        RESHA_TLS_EPROTOCOL,  RESHA_TLS_EVERIFY,
        -ETIMEDOUT,           -ETIME,
        -ECONNRESET,          -EPIPE,
};

static void end_holds(const struct end *e, size_t total)
{
        bool known = e->rc == 0;

        for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
                known = known || e->rc == allowed[i];
        if (!known)
                FAIL("the result is %d: %s", e->rc, e->text);
        ASSERT_TRUE(e->rc == 0 || e->text[0] != '\0');
        ASSERT_TRUE(e->got <= total);
        ASSERT_TRUE(!e->ended || e->got == total);
        ASSERT_TRUE(e->rc < 0 || e->got == total);
}

void laws_hold(const struct talk *t)
{
        end_holds(&t->client, t->answer);
        end_holds(&t->server, t->request);
        ASSERT_TRUE(t->client.rc < 0 || t->client.ended);
        if (!t->done)
                laws_succeed(t);
}

void laws_succeed(const struct talk *t)
{
        if (t->client.rc < 0 || t->server.rc < 0)
                FAIL("client %d %s, server %d %s", t->client.rc, t->client.text, t->server.rc, t->server.text);
        ASSERT_EQ(t->client.got, t->answer);
        ASSERT_EQ(t->server.got, t->request);
        ASSERT_TRUE(t->client.ended);
}

bool laws_last_record(const struct talk *t)
{
        return t->plan.record + 1 == t->count[t->plan.way];
}

void laws_begin(struct laws *l)
{
        struct cert *root = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true });
        struct cert *leaf = cert_new(root, &(struct cert_opts){ .name = "a.example", .alt = "DNS:a.example" });
        struct cert *own = cert_new(root, &(struct cert_opts){ .name = "client" });
        resha_tls_opts o = {
                .trust_file = temp_file("root.pem", cert_pem(root)),
                .min_version = l->version,
                .max_version = l->version,
                .handshake = RESHA_S(LAWS_HANDSHAKE),
                .no_sessions = !l->resumed,
        };
        resha_tls_opts server = o;

        if (l->mutual) {
                o.cert_file = temp_file("own.pem", cert_pem(own));
                o.key_file = temp_file("own.key", cert_key_pem(own));
        }
        ASSERT_OK(resha_tls_client(&o, &l->client));
        server.trust_file = l->mutual ? o.trust_file : NULL;
        server.peer = l->mutual ? RESHA_TLS_PEER_REQUIRE : RESHA_TLS_PEER_NONE;
        server.cert_file = temp_file("leaf.pem", cert_chain_pem(leaf));
        server.key_file = temp_file("leaf.key", cert_key_pem(leaf));
        ASSERT_OK(resha_tls_server(&server, &l->server));
}

void laws_end(struct laws *l)
{
        resha_tls_unrefp(&l->client);
        resha_tls_unrefp(&l->server);
}

static void talk(struct laws *l, struct plan plan)
{
        l->talk = (struct talk){ .plan = plan, .client_tls = l->client, .server_tls = l->server, .host = "a.example" };
        talk_run(&l->talk);
}

struct talk *laws_talk(struct laws *l, struct plan plan)
{
        if (l->resumed) {
                talk(l, (struct plan){ .act = PASS }); /* a failure may have thrown the session away */
                laws_succeed(&l->talk);
        }
        talk(l, plan);
        if (l->talk.client.shake == 0 && !l->talk.done)
                ASSERT_EQ(l->talk.client.info.resumed, l->resumed);
        return &l->talk;
}
