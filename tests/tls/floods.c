/* SPDX-License-Identifier: MIT */
/* Peers that have the keys and mean harm: floods of key updates, tickets, warnings, empty records, requests to shake
 * hands again, a chain of a thousand certificates. Each is refused by name before it has cost much; what is unusual
 * and honest goes through. */

#include "evil.h"

#include <string.h>

#include <openssl/err.h>

#include <resha/tls.h>

#include "test.h"

enum { FLOOD = 20000, FEW = 2000 };

struct flood {
        struct evil evil;
        int (*attack)(struct flood *f); /* after the handshake */
        const void *plain;              /* in its place: these bytes, plain_times times */
        size_t plain_size;
        unsigned plain_times;
        resha_stream *ends[2]; /* the victim's, the evil one's */
        resha_tls *tls;
        /* what came of it */
        unsigned sent; /* records that the evil one could send */
        size_t got;    /* bytes that the victim has read */
        int evil_shake;
        int shake, rc; /* the victim's */
        char text[224];
};

/* ---- attacks ---- */

static int send_many(struct flood *f, int type, const void *data, size_t size, unsigned times)
{
        int rc = 0;

        for (unsigned i = 0; i < times && rc == 0; i++)
                if ((rc = evil_send(&f->evil, type, data, size)) == 0)
                        f->sent++;
        return rc;
}

static int key_updates(struct flood *f, bool requested, unsigned times, bool with_data)
{
        const unsigned char update[] = { 24, 0, 0, 1, requested };
        int rc = 0;

        for (unsigned i = 0; i < times && rc == 0; i++) {
                rc = send_many(f, EVIL_HANDSHAKE, update, sizeof update, 1);
                evil_next_key(&f->evil);
                if (rc == 0 && with_data)
                        rc = evil_send(&f->evil, EVIL_DATA, "x", 1);
        }
        return rc;
}

static int floods_key_updates(struct flood *f)
{
        return key_updates(f, false, FLOOD, false);
}

/* Each asks for one in return, and nobody reads those. */
static int floods_requests_for_key_updates(struct flood *f)
{
        return key_updates(f, true, FLOOD, false);
}

/* The same with a byte of data behind each, so that no row of them is long: answers must not pile up all the same. */
static int floods_requests_for_key_updates_with_data(struct flood *f)
{
        return key_updates(f, true, FLOOD, true);
}

static int updates_keys_often(struct flood *f)
{
        return key_updates(f, false, FEW, true);
}

static int floods_empty_records(struct flood *f)
{
        return send_many(f, EVIL_DATA, "", 0, FLOOD);
}

static int sends_some_empty_records(struct flood *f)
{
        int rc = 0;

        for (int i = 0; i < 100 && rc == 0; i++) {
                rc = send_many(f, EVIL_DATA, "", 0, 5);
                if (rc == 0)
                        rc = evil_send(&f->evil, EVIL_DATA, "x", 1);
        }
        return rc;
}

static int floods_warnings(struct flood *f)
{
        return send_many(f, EVIL_ALERT, "\1\132", 2, FLOOD); /* user_canceled, which TLS 1.3 has kept */
}

static int floods_tickets(struct flood *f)
{
        /* lifetime, age_add, nonce "n", ticket of 16 bytes, no extensions */
        static const unsigned char ticket[] = { 4,   0,   0,   31,  0,   0,   14,  16,  0,   0,   0,   1,
                                                1,   'n', 0,   16,  't', 't', 't', 't', 't', 't', 't', 't',
                                                't', 't', 't', 't', 't', 't', 't', 't', 0,   0 };
        unsigned char one[sizeof ticket];

        memcpy(one, ticket, sizeof ticket);
        one[3] = (unsigned char)(sizeof ticket - 4);
        return send_many(f, EVIL_HANDSHAKE, one, sizeof one, FLOOD);
}

/* TLS 1.2: a server wants to begin anew. Each is answered by a warning, which nobody reads. */
static int floods_hello_requests(struct flood *f)
{
        static const unsigned char request[] = { 0, 0, 0, 0 };

        return send_many(f, EVIL_HANDSHAKE, request, sizeof request, FLOOD);
}

/* TLS 1.2: a client begins anew. */
static int floods_client_hellos(struct flood *f)
{
        unsigned char hello[4 + 2 + 32 + 1 + 4 + 2] = { 1, 0, 0, 41, 3, 3 };

        memcpy(hello + 39, (unsigned char[]){ 0, 2, 0xc0, 0x2b, 1, 0 }, 6);
        return send_many(f, EVIL_HANDSHAKE, hello, sizeof hello, FLOOD);
}

static int sends_single_bytes(struct flood *f)
{
        return send_many(f, EVIL_DATA, "x", 1, FEW);
}

