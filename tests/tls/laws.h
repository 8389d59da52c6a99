/* SPDX-License-Identifier: MIT */
#ifndef TEST_TLS_LAWS_H
#define TEST_TLS_LAWS_H

/* What every conversation with somebody in the middle must obey, and what those of one test share. */

#include "middle.h"

enum { LAWS_HANDSHAKE = 4 }; /* seconds it may take */

struct laws {
        enum resha_tls_version version;
        bool resumed; /* sessions go on */
        bool mutual;  /* the client has a certificate, too */
        resha_tls *client, *server;
        struct talk talk;
};

/* LAWS(name, fn, members of struct laws...): a test that runs fn(struct laws *) in the simulated world. */
#define LAWS(name, fn, ...) \
        TEST(name) \
        { \
                static struct laws laws = { __VA_ARGS__ }; \
                SIM_ONLY(); \
                RUN(fn, &laws); \
        }

/* Configurations, made and released. In a task. */
void laws_begin(struct laws *l);
void laws_end(struct laws *l);

/* A conversation under this plan. Valid until the next one. */
struct talk *laws_talk(struct laws *l, struct plan plan);

/* In whatever way it was disturbed: an end that is content has all that was sent to it, and has seen the peer's end; a
 * read has never said that this is all when it was not; and each failure has a code that it may have, with a text. */
void laws_hold(const struct talk *t);

/* Nothing has failed at all. */
void laws_succeed(const struct talk *t);

/* The plan was about the last record of its direction, the close_notify. */
bool laws_last_record(const struct talk *t);

#endif
