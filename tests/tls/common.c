/* SPDX-License-Identifier: MIT */
/* What tests of TLS streams share; see common.h. */

#include "common.h"

#include "authority.h"

static const char *trust_file, *chain_file, *key_file;

static void make_certificates(void)
{
        if (trust_file)
                return;
        struct cert *root = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true, .key = CERT_ED25519 });
        struct cert *leaf =
                cert_new(root, &(struct cert_opts){ .name = "a.example", .alt = "DNS:a.example", .key = CERT_ED25519 });

        trust_file = temp_file("root.pem", cert_pem(root));
        chain_file = temp_file("chain.pem", cert_chain_pem(leaf));
        key_file = temp_file("key.pem", cert_key_pem(leaf));
}

resha_tls *tls_server(const resha_tls_opts *opts)
{
        resha_tls_opts o = opts ? *opts : (resha_tls_opts){ 0 };
        resha_tls *t = NULL;

        make_certificates();
        if (!o.cert_file && !o.cert_pem) {
                o.cert_file = chain_file;
                o.key_file = key_file;
        }
        ASSERT_OK(resha_tls_server(&o, &t));
        return t;
}

resha_tls *tls_client(const resha_tls_opts *opts)
{
        resha_tls_opts o = opts ? *opts : (resha_tls_opts){ 0 };
        resha_tls *t = NULL;

        make_certificates();
        if (!o.trust_file && !o.trust_pem && !o.trust_dir)
                o.trust_file = trust_file;
        ASSERT_OK(resha_tls_client(&o, &t));
        return t;
}

/* Who does not get through tells the other one, who would wait for long otherwise. */
static int started(struct tls_pair *p, int side, int rc)
{
        if (rc < 0)
                resha_stream_abort(p->plain[side]);
        return p->rc[side] = rc;
}

int tls_pair_start_client(void *arg)
{
        struct tls_pair *p = arg;
        const resha_tls_start_opts opts = { .host = "a.example" };

        return started(p, 0, resha_tls_start(p->plain[0], p->client, &opts, &p->secure[0]));
}

int tls_pair_start_server(void *arg)
{
        struct tls_pair *p = arg;

        return started(p, 1, resha_tls_start(p->plain[1], p->server, NULL, &p->secure[1]));
}

/* The result is that of who failed first: the other one knows only that it has. */
int tls_pair_start(struct tls_pair *p)
{
        RESHA_GROUP(g);

        p->rc[0] = p->rc[1] = 0;
        resha_group_begin(&g, &(resha_group_opts){ .keep_going = true });
        resha_spawn(&g, tls_pair_start_client, p);
        resha_spawn(&g, tls_pair_start_server, p);
        int rc = resha_group_end(&g, 0);
        for (int i = 0; i < 2; i++)
                if (p->rc[i] == -ECANCELED)
                        rc = p->rc[i];
        return rc;
}

int tls_pair_open(struct tls_pair *p)
{
        int rc = resha_stream_pair(p->plain);

        return rc < 0 ? rc : tls_pair_start(p);
}

void tls_pair_close(struct tls_pair *p)
{
        for (int i = 0; i < 2; i++)
                resha_stream_closep(&p->secure[i]);
        for (int i = 0; i < 2; i++)
                resha_stream_closep(&p->plain[i]);
}
