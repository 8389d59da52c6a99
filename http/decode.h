/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_DECODE_H
#define RS_HTTP_DECODE_H

/* Content codings: bytes as they came in, decoded bytes out. */

#include <resha/base.h>

typedef struct rs_http_decoder rs_http_decoder;

/* Takes decoded bytes. 0, or a code that ends the decoding. */
typedef int rs_http_decoded_fn(void *arg, const void *data, size_t size);

/* Adds the codings of one Content-Encoding value to *d, which is NULL at first and stays NULL while there is nothing
 * to decode. 0, RESHA_HTTP_EENCODING (unknown, or too many), -ENOMEM. */
int rs_http_decoder_add(rs_http_decoder **d, const char *value);

/* What codings give to one another shall not be much more than `max` bytes for each. Before the first push; without
 * it there is no limit. */
void rs_http_decoder_limit(rs_http_decoder *d, size_t max);

/* Decodes; calls fn with what comes out. 0, RESHA_HTTP_EENCODING (corrupt), RESHA_HTTP_ETOO_LARGE (the limit), -ENOMEM,
 * or what fn gave. */
int rs_http_decoder_push(rs_http_decoder *d, const void *data, size_t size, rs_http_decoded_fn *fn, void *arg);

/* The input is complete. 0, or RESHA_HTTP_ETRUNCATED. */
int rs_http_decoder_finish(const rs_http_decoder *d);

/* NULL is fine. */
void rs_http_decoder_free(rs_http_decoder *d);

#endif
