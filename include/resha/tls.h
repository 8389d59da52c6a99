/* SPDX-License-Identifier: MIT */
#ifndef RESHA_TLS_H
#define RESHA_TLS_H

/* TLS 1.2 and 1.3 over any stream, client and server (library libresha-tls, on OpenSSL). Link: resha-tls.
 *
 *     resha_stream *s RESHA_CLEANUP(resha_stream_closep) = NULL;
 *     int rc = resha_tls_connect("example.org", 443, NULL, &s);
 *     if (rc < 0)
 *             return rc; // the record says what failed to verify, and for which name
 *     rc = resha_write_all(s, request, size, NULL);
 *
 * A secure stream is a stream (stream.h) of kind "tls": one task may read and one may write it at the same time, a
 * cancelled read loses nothing, a cancelled write tells how much was taken. What is its own:
 *
 *   Verified   A client trusts the system's authorities, and the peer must prove the name that was asked for. Nothing
 *              but `insecure` of the options switches that off, and that is reported.
 *   The end    A peer that ends without saying so (close_notify) is RESHA_TLS_ETRUNCATED, never an end: somebody may
 *              have cut the connection. There is no half-close: resha_stream_shutdown() is -EOPNOTSUPP;
 *              resha_stream_finish() says close_notify, and reads until the peer does. resha_stream_close() says it if
 *              that goes out within `shutdown`, and does not wait for the peer's. resha_stream_abort() says nothing.
 *   Memory     An idle stream holds no buffers.
 *   Taken      What a write has taken is encrypted, and cannot be taken back. A write that is cancelled while that is
 *              sent tells how much was taken: all of it, even. The rest goes out with the next call that writes,
 *              flushes (resha_flush() does nothing else), reads, finishes or closes; a read that waits already sends
 *              it, too.
 *
 * Codes of reads and writes, beside those of the stream below: RESHA_TLS_ETRUNCATED, RESHA_TLS_EPROTOCOL, and
 * RESHA_TLS_EHANDSHAKE (in TLS 1.3 a server looks at a client's certificate when the client is through: that it is
 * refused comes to the first read). Once one has failed so, all later ones say the same. */

#include <resha/base.h>
#include <resha/listener.h>
#include <resha/stream.h>
#include <resha/time.h>

RESHA_BEGIN_DECLS

/* ---- configurations ---------------------------------------------------------------------------------------------- */

/* Whom to trust and who we are: made once, used by any number of connections, of all threads and loops. It changes by
 * resha_tls_reload() only. Counted: each connection holds a reference of its own. */
typedef struct resha_tls resha_tls;

enum resha_tls_version {
        RESHA_TLS_1_2 = 0x0303,
        RESHA_TLS_1_3 = 0x0304,
};

/* Certificates of clients, as a server sees it. */
enum resha_tls_peer {
        RESHA_TLS_PEER_NONE = 0, /* are not asked for */
        RESHA_TLS_PEER_ASK,      /* a client may have none; one that it has must verify */
        RESHA_TLS_PEER_REQUIRE,  /* a client without one is refused */
};

/* A certificate, for the names in `host`: "example.org", or "*.example.org", one label deep. Chain and key as in
 * resha_tls_opts. */
typedef struct resha_tls_name {
        const char *host;
        const char *cert_file, *key_file;
        const char *cert_pem, *key_pem;
        uint64_t _reserved[2];
} resha_tls_name;

typedef struct resha_tls_opts {
        /* Whom to trust: PEM certificates of authorities, in a file, in the files of a folder, in a text; all that are
         * given count, and each of them ends a chain, root or not. [client: those of the system, or of $SSL_CERT_FILE
         * and $SSL_CERT_DIR if one is set; server: nobody] */
        const char *trust_file, *trust_dir, *trust_pem;
        /* PEM revocation lists (CRL): a certificate that the list of its authority names is refused, and so is a peer
         * whose authority has no list in it, or one that has expired. [NULL: not looked at] */
        const char *crl_file;
        /* Who we are: a PEM chain, own certificate first, and its key; as files or as texts. The key may stand in the
         * file or text of the certificate [key NULL]. A server must have one; a client, if it is asked for. */
        const char *cert_file, *key_file;
        const char *cert_pem, *key_pem;
        /* A server's further certificates, chosen by the name that the client asks for (SNI); the first that fits
         * counts, and where none does the one above. [NULL] */
        const resha_tls_name *names;
        size_t name_count;
        /* Protocols in order of preference, NULL at the end: { "h2", "http/1.1", NULL }. A server chooses the first of
         * its own that the client offers, and refuses a client that offers none of them. [NULL: no ALPN] */
        const char *const *alpn;
        enum resha_tls_version min_version; /* [RESHA_TLS_1_2] */
        enum resha_tls_version max_version; /* [the highest that OpenSSL has] */
        /* Of TLS 1.2, as OpenSSL writes lists; "@SECLEVEL=" counts for nothing [AES-GCM, ChaCha20, forward secrecy] */
        const char *ciphers;
        const char *suites;       /* of TLS 1.3 [OpenSSL's] */
        enum resha_tls_peer peer; /* of a server [RESHA_TLS_PEER_NONE] */
        /* DANGER: a client takes anybody for the one it wants to talk to. Each configuration that is made so is
         * reported (RESHA_REPORT_INSECURE), and resha_tls_about() says it of each connection. [false] */
        bool insecure;
        bool no_sessions;         /* each handshake is a full one [false: sessions are resumed] */
        unsigned sessions;        /* that a client keeps for resumption, to 65536 [256] */
        resha_duration handshake; /* that it may take [30 s] */
        resha_duration shutdown;  /* how long a close waits for its close_notify to go out [5 s] */
        uint64_t _reserved[8];
} resha_tls_opts;

