/* SPDX-License-Identifier: MIT */
#ifndef RS_LOOKUP_H
#define RS_LOOKUP_H

/* Look-ups of names on threads of the process, shared and kept. */

#include "net/resolve_cache.h"

struct rs_loop;

enum {
        RS_HOST_MAX = 253,   /* RFC 1035, as text */
        RS_SERVICE_MAX = 31, /* bytes of a service name */
};

/* A look-up that runs for so long hangs; tests make it shorter. */
extern int64_t rs_lookup_hang_ns;

/* After how long a fork does not wait for a look-up any more. For tests. */
extern int64_t rs_lookup_long_ns;

/* Waits for the answer to (host, service; "" for none), which has port 0 without a service. The caller has entered. 1:
 * the answer was there and it has not waited; 0: it has; -ECANCELED, -ENOMEM, -EAGAIN: no thread. Cancellation point
 * unless the result is 1. */
int rs_lookup(struct rs_loop *l, const char *host, const char *service, struct rs_answer *ret);

/* How long answers are kept; forgetting them, and those that are under way too. */
void rs_lookup_keep(int64_t ns);
void rs_lookup_forget(void);

struct rs_waits;
extern const struct rs_waits rs_question_waits; /* for who looks from outside */

#endif
