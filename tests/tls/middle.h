/* SPDX-License-Identifier: MIT */
#ifndef TEST_TLS_MIDDLE_H
#define TEST_TLS_MIDDLE_H

/* Somebody in the middle: a client and a server that talk by TLS, and between them a task for each direction that sees
 * where records begin and end, passes them on, and does one bad thing at one of them. All of it in one loop, on
 * streams: in the simulated world the same plan gives the same conversation. */

#include <resha/resha.h>
#include <resha/tls.h>

#include "test.h"

enum act {
        PASS,    /* nothing bad */
        CUT,     /* ends the direction `at` bytes into the record; the other one goes on */
        CUT_ALL, /* the same, and both directions */
        FLIP,    /* turns a bit of byte `at` over */
        DROP,    /* leaves the record out */
        REPEAT,  /* sends it twice */
        SWAP,    /* sends the next one, or the end, before it */
        SILENT,  /* from this record on nothing comes, not even an end */
        DRIP,    /* all bytes come one at a time */
};

enum { TO_SERVER, TO_CLIENT, WAYS };

enum { RECORDS_MAX = 64, REQUEST = 3000, ANSWER = 10000 };

/* What is done, and at which record of which direction, from 0. */
struct plan {
        enum act act;
        int way;
        unsigned record;
        size_t at;
};

/* A record that the middle has seen. */
struct record {
        uint8_t type;
        size_t size; /* with its head of 5 bytes */
};

/* How one end has fared. */
struct end {
        int shake;           /* what resha_tls_start() said */
        int rc;              /* 0: all went well up to the end that the peer has said; or the first failure */
        size_t got;          /* bytes of request or answer */
        bool ended;          /* a read has said that this is all */
        resha_duration took; /* until it was over */
        char text[224];      /* of the failure */
        resha_tls_info info;
};

struct talk {
        /* to set */
        struct plan plan;
        resha_tls *client_tls, *server_tls;
        const char *host;
        size_t request, answer; /* bytes [REQUEST, ANSWER] */
        /* what came of it */
        struct end client, server;
        struct record seen[WAYS][RECORDS_MAX];
        unsigned count[WAYS];
        bool done; /* the plan's record came */
        /* inside */
        resha_stream *ends[4]; /* client, middle, middle, server */
        bool cut[WAYS], silent[WAYS];
        unsigned over; /* ends that are through */
};

/* A whole conversation: the client sends the request; the server reads it, answers, finishes; the client reads the
 * answer to its end, and finishes. In a task. */
void talk_run(struct talk *t);

/* What the bytes of both directions are. */
char talk_byte(int way, size_t at);

/* For messages: "CUT record 3 at 17 to the client, TLS 1.3". */
const char *talk_text(const struct talk *t);

#endif
