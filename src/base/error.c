/* SPDX-License-Identifier: MIT */
/* Texts and names of codes. Own codes are in the table below; the system's come from the C library. */

#include <resha/error.h>

#include <stdio.h>
#include <string.h>

#include <resha/base.h>

struct entry {
        int code;
        const char *name, *text;
};

#define ENTRY(name, text) \
        { \
                name, #name, text \
        }

static const struct entry own[] = {
        ENTRY(RESHA_EBROKEN, "barrier is broken"),
        ENTRY(RESHA_ESHUT, "portal is shut down"),
        ENTRY(RESHA_EFULL, "as many wait as may"),
        ENTRY(RESHA_EGIVENUP, "run was given up"),
        ENTRY(RESHA_EPROCESS, "a process has failed"),
        ENTRY(RESHA_HTTP_EURL, "not an absolute http:// or https:// URL"),
        ENTRY(RESHA_HTTP_EHEADER, "header holds a byte that must not be sent"),
        ENTRY(RESHA_HTTP_EHOST, "no such host"),
        ENTRY(RESHA_HTTP_ETOTAL, "total time ran out"),
        ENTRY(RESHA_HTTP_ECONNECT_TIMEOUT, "not connected in time"),
        ENTRY(RESHA_HTTP_EREAD_TIMEOUT, "no answer for too long"),
        ENTRY(RESHA_HTTP_EPOOL_TIMEOUT, "no connection of the pool was free in time"),
        ENTRY(RESHA_HTTP_ETLS, "TLS handshake or certificate refused"),
        ENTRY(RESHA_HTTP_ETRUNCATED, "body ends too early"),
        ENTRY(RESHA_HTTP_EENCODING, "content coding unknown or corrupt"),
        ENTRY(RESHA_HTTP_ETOO_LARGE, "body over the cap"),
        ENTRY(RESHA_HTTP_EHEADERS_TOO_LARGE, "header block over the cap"),
        ENTRY(RESHA_HTTP_EREDIRECTS, "too many redirects"),
        ENTRY(RESHA_HTTP_EPROTOCOL, "not a valid HTTP answer"),
        ENTRY(RESHA_HTTP_ECLOSED, "HTTP session is closed"),
        ENTRY(RESHA_TLS_EVERIFY, "certificate of the peer refused"),
        ENTRY(RESHA_TLS_EHANDSHAKE, "TLS handshake failed"),
        ENTRY(RESHA_TLS_ETRUNCATED, "connection ended without close_notify"),
        ENTRY(RESHA_TLS_ELEFTOVER, "plaintext left over before TLS"),
        ENTRY(RESHA_TLS_EPROTOCOL, "TLS protocol violated"),
        ENTRY(RESHA_TLS_ECERT, "certificate, key or list cannot be used"),
};

/* SQLite's primary result codes 1..28, as in its sqlite3.h. */
static const struct entry sqlite[] = {
        { 1, "SQLITE_ERROR", "SQL error" },
        { 2, "SQLITE_INTERNAL", "internal error of SQLite" },
        { 3, "SQLITE_PERM", "access permission denied" },
        { 4, "SQLITE_ABORT", "query aborted" },
        { 5, "SQLITE_BUSY", "database is locked" },
        { 6, "SQLITE_LOCKED", "table is locked" },
        { 7, "SQLITE_NOMEM", "out of memory" },
        { 8, "SQLITE_READONLY", "database is read-only" },
        { 9, "SQLITE_INTERRUPT", "query interrupted" },
        { 10, "SQLITE_IOERR", "disk I/O error" },
        { 11, "SQLITE_CORRUPT", "database disk image is malformed" },
        { 12, "SQLITE_NOTFOUND", "unknown operation" },
        { 13, "SQLITE_FULL", "database or disk is full" },
        { 14, "SQLITE_CANTOPEN", "unable to open database file" },
        { 15, "SQLITE_PROTOCOL", "locking protocol" },
        { 17, "SQLITE_SCHEMA", "database schema has changed" },
        { 18, "SQLITE_TOOBIG", "string or blob too big" },
        { 19, "SQLITE_CONSTRAINT", "constraint failed" },
        { 20, "SQLITE_MISMATCH", "datatype mismatch" },
        { 21, "SQLITE_MISUSE", "bad parameter or other API misuse" },
        { 23, "SQLITE_AUTH", "authorization denied" },
        { 25, "SQLITE_RANGE", "column index out of range" },
        { 26, "SQLITE_NOTADB", "file is not a database" },
        /* resha's own in the same block */
        { 97, "RESHA_SQLITE_ERESULT_SIZE", "result is over max_result_bytes" },
        { 98, "RESHA_SQLITE_ETRANSACTION", "SQL begins or ends a transaction on its own" },
        { 99, "RESHA_SQLITE_ECLOSED", "database is closed" },
};

static const struct entry *find(const struct entry *table, size_t n, int code)
{
        for (size_t i = 0; i < n; i++)
                if (table[i].code == code)
                        return &table[i];
        return NULL;
}

static const struct entry *find_own(int code)
{
        const struct entry *e = find(own, sizeof own / sizeof own[0], code);

        return e ? e : find(sqlite, sizeof sqlite / sizeof sqlite[0], RESHA_SQLITE_EBASE - code);
}

const char *resha_strerror(int code)
{
        if (code >= 0)
                return "no error";
        if (code == -ETIME)
                return "deadline passed";
        if (code == -ECANCELED)
                return "cancelled";
        const struct entry *e = find_own(code);
        if (e)
                return e->text;
        /* Untranslated, static and thread-safe; NULL for numbers that the C library does not know. */
        const char *text = strerrordesc_np(-code);
        return text ? text : "unknown error";
}

const char *resha_errname(int code)
{
        if (code >= 0)
                return NULL;
        const struct entry *e = find_own(code);
        return e ? e->name : strerrorname_np(-code);
}

const char *resha_version(void)
{
        return RESHA_STRINGIFY(RESHA_VERSION_MAJOR) "." RESHA_STRINGIFY(RESHA_VERSION_MINOR) "." RESHA_STRINGIFY(
                RESHA_VERSION_PATCH);
}
