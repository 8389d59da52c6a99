/* SPDX-License-Identifier: MIT */
/* Any bytes as a coded body: in one piece and in small ones they give the same result and the same bytes. The first two
 * bytes choose the coding and the size of the pieces. */

#include "decode.h"
#include "fuzz.h"

#include <resha/error.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 18 };

struct out {
        unsigned char data[OUT_MAX];
        size_t size;
};

static int take(void *arg, const void *data, size_t size)
{
        struct out *o = arg;
        if (size > OUT_MAX - o->size)
                return RESHA_HTTP_ETOO_LARGE;
        memcpy(o->data + o->size, data, size);
        o->size += size;
        return 0;
}

static int decode(const char *coding, const uint8_t *data, size_t size, size_t piece, struct out *o)
{
        rs_http_decoder *d = NULL;
        int rc = rs_http_decoder_add(&d, coding);
        o->size = 0;
        for (size_t i = 0; rc >= 0 && i < size; i += piece)
                rc = rs_http_decoder_push(d, data + i, size - i < piece ? size - i : piece, take, o);
        if (rc >= 0)
                rc = rs_http_decoder_finish(d);
        rs_http_decoder_free(d);
        return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const codings[] = { "gzip", "deflate", "br", "gzip, gzip", "br, deflate" };
        static struct out whole, pieces;
        if (size < 2)
                return 0;
        const char *coding = codings[data[0] % 5];
        size_t piece = 1 + data[1] % 32;
        int a = decode(coding, data + 2, size - 2, size, &whole),
            b = decode(coding, data + 2, size - 2, piece, &pieces);
        if (a != b)
                abort();
        if (a == 0 && (whole.size != pieces.size || memcmp(whole.data, pieces.data, whole.size) != 0))
                abort();
        return 0;
}