static int sends_an_unknown_type(struct flood *f)
{
        return send_many(f, 99, "x", 1, 1);
}

static int sends_a_close_notify(struct flood *f)
{
        return send_many(f, EVIL_ALERT, "\1\0", 2, 1);
}

static int sends_a_fatal_alert(struct flood *f)
{
        return send_many(f, EVIL_ALERT, "\2\120", 2, 1); /* internal_error */
}

/* A handshake message that says it is 16 MiB long. */
static int announces_much(struct flood *f)
{
        static const unsigned char huge[1000] = { 4, 0xff, 0xff, 0xff };

        return send_many(f, EVIL_HANDSHAKE, huge, sizeof huge, FLOOD);
}

/* ---- the two of them ---- */

static int sends_plain(struct flood *f)
{
        int rc = 0;

        for (unsigned i = 0; i < f->plain_times && rc == 0; i++, f->sent += rc == 0)
                rc = resha_write_all(f->ends[1], f->plain, f->plain_size, NULL);
        return rc;
}

static int evil_main(void *arg)
{
        struct flood *f = arg;

        f->evil.stream = f->ends[1];
        if (f->plain) {
                f->evil_shake = sends_plain(f);
        } else {
                f->evil_shake = evil_start(&f->evil);
                if (f->evil_shake == 0)
                        (void)f->attack(f);
                evil_end(&f->evil);
                ERR_clear_error();
        }
        (void)resha_stream_shutdown(f->ends[1]);
        return 0;
}

static int victim(struct flood *f)
{
        resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
        const char *host = f->evil.server ? "a.example" : NULL;
        char buf[512];
        ssize_t n;

        f->shake = resha_tls_start(f->ends[0], f->tls, &(resha_tls_start_opts){ .host = host }, &s);
        if (f->shake < 0)
                return f->shake;
        while ((n = resha_read(s, buf, sizeof buf)) > 0)
                f->got += (size_t)n;
        return (int)n;
}

static int victim_main(void *arg)
{
        struct flood *f = arg;
        RESHA_SCOPE(limit);

        resha_timeout_begin(&limit, RESHA_S(100));
        int rc = victim(f);
        f->rc = resha_scope_end(&limit, rc);
        snprintf(f->text, sizeof f->text, "%s", resha_error_of(f->rc)->text);
        resha_stream_closep(&f->ends[0]);
        return 0;
}

static int connect_both(resha_stream *ret_two[2])
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at;
        int rc = resha_tcp_listen("127.0.0.1", 0, &l);

        if (rc < 0 || (rc = resha_listener_addr(l, &at)) < 0 || (rc = resha_tcp_connect_addr(&at, &ret_two[0])) < 0)
                return rc;
        return resha_accept(l, &ret_two[1]);
}

static void configure(struct flood *f)
{
        struct cert *root = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true });
        struct cert *leaf = cert_new(root, &(struct cert_opts){ .name = "a.example", .alt = "DNS:a.example" });

        resha_tls_opts o = { .trust_file = temp_file("root.pem", cert_pem(root)) };

        f->evil.cert = leaf;
        if (f->evil.server) {
                ASSERT_OK(resha_tls_client(&o, &f->tls));
                return;
        }
        o = (resha_tls_opts){
                .cert_file = temp_file("leaf.pem", cert_pem(leaf)),
                .key_file = temp_file("leaf.key", cert_key_pem(leaf)),
        };
        ASSERT_OK(resha_tls_server(&o, &f->tls));
}

static int meet(void *arg)
{
        struct flood *f = arg;
        RESHA_GROUP(g);

        configure(f);
        ASSERT_EQ(connect_both(f->ends), 1);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, evil_main, f);
        resha_spawn(&g, victim_main, f);
        int rc = resha_group_end(&g, 0);
        resha_stream_closep(&f->ends[1]);
        resha_tls_unrefp(&f->tls);
        printf("%u sent, %zu bytes read, result %d: %s\n", f->sent, f->got, f->rc, f->text);
        return rc;
}

#define MEETING(name, ...) \
        static void name##_check(const struct flood *f); \
        TEST(name) \
        { \
                static struct flood flood = { __VA_ARGS__ }; \
                SIM_ONLY(); \
                RUN(meet, &flood); \
                name##_check(&flood); \
        } \
        static void name##_check(const struct flood *f)

/* It was refused after the handshake, for this reason, and long before the flood was over. */
static void refused(const struct flood *f, const char *why)
{
        ASSERT_OK(f->shake);
        ASSERT_EQ(f->rc, RESHA_TLS_EPROTOCOL);
        ASSERT_HAS(f->text, why);
        ASSERT_TRUE(f->sent < FLOOD / 2);
}

MEETING(flood_of_key_updates_from_a_server, .evil.server = true, .attack = floods_key_updates)
{
        refused(f, "brought nothing");
}

