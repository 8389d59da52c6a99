/* SPDX-License-Identifier: MIT */
#ifndef CLI_KEEP_H
#define CLI_KEEP_H

/* What an answer is kept in: texts, each once however often it came, and where things are by their loop and number. */

#include <resha/base.h>

struct keep_chunk;
struct keep_text;

struct keep {
        struct keep_chunk *chunks; /* the latest first, which has room */
        struct keep_text **slots;  /* of texts by their hash */
        size_t n, n_slots;
        uint64_t bytes;
};

void keep_done(struct keep *k);

/* The one copy of s, which lives as long as `k`: equal texts are equal pointers. "" for "". NULL: no memory. */
const char *keep_text(struct keep *k, const char *s);

struct keep_place {
        uint64_t number;
        uint32_t loop, value; /* value: + 1; 0: free */
};

/* Finds by loop and number. */
struct keep_index {
        struct keep_place *slots;
        size_t n, n_slots;
};

void keep_index_done(struct keep_index *x);

/* value < UINT32_MAX. The latest of the same name holds. 0, -ENOMEM. */
int keep_index_set(struct keep_index *x, uint32_t loop, uint64_t number, uint32_t value);

/* The value, or -1. */
int64_t keep_index_find(const struct keep_index *x, uint32_t loop, uint64_t number);

uint64_t keep_mix(uint64_t x);

#endif
