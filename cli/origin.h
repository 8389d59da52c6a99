/* SPDX-License-Identifier: MIT */
#ifndef CLI_ORIGIN_H
#define CLI_ORIGIN_H

/* A small HTTP server with the shape of the Hacker News API, for the demo, tests and benchmarks; itself a resha
 * program. */

#include <resha/base.h>
#include <resha/stream.h>
#include <resha/time.h>

enum origin_fault_kind {
        ORIGIN_BUSY,   /* 503 with Retry-After, the first time */
        ORIGIN_NEVER,  /* no answer, ever */
        ORIGIN_NULL,   /* `null` */
        ORIGIN_GONE,   /* 404 */
        ORIGIN_BROKEN, /* 500 */
        ORIGIN_RESET,  /* closes the connection without an answer, the first time */
};

struct origin_fault {
        uint64_t rank; /* of the story, from 1 */
        enum origin_fault_kind kind;
};

enum { ORIGIN_MAX_FAULTS = 32 };

struct origin_options {
        resha_duration delay; /* before each answer */
        uint64_t items;       /* how many stories there are */
        size_t size;          /* of a story's JSON, at least; 0: as it is */
        bool etags;           /* give ETags, and 304 to who has the same */
        struct origin_fault faults[ORIGIN_MAX_FAULTS];
        size_t n_faults;
};

struct origin;

/* Listens on 127.0.0.1 and a port, 0: any free one. opts is copied. 0; negative with a record. [task] cancellation
 * point */
int origin_open(const struct origin_options *opts, uint16_t port, struct origin **ret_origin);
void origin_close(struct origin *o);
void origin_closep(struct origin **o);

/* "http://127.0.0.1:PORT". */
const char *origin_url(const struct origin *o);

/* Changes the faults for what comes from now on. [loop] */
void origin_set_faults(struct origin *o, const struct origin_fault *faults, size_t n);

/* A task that serves until it is cancelled. */
int origin_serve(void *origin);

/* `resha origin`: prints its URL and serves until it is ended. The exit status. */
int origin_main(int argc, char **argv);

#endif
