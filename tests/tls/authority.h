/* SPDX-License-Identifier: MIT */
#ifndef TEST_TLS_AUTHORITY_H
#define TEST_TLS_AUTHORITY_H

/* Certificates of any kind, good and bad, made while the test runs: nothing expires in the tree, and no key lies in it.
 *
 *     struct cert *root = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true });
 *     struct cert *leaf = cert_new(root, &(struct cert_opts){ .name = "a.example", .alt = "DNS:a.example" });
 *     opts.trust_pem = cert_pem(root);
 *     opts.cert_pem = cert_chain_pem(leaf);
 *     opts.key_pem = cert_key_pem(leaf);
 *
 * Everything here belongs to the process and is freed when it ends; a failure is that of the test. Not for several
 * threads at once. */

#include <stdbool.h>
#include <stddef.h>

#include <openssl/types.h>

enum cert_key {
        CERT_EC, /* P-256 */
        CERT_RSA_2048,
        CERT_RSA_1024, /* too weak */
        CERT_ED25519,
};

/* Zero means what a good leaf has. */
struct cert_opts {
        const char *name;        /* its CN [none: an empty subject] */
        const char *alt;         /* subjectAltName as OpenSSL writes it: "DNS:a.example,IP:127.0.0.1" [none] */
        const char *alt_bytes;   /* one more DNS name, with any bytes in it [none] */
        size_t alt_size;         /* of alt_bytes */
        long from, until;        /* seconds from now, from which and until which it is valid [-1 day, 30 days] */
        bool ca;                 /* basicConstraints CA:TRUE, keyUsage of one that signs */
        const char *path_length; /* of a CA: "0", ... [none] */
        const char *usage;       /* keyUsage [of a leaf: digitalSignature; of a CA: keyCertSign,cRLSign] */
        const char *purpose;     /* extendedKeyUsage [none]: "serverAuth", "clientAuth", ... */
        const char *constraints; /* nameConstraints of a CA: "permitted;DNS:example.org" [none] */
        enum cert_key key;       /* [EC] */
        const char *digest;      /* what its issuer signs with ["SHA256"] */
        const struct cert *same; /* has the key of this one [a new key] */
};

struct cert {
        X509 *x509;
        EVP_PKEY *key;
        const struct cert *issuer; /* NULL: self-signed */
        struct cert *next;
};

/* issuer NULL: self-signed. */
struct cert *cert_new(const struct cert *issuer, const struct cert_opts *opts);

/* As PEM text: the certificate alone; with the intermediate ones behind it, not the root; its key; its key encrypted
 * with a password. */
const char *cert_pem(const struct cert *c);
const char *cert_chain_pem(const struct cert *c);
const char *cert_key_pem(const struct cert *c);
const char *cert_key_encrypted_pem(const struct cert *c, const char *password);

/* A list of what the issuer has revoked; from, until as in cert_opts. */
const char *crl_pem(const struct cert *issuer, const struct cert *const *revoked, size_t n, long from, long until);

/* Two texts in one. */
const char *text_join(const char *a, const char *b);

/* A path in a folder of this process, which is removed with all in it when the process ends. Valid until then. */
const char *temp_path(const char *name);

/* Writes text there, replacing what is there, and gives the path. */
const char *temp_file(const char *name, const char *text);

#endif
