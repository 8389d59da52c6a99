/* SPDX-License-Identifier: MIT */
#ifndef BYTES_LAW_H
#define BYTES_LAW_H

/* The law of streams, as a program for trials; see bytes_law.c. */

#include "scenario.h"

enum { BYTES_TEXT = 4096, BYTES_ROOM = 200 };

/* A reader or writer, and its call. */
struct side {
        struct way *way;
        bool shielded; /* it was cancelled, and goes on */
        int choice;
        size_t size;
        /* what the call gave */
        size_t taken;
        ssize_t got;
        size_t which;
        char buf[BYTES_ROOM];
};

/* One direction. */
struct way {
        struct bytes *all;
        resha_stream *out, *in;
        const char *text;
        int fd; /* of the same text */
        size_t total, taken, pos;
        bool ended, gave_up;
        struct side writer, reader;
};

struct bytes {
        struct way way[2];
        int ways;
        size_t piece_max;
        bool begun, broken;
        unsigned late, cancelled, too_long, calls;
};

/* What has happened in all trials together. */
struct bytes_seen {
        unsigned long long late, cancelled, too_long, calls;
};
extern struct bytes_seen bytes_seen;

/* What is put around both ends before they are used; takes s over, also NULL. NULL: nothing. */
extern resha_stream *(*bytes_wrap)(resha_stream *s);

/* The same for both ends at once, where they have to agree on it; takes them over, also if it fails. NULL: nothing. */
extern int (*bytes_wrap_both)(resha_stream *both[2]);

/* How a writer ends its direction and goes on reading [resha_stream_shutdown()]. */
extern int (*bytes_end)(resha_stream *s);

/* A conversation of less than `most` bytes each way; b->piece_max is read. */
int bytes_converse(struct bytes *b, size_t most);

/* For resha_test_opts.check. */
void bytes_check(void *state, int rc, const resha_test_trial *t);

/* Both ends of a connection, by TCP or a Unix socket. */
int bytes_connected(bool tcp, resha_stream *ret_two[2]);

#endif
