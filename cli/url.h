/* SPDX-License-Identifier: MIT */
#ifndef CLI_URL_H
#define CLI_URL_H

/* URLs as text: enough to refuse what cannot be one, to keep passwords out of sight, and to fill templates. */

#include "text.h"

enum { URL_MAX = 16384 }; /* bytes; longer ones are refused */

/* NULL if url is an absolute http or https URL with a host and no byte that may not stand in one; else why not,
 * static. */
const char *url_problem(const char *url, size_t size);

/* Bytes of the control character that p begins with: 1; 2 for those from U+0080 on, of which terminals take U+009B for
 * an escape; 0: another one. left: at least 1. */
size_t url_control(const char *p, size_t left);

/* Whether a word on the command line is meant as a URL, not as the name of a preset, which has letters, digits, '-' and
 * '_' only. */
bool url_like(const char *word);

/* Adds url without "user:password@": what is shown, stored and compared. */
void url_add_public(struct text *t, const char *url, size_t size);

/* Adds the scheme, host and port in lower case, "https://example.org:443": the key of what belongs to one host. */
void url_add_host(struct text *t, const char *url);

/* Adds ref resolved against base: an absolute URL as it is, "//host/x", "/x" and "x" as in RFC 3986 (dot segments are
 * left for the client to remove). base must have passed url_problem(). */
void url_add_resolved(struct text *t, const char *base, const char *ref, size_t size);

/* Adds `template` with each {} replaced by id, in which every byte but letters, digits and -._~ is percent-encoded. */
void url_add_filled(struct text *t, const char *template, const char *id, size_t size);

#endif