MEETING(flood_of_key_updates_from_a_client, .attack = floods_key_updates)
{
        refused(f, "brought nothing");
}

MEETING(flood_of_requests_for_key_updates, .attack = floods_requests_for_key_updates)
{
        refused(f, "brought nothing");
}

/* When its answers are not read it is not read any further, until there is room for them; here that is never. */
MEETING(flood_of_requests_for_key_updates_with_data, .attack = floods_requests_for_key_updates_with_data)
{
        ASSERT_OK(f->shake);
        ASSERT_EQ(f->rc, -ETIME);
        ASSERT_TRUE(f->got > 0 && f->sent < FLOOD / 2);
}

MEETING(key_updates_between_data_are_fine, .evil.server = true, .attack = updates_keys_often)
{
        ASSERT_EQ(f->rc, RESHA_TLS_ETRUNCATED);
        ASSERT_EQ(f->got, FEW);
}

MEETING(flood_of_empty_records, .attack = floods_empty_records)
{
        refused(f, "too many empty records");
}

MEETING(flood_of_empty_records_in_tls12, .evil.old = true, .attack = floods_empty_records)
{
        refused(f, "too many empty records");
}

MEETING(some_empty_records_are_fine, .attack = sends_some_empty_records)
{
        ASSERT_EQ(f->rc, RESHA_TLS_ETRUNCATED);
        ASSERT_EQ(f->got, 100);
}

MEETING(flood_of_warnings, .attack = floods_warnings)
{
        refused(f, "warn");
}

MEETING(flood_of_warnings_in_tls12, .evil.old = true, .evil.server = true, .attack = floods_warnings)
{
        refused(f, "warn");
}

MEETING(flood_of_tickets, .evil.server = true, .attack = floods_tickets)
{
        refused(f, "brought nothing");
}

MEETING(flood_of_requests_to_shake_hands_again, .evil.server = true, .evil.old = true, .attack = floods_hello_requests)
{
        refused(f, "brought nothing");
}

MEETING(flood_of_hellos, .evil.old = true, .attack = floods_client_hellos)
{
        refused(f, "brought nothing");
}

MEETING(a_message_that_announces_much, .evil.server = true, .attack = announces_much)
{
        refused(f, "excessive message size");
}

MEETING(records_of_a_byte_each, .evil.server = true, .attack = sends_single_bytes)
{
        ASSERT_EQ(f->rc, RESHA_TLS_ETRUNCATED);
        ASSERT_EQ(f->got, FEW);
}

MEETING(an_unknown_type, .attack = sends_an_unknown_type)
{
        refused(f, "bad record type");
}

MEETING(a_close_notify_is_the_end, .attack = sends_a_close_notify)
{
        ASSERT_EQ(f->rc, 0);
}

MEETING(a_fatal_alert_is_none, .attack = sends_a_fatal_alert)
{
        refused(f, "internal error");
}

/* ---- in place of the handshake ---- */

static void refused_in_the_handshake(const struct flood *f, const char *why)
{
        ASSERT_EQ(f->shake, RESHA_TLS_EHANDSHAKE);
        ASSERT_HAS(f->text, why);
}

MEETING(a_chain_of_a_thousand_certificates, .evil.server = true, .evil.chain = 1000)
{
        refused_in_the_handshake(f, "excessive message size");
}

MEETING(a_request_of_http_to_a_server, .plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n", .plain_size = 27, .plain_times = 1)
{
        refused_in_the_handshake(f, "what came is plain HTTP");
}

MEETING(an_answer_of_http_to_a_client, .evil.server = true, .plain = "HTTP/1.1 400 Bad Request\r\n\r\n",
        .plain_size = 28, .plain_times = 1)
{
        refused_in_the_handshake(f, "is that the right port?");
}

MEETING(a_flood_of_plain_warnings, .plain = "\25\3\3\0\2\1\132", .plain_size = 7, .plain_times = FLOOD)
{
        refused_in_the_handshake(f, "");
        ASSERT_TRUE(f->sent < FLOOD);
}

MEETING(a_flood_of_changes_of_ciphers, .plain = "\24\3\3\0\1\1", .plain_size = 6, .plain_times = FLOOD)
{
        refused_in_the_handshake(f, "");
        ASSERT_TRUE(f->sent < FLOOD);
}

MEETING(a_flood_of_empty_hellos, .plain = "\26\3\1\0\0", .plain_size = 5, .plain_times = FLOOD)
{
        refused_in_the_handshake(f, "");
        ASSERT_TRUE(f->sent < FLOOD);
}

MEETING(nothing_at_all, .plain = "", .plain_size = 0, .plain_times = 1)
{
        ASSERT_EQ(f->shake, RESHA_TLS_ETRUNCATED);
}
