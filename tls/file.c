/* SPDX-License-Identifier: MIT */
/* Files that a configuration is made of, as texts in memory, and PEM in them. Read by whoever builds: a thread of the
 * pool, mostly, where it may take its time; not for ever, so that FIFOs and terminals are refused.
 *
 * What was read is wiped when it is let go: it may be a key. Nothing of it is ever part of an error's text. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "config.h"

#include <resha/alloc.h>

#define FILE_MOST ((off_t)16 << 20)

static int unreadable(const struct rs_tls_text *t, int error)
{
        const char *remedy = "";

        if (error == EACCES)
                remedy = ": this process may not read it";
        else if (error == ENOENT)
                remedy = ": is the name right, and from where is it relative?";
        return resha_fail(-error, "%s: %s%s", t->label, resha_strerror(-error), remedy);
}

/* What can be read to an end without waiting for anybody. */
static int check_kind(const struct rs_tls_text *t, const struct stat *st)
{
        if (S_ISDIR(st->st_mode))
                return resha_fail(-EISDIR, "%s: is a folder, not a file", t->label);
        if (!S_ISREG(st->st_mode))
                return resha_fail(-EINVAL, "%s: is no plain file, which could be read again: give its text instead",
                                  t->label);
        if (st->st_size > FILE_MOST)
                return resha_fail(-EFBIG, "%s: has %lld bytes; at most 16 MiB are read", t->label,
                                  (long long)st->st_size);
        return 0;
}

/* What is there, up to the size it had: a file that grows meanwhile is being written. */
static int read_all(struct rs_tls_text *t, int fd, size_t size)
{
        t->own = resha_malloc(size + 1);
        if (!t->own)
                return resha_fail(-ENOMEM, "%s: no memory for its %zu bytes", t->label, size);
        t->bytes = t->own;
        while (t->size < size) {
                ssize_t n = read(fd, t->own + t->size, size - t->size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return unreadable(t, errno);
                if (n == 0)
                        break;
                t->size += (size_t)n;
        }
        t->own[t->size] = '\0';
        return 0;
}

int rs_tls_text_open(const char *option, const char *path, const char *text, struct rs_tls_text *ret_text)
{
        struct rs_tls_text t = { .bytes = text, .size = text ? strlen(text) : 0 };
        struct stat st;

        if (!path) {
                snprintf(t.label, sizeof t.label, "%s", option);
                *ret_text = t;
                return 0;
        }
        snprintf(t.label, sizeof t.label, "%s \"%.100s\"", option, path);
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return unreadable(&t, errno);
        int rc = fstat(fd, &st) < 0 ? unreadable(&t, errno) : check_kind(&t, &st);
        if (rc == 0)
                rc = read_all(&t, fd, (size_t)st.st_size);
        close(fd);
        if (rc < 0)
                rs_tls_text_close(&t);
        else
                *ret_text = t;
        return rc;
}

void rs_tls_text_close(struct rs_tls_text *t)
{
        if (t->own)
                OPENSSL_cleanse(t->own, t->size);
        resha_free(t->own);
        t->own = NULL;
        t->bytes = NULL;
        t->size = 0;
}

/* What OpenSSL reads out of a certificate when it is first looked at is read now, while one thread has it: others would
 * find out whether that is there by a load that does not order what they read then. Whether the certificate is any good
 * is for the verification to say. */
int rs_tls_next_cert(BIO *bio, const struct rs_tls_text *t, unsigned count, X509 **ret_cert)
{
        ERR_clear_error();
        X509 *cert = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
        unsigned long e = ERR_peek_last_error();
        char what[sizeof t->label + 64];

        if (cert) {
                (void)X509_check_purpose(cert, -1, 0);
                ERR_clear_error();
                *ret_cert = cert;
                return 1;
        }
        if (ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE) {
                ERR_clear_error();
                return 0;
        }
        snprintf(what, sizeof what, "%s: its certificate number %u cannot be read", t->label, count + 1);
        return rs_tls_fail(RESHA_TLS_ECERT, what);
}