/* A configuration for clients; NULL: all defaults. Texts and lists are copied; names of files, too, for reload. 0;
 * -ENOENT, -EACCES, ... with the name of a file; RESHA_TLS_ECERT what is in it is no certificate, no key, or one that
 * does not fit, is encrypted, or too weak; -EINVAL options; -ENOMEM. Inside a task the files are read on the pool, and
 * that is waited for, cancelled or not; the record says what is wrong, outside of tasks too. [any-thread] */
RESHA_API int resha_tls_client(const resha_tls_opts *opts, resha_tls **ret_tls);

/* The same for servers. [any-thread] */
RESHA_API int resha_tls_server(const resha_tls_opts *opts, resha_tls **ret_tls);

/* Reads the files again: handshakes that start from now on take what is in them, connections that are there go on as
 * they are. Sessions of before are resumed still, unless whom to trust has changed (or a client's own certificate). A
 * failure leaves everything as it was. Errors as those of the making. [any-thread] */
RESHA_API int resha_tls_reload(resha_tls *t);

/* One reference more, or less: the last one releases it. NULL is fine. [any-thread] */
RESHA_API resha_tls *resha_tls_ref(resha_tls *t);
RESHA_API void resha_tls_unref(resha_tls *t);
RESHA_API void resha_tls_unrefp(resha_tls **t);

/* ---- secure streams ---------------------------------------------------------------------------------------------- */

typedef struct resha_tls_start_opts {
        /* A client's: the name or address literal that the peer must prove, and, of a name, the one it is asked for
         * (SNI). Of ASCII letters: other names in their "xn--" form. [-EINVAL, unless the configuration is insecure] */
        const char *host;
        uint16_t port;           /* a client's: sessions are kept for host and port [0] */
        const char *const *alpn; /* in place of the configuration's [NULL: that] */
        uint64_t _reserved[4];
} resha_tls_start_opts;

/* TLS on a stream that is there, of any kind, from here on: as client or server, as t is. Makes the handshake; what was
 * kept in `under` (resha_stream_buffer()) goes out before. `under` is borrowed: nobody else may read, write or close it
 * while the secure one is open. Variables with clean-up that are declared in this order are closed so. Options and
 * addresses of the secure stream are those of the one under it; resha_stream_abort() breaks off both.
 *
 * Bytes that were read ahead from `under` came before TLS: a client refuses them (RESHA_TLS_ELEFTOVER), for whoever
 * sits in between could have put them there; a server takes them for the start of the handshake.
 *
 * 0; RESHA_TLS_EVERIFY, RESHA_TLS_EHANDSHAKE, RESHA_TLS_ETRUNCATED (the peer ended in the middle), -ETIMEDOUT after
 * `handshake`; what `under` says; -EINVAL, -ENOMEM. After a failure `under` is still the caller's, with bytes of the
 * handshake gone: close it. [task] cancellation point */
RESHA_API RESHA_MUST int resha_tls_start(resha_stream *under, resha_tls *t, const resha_tls_start_opts *opts,
                                         resha_stream **ret_stream);

/* resha_tcp_connect() and resha_tls_start() with that host and port; the stream owns its connection. t NULL: a client's
 * configuration with all defaults, which is made once in the process. -EINVAL: t is a server's. [task] cancellation
 * point */
RESHA_API RESHA_MUST int resha_tls_connect(const char *host, uint16_t port, resha_tls *t, resha_stream **ret_stream);

typedef struct resha_tls_serve_opts {
        resha_serve_opts serve;
        /* Called in the connection's task when a handshake has failed: `code` with its record; `plain` still has its
         * addresses, but if the peer has reset the connection its own is -ENOTCONN. For logs and counters: it should
         * not wait. [NULL: nobody is told] */
        void (*refused)(resha_stream *plain, int code, void *arg);
        uint64_t _reserved[4];
} resha_tls_serve_opts;

/* As resha_serve(), with a secure stream for each connection. The handshake is made in the connection's own task and
 * counts as one of the live connections: a client that does not go on with it is dropped after `handshake`. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_tls_serve(resha_listener *l, resha_tls *t, int (*fn)(resha_stream *stream, void *arg),
                                         void *arg, const resha_tls_serve_opts *opts);

/* What a handshake has agreed on. Texts are cut if they do not fit; what the peer has asked for is printed as ASCII,
 * with "?" for other bytes. */
typedef struct resha_tls_info {
        enum resha_tls_version version;
        char cipher[64];   /* "TLS_AES_256_GCM_SHA384" */
        char alpn[64];     /* "": none */
        char host[256];    /* the name that the client asked for (SNI); "": none */
        char subject[256]; /* of the peer's certificate: "CN=example.org", RFC 2253; "": it has shown none */
        char issuer[256];
        int64_t not_before, not_after; /* when that certificate is valid: seconds since 1970; 0: it has shown none */
        bool resumed;                  /* an earlier session goes on */
        bool verified;                 /* the peer has proved who it is: its certificate, and a server's name */
        bool insecure;                 /* nobody has looked: `insecure` of the options */
        uint64_t _reserved[4];
} resha_tls_info;

/* About a secure stream. 0; -EINVAL: it is not one; -EBADF. [loop] */
RESHA_API int resha_tls_about(resha_stream *s, resha_tls_info *ret_info);

RESHA_END_DECLS
#endif
