/* SPDX-License-Identifier: MIT */
#ifndef RS_RESOLVE_CACHE_H
#define RS_RESOLVE_CACHE_H

/* Answers of look-ups that are kept for a short while. Knows neither clock nor lock: the caller has both. */

#include <stdbool.h>
#include <stdint.h>

#include <resha/addr.h>

/* The answer to a question. */
struct rs_answer {
        resha_addr *addrs;
        size_t n;   /* how many there are */
        size_t max; /* how many there is room for */
        int eai;    /* 0, or the EAI code */
        int error;  /* errno with EAI_SYSTEM */
};

/* So many answers are kept; the oldest goes first. */
#define RS_CACHE_MAX 256

/* For how long, in ns, from now on and for those that are there. 0: not at all. */
void rs_cache_keep(int64_t ns);

/* True: the answer that is kept is in *ret, its first ret->max addresses. */
bool rs_cache_find(const char *host, const char *service, int64_t now, struct rs_answer *ret);

/* Keeps the answer in the place of an older one: addresses, and that there is no such name; no other failure. Without
 * memory it does not. */
void rs_cache_add(const char *host, const char *service, int64_t now, const struct rs_answer *a);

void rs_cache_clear(void);

/* In a forked child: what was kept stays with the parent. */
void rs_cache_forked(void);

#endif
