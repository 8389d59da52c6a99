/* SPDX-License-Identifier: MIT */
#ifndef TLS_LOAD_H
#define TLS_LOAD_H

/* What loads a TLS server: connections of a client, and the clock of the server's process. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <openssl/ssl.h>

enum { LARGEST = 16384, CONNECTIONS = 32768, EVENTS = 1024, RAMP = 64, HEAD = 16, SLOTS = 32, PATIENCE = 20000000 };

struct connection {
        SSL *ssl;
        int fd;
        bool shaken;      /* the handshake is over */
        size_t sent, got; /* of the message under way */
        uint64_t turn;    /* which message that is */
};

struct load {
        uint16_t port;
        clockid_t server;
        SSL_CTX *tls;
        size_t count, size;
        uint64_t window; /* ns */
        int epfd;
        uint64_t done, waits; /* echoes or handshakes; looks for events that found some */
};

/* Ends the program with errno's or OpenSSL's message. */
_Noreturn void load_die(const char *what);

uint64_t load_now(clockid_t clock);

/* A socket that is connected, which does not block if it is said, and a TLS client on it that has sent nothing yet. */
void load_connect(const struct load *l, struct connection *c, bool blocks);

/* Ends by a reset: ports do not linger. */
void load_drop(struct connection *c);

/* Has events of c reported from now on, each once. */
void load_watch(const struct load *l, struct connection *c);

/* The next events: at least one. It never sleeps: a server that is slower than the load would have to wake it for every
 * message. */
int load_events(struct load *l, void *ret_events);

/* Whether a call of OpenSSL that gave rc has to wait; ends the program if it failed. *ret_end (may be NULL): the peer
 * has ended in order. */
bool load_waits(const struct connection *c, int rc, bool *ret_end);

/* Calls turn(l) until a fifth of the window has passed, then for the window; prints what each of l->done took. */
void load_measure(struct load *l, void (*turn)(struct load *l));

/* handshakes.c: connections that do nothing but shake hands and end, SLOTS at a time. */
void load_handshakes(struct load *l, bool resumed);

#endif
