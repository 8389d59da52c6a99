/* SPDX-License-Identifier: MIT */
#ifndef RESHA_ERROR_H
#define RESHA_ERROR_H

/* Errors: a negative code that travels by return value, and a record that says what happened.
 *
 * A record belongs to its code. It is set by resha_fail() and by the library's own failures, is kept by the task that
 * failed, and goes to whoever joins that task. A later success, a clean-up that fails with another code, and everything
 * inside a shield leave it alone. So does a plain `return -ENOENT`, which makes no record: after an older failure with
 * that code, though it was handled, what is shown is the older one's text. Return resha_fail(-ENOENT, "...") instead.
 *
 * The record of -ECANCELED, unless resha_fail() has set one, is made when it is looked at, and says why the task is
 * cancelled: "cancelled by task "main"", with the place of that call as its site; "cancelled because a sibling failed:
 * no rate for XXX", with the place of that failure; "cancelled because a deadline passed", "cancelled by Ctrl-C". */

#include <resha/base.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

/* Codes of resha's own, beside the system's errno values; all lie in -4095..-1. Each library has a block.
 *   -ECANCELED  cancelled from outside            -ETIME     a scope's deadline passed (-ETIMEDOUT is the network's)
 *   -EDEADLK    would wait for itself for ever, or suspends inside a no-suspend region
 *   -EPERM      called outside a task, on another loop's object, or by a task that does not own it
 *   -EINVAL     an option is out of range or a reserved word is not zero */
enum {
        /* between tasks: -3999..-3900 */
        RESHA_EBROKEN = -3999, /* a barrier was aborted or reset */
        RESHA_ESHUT,           /* a portal was shut down before the call had started */
        RESHA_EFULL,           /* as many calls of a portal wait as may */
        RESHA_EGIVENUP,        /* the run was given up after its grace, with the call in it */
        RESHA_EPROCESS,        /* a process has ended with another status than 0 */
        /* http: -3899..-3800 */
        RESHA_HTTP_EURL = -3899,       /* not an absolute http:// or https:// URL */
        RESHA_HTTP_EHEADER,            /* header name or value holds a byte that must not be sent */
        RESHA_HTTP_EHOST,              /* no such host */
        RESHA_HTTP_ETOTAL,             /* the total time ran out */
        RESHA_HTTP_ECONNECT_TIMEOUT,   /* not connected in time */
        RESHA_HTTP_EREAD_TIMEOUT,      /* connected, but nothing came for too long */
        RESHA_HTTP_EPOOL_TIMEOUT,      /* no connection of the pool was free in time */
        RESHA_HTTP_ETLS,               /* handshake or certificate refused */
        RESHA_HTTP_ETRUNCATED,         /* body or content coding ends too early */
        RESHA_HTTP_EENCODING,          /* content coding unknown or corrupt */
        RESHA_HTTP_ETOO_LARGE,         /* body (after decoding) over the cap */
        RESHA_HTTP_EHEADERS_TOO_LARGE, /* header block over the cap */
        RESHA_HTTP_EREDIRECTS,         /* more redirects than allowed, or a loop */
        RESHA_HTTP_EPROTOCOL,          /* the answer is not HTTP, or contradicts itself */
        RESHA_HTTP_ECLOSED,            /* the session is closed */
        /* tls: -3599..-3500 */
        RESHA_TLS_EVERIFY = -3599, /* the peer has not proved who it is: the text says for which name, and why */
        RESHA_TLS_EHANDSHAKE,      /* no agreement: versions, ciphers, protocols, or an alert of the peer */
        RESHA_TLS_ETRUNCATED,      /* the connection ended without close_notify: somebody may have cut it */
        RESHA_TLS_ELEFTOVER,       /* plaintext was read ahead before TLS was to start */
        RESHA_TLS_EPROTOCOL,       /* what came is not TLS, was changed on its way, or is too much of one thing */
        RESHA_TLS_ECERT,           /* a certificate, key or list of our own cannot be used */
        /* sqlite: -3700 minus SQLite's primary result code, so SQLITE_BUSY (5) is -3705; -3701..-3799 */
        RESHA_SQLITE_EBASE = -3700,
};

typedef struct resha_error {
        int code;               /* 0: no error */
        uint32_t item, items;   /* gather, race: the failing one of how many, from 1; else 0, 0 */
        uint32_t cancelled;     /* siblings that this failure cancelled before they had ended */
        resha_duration after;   /* from the start of the task to the failure */
        const char *site;       /* FILE:LINE of the resha_fail(), or NULL; static */
        const char *task;       /* name of the task that failed; static, or NULL */
        const char *spawned_at; /* FILE:LINE of its spawn, gather or race; static, or NULL */
        char text[224];         /* one line, always terminated; "" only if code is 0 */
        uint64_t _reserved[2];
} resha_error;

/* Sets the record of `code` (negative) in the current task and returns `code`. `format` is printf's; longer texts are
 * cut with "...". Arguments may point into the current record of any code. Outside a task, as in main(), the thread
 * keeps one record, the latest. [any-thread]
 *
 *     return resha_fail(-ENOENT, "no rate for %s", currency); */
#define resha_fail(code, ...) resha_fail_at((code), RESHA_SITE, __VA_ARGS__)
RESHA_API int resha_fail_at(int code, const char *site, const char *format, ...) RESHA_PRINTF(3, 4);

/* The record of `rc`: never NULL. Where the current task or thread has none for that code, a record whose text is
 * resha_strerror(rc). Valid until the task waits, fails again, calls resha_error_of() again, or ends; copy the struct
 * to keep it. rc >= 0: code 0, text "". [any-thread] */
RESHA_API const resha_error *resha_error_of(int rc);

/* The text for a code, without a record: "Connection refused", "deadline passed", ... Static, never NULL.
 * [any-thread] */
RESHA_API const char *resha_strerror(int code);

/* The short name, as "ECONNREFUSED", "RESHA_HTTP_EURL"; static, or NULL if the code is unknown. [any-thread] */
RESHA_API const char *resha_errname(int code);

RESHA_END_DECLS
#endif
