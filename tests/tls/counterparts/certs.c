/* SPDX-License-Identifier: MIT */
/* certs FOLDER: writes certificates of every kind, good and bad, each NAME.pem with its chain and NAME.key. */

#include "authority.h"

#include <stdio.h>
#include <stdlib.h>

#include "test.h"

/* Stands in for the tests' own library, which has a main() of its own. */
void test_fail(const char *file, int line, const char *format, ...)
{
        fprintf(stderr, "%s:%d: %s\n", file, line, format);
        exit(1);
}

static void write_text(const char *folder, const char *name, const char *end, const char *text)
{
        char path[512];
        snprintf(path, sizeof path, "%s/%s.%s", folder, name, end);
        FILE *f = fopen(path, "we");

        if (!f || fputs(text, f) < 0 || fclose(f) != 0) {
                perror(path);
                exit(1);
        }
}

static void write_cert(const char *folder, const char *name, const struct cert *c)
{
        write_text(folder, name, "pem", cert_chain_pem(c));
        write_text(folder, name, "key", cert_key_pem(c));
}

enum { DAY = 86400 };

int main(int argc, char **argv)
{
        static const struct {
                const char *file;
                struct cert_opts opts;
        } leaves[] = {
                { "good", { .name = "a.example", .alt = "DNS:a.example,DNS:localhost,IP:127.0.0.1" } },
                { "other", { .name = "b.example", .alt = "DNS:b.example" } },
                { "rsa", { .name = "a.example", .alt = "DNS:a.example", .key = CERT_RSA_2048 } },
                { "wildcard", { .name = "*.w.example", .alt = "DNS:*.w.example" } },
                { "idn", { .name = "xn--bcher-kva.example", .alt = "DNS:xn--bcher-kva.example" } },
                { "expired", { .name = "a.example", .alt = "DNS:a.example", .from = -9 * DAY, .until = -2 * DAY } },
                { "future", { .name = "a.example", .alt = "DNS:a.example", .from = 2 * DAY } },
                { "revoked", { .name = "a.example", .alt = "DNS:a.example" } },
                { "client", { .name = "somebody", .purpose = "clientAuth" } },
                { "for-clients", { .name = "a.example", .alt = "DNS:a.example", .purpose = "clientAuth" } },
        };

        if (argc != 2)
                return 2;
        struct cert *root = cert_new(NULL, &(struct cert_opts){ .name = "Root", .ca = true });
        struct cert *stranger = cert_new(NULL, &(struct cert_opts){ .name = "Stranger", .ca = true });
        struct cert *middle = cert_new(root, &(struct cert_opts){ .name = "Middle", .ca = true });
        write_text(argv[1], "root", "pem", cert_pem(root));
        const struct cert *revoked = NULL;
        for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
                struct cert *c = cert_new(root, &leaves[i].opts);
                write_cert(argv[1], leaves[i].file, c);
                if (leaves[i].file[0] == 'r' && leaves[i].file[1] == 'e')
                        revoked = c;
        }
        write_cert(argv[1], "chain", cert_new(middle, &leaves[0].opts));
        write_cert(argv[1], "unknown", cert_new(stranger, &leaves[0].opts));
        write_cert(argv[1], "self", cert_new(NULL, &leaves[0].opts));
        write_text(argv[1], "root", "crl", crl_pem(root, &revoked, 1, -DAY, DAY));
        return 0;
}
