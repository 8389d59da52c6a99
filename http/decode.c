/* SPDX-License-Identifier: MIT */
/* Content codings: gzip, deflate and br, alone or one upon another.
 *
 * Why not libcurl's: it accepts gzip that is cut short, refuses gzip of several members, and does not bound what
 * comes out of a few bytes. Here the end of the stream must have been seen (rs_http_decoder_finish), members follow
 * each other, and output leaves in pieces of at most one buffer, so that whoever takes them can stop at its cap.
 *
 * A decoder is a short chain of stages in the order in which the codings were applied: the last one takes the bytes
 * of the wire, each gives its output to the one before it, the first to the caller. States of a stage:
 *
 *     START --(first byte; deflate: two)--> RUN --(end of stream)--> END
 *                                            ^                        |
 *                                            +---(gzip: next member)--+--(gzip: zero bytes)--> PADDING
 *
 * Whoever takes the output cannot see what goes from stage to stage: there, a few bytes can become gigabytes that a
 * later stage swallows (padding, blocks without content). So that has a cap too (rs_http_decoder_limit).
 *
 * A body without a single byte is whole in every coding: servers mark empty answers as gzip too. */

#include "decode.h"

#include <resha/alloc.h>
#include <resha/error.h>

#include <brotli/decode.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

enum { STAGES_MAX = 4, OUT_SIZE = 16384, BETWEEN_LEAST = 1 << 20 };

enum coding { GZIP, DEFLATE, BROTLI };
enum state { START, RUN, END, PADDING };

struct stage {
        enum coding coding;
        enum state state;
        bool open;              /* z or br is initialised */
        unsigned char first[1]; /* deflate: the first byte, until the second one tells zlib from raw */
        unsigned held;          /* how many bytes of `first` are valid */
        z_stream z;
        BrotliDecoderState *br;
        unsigned char *out; /* OUT_SIZE bytes */
};

struct rs_http_decoder {
        unsigned count;
        uint64_t between; /* bytes that a stage may still give to another */
        struct stage stages[STAGES_MAX];
};

struct outlet {
        rs_http_decoder *d;
        unsigned before; /* stages that are still to come: stages[before - 1] takes the output; 0: the caller does */
        rs_http_decoded_fn *fn;
        void *arg;
};

static int stage_push(struct outlet o, const unsigned char *data, size_t size);

/* ---- allocation: everything through the one allocator that tests can starve -------------------------------------- */

static void *z_alloc(void *opaque, uInt n, uInt size)
{
        (void)opaque;
        return resha_calloc(n, size);
}

static void z_free(void *opaque, void *p)
{
        (void)opaque;
        resha_free(p);
}

static void *br_alloc(void *opaque, size_t size)
{
        (void)opaque;
        return resha_malloc(size);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int coding_of(const char *name, size_t size, enum coding *ret_coding)
{
        static const struct {
                const char *name;
                enum coding coding;
        } known[] = { { "gzip", GZIP }, { "x-gzip", GZIP }, { "deflate", DEFLATE }, { "br", BROTLI } };

        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
                if (strlen(known[i].name) == size && strncasecmp(known[i].name, name, size) == 0) {
                        *ret_coding = known[i].coding;
                        return 0;
                }
        return RESHA_HTTP_EENCODING;
}

static int add_stage(rs_http_decoder **d, enum coding coding)
{
        if (!*d) {
                *d = resha_calloc(1, sizeof **d);
                if (!*d)
                        return -ENOMEM;
                (*d)->between = UINT64_MAX;
        }
        if ((*d)->count == STAGES_MAX)
                return RESHA_HTTP_EENCODING;
        struct stage *s = &(*d)->stages[(*d)->count];
        s->out = resha_malloc(OUT_SIZE);
        if (!s->out)
                return -ENOMEM;
        s->coding = coding;
        (*d)->count++;
        return 0;
}

int rs_http_decoder_add(rs_http_decoder **d, const char *value)
{
        for (const char *p = value; *p;) {
                p += strspn(p, " \t,");
                size_t size = strcspn(p, ",");
                const char *next = p + size;
                while (size > 0 && (p[size - 1] == ' ' || p[size - 1] == '\t'))
                        size--;
                bool identity = size == 8 && strncasecmp(p, "identity", 8) == 0;
                if (size > 0 && !identity) {
                        enum coding coding;
                        int rc = coding_of(p, size, &coding);
                        if (rc >= 0)
                                rc = add_stage(d, coding);
                        if (rc < 0)
                                return rc;
                }
                p = next;
        }
        return 0;
}

void rs_http_decoder_limit(rs_http_decoder *d, size_t max)
{
        uint64_t all = (uint64_t)(d->count - 1) * max + BETWEEN_LEAST;
        d->between = max < UINT64_MAX / (STAGES_MAX + 1) ? all : UINT64_MAX;
}

static void stage_close(struct stage *s)
{
        if (s->open && s->coding == BROTLI)
                BrotliDecoderDestroyInstance(s->br);
        else if (s->open)
                (void)inflateEnd(&s->z);
        s->open = false;
        resha_free(s->out);
}

void rs_http_decoder_free(rs_http_decoder *d)
{
        if (!d)
                return;
        for (unsigned i = 0; i < d->count; i++)
                stage_close(&d->stages[i]);
        resha_free(d);
}

/* ---- zlib -------------------------------------------------------------------------------------------------------- */

static int zlib_open(struct stage *s, int window_bits)
{
        s->z = (z_stream){ .zalloc = z_alloc, .zfree = z_free };
        if (inflateInit2(&s->z, window_bits) != Z_OK)
                return -ENOMEM;
        s->open = true;
        s->state = RUN;
        return 0;
}

/* Inflates until input or stream ends; *used is how much input was taken. */
static int zlib_run(struct stage *s, struct outlet o, const unsigned char *data, size_t size, size_t *used)
{
        uInt piece = size > 1U << 30 ? 1U << 30 : (uInt)size;
        s->z.next_in = (unsigned char *)(uintptr_t)data; /* zlib reads it only */
        s->z.avail_in = piece;
        int z;
        do {
                s->z.next_out = s->out;
                s->z.avail_out = OUT_SIZE;
                z = inflate(&s->z, Z_NO_FLUSH);
                if (z == Z_MEM_ERROR)
                        return -ENOMEM;
                if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
                        return RESHA_HTTP_EENCODING;
                int rc = stage_push(o, s->out, OUT_SIZE - s->z.avail_out);
                if (rc < 0)
                        return rc;
        } while (z == Z_OK && (s->z.avail_in > 0 || s->z.avail_out == 0));
        if (z == Z_STREAM_END)
                s->state = END;
        *used = piece - s->z.avail_in;
        return 0;
}

/* gzip: after a member comes another one, or zero bytes (tape padding, as gzip(1) accepts), or nothing. *used: how many
 * zero bytes there are; all at once, since there may be millions. */
static int gzip_next(struct stage *s, const unsigned char *data, size_t size, size_t *used)
{
        if (s->state == END && data[0] == 0x1f) {
                if (inflateReset(&s->z) != Z_OK)
                        return RESHA_HTTP_EENCODING;
                s->state = RUN;
                return 0;
        }
        while (*used < size && data[*used] == 0)
                ++*used;
        s->state = PADDING;
        return *used > 0 ? 0 : RESHA_HTTP_EENCODING;
}

/* "deflate" is zlib's format in the standard and raw deflate in many servers: the two bytes of a zlib header are a
 * check sum of their own. The held first byte is decoded here, before `data`, whose first byte is the second one. */
static int deflate_start(struct stage *s, struct outlet o, const unsigned char *data)
{
        unsigned char first = s->first[0];
        bool zlib = (first & 0x0f) == 8 && ((unsigned)first << 8 | data[0]) % 31 == 0;
        size_t used;
        int rc = zlib_open(s, zlib ? MAX_WBITS : -MAX_WBITS);
        return rc < 0 ? rc : zlib_run(s, o, s->first, 1, &used);
}

static int zlib_step(struct stage *s, struct outlet o, const unsigned char *data, size_t size, size_t *used)
{
        int rc = 0;
        *used = 0;
        if (s->state == START && s->coding == GZIP) {
                rc = zlib_open(s, MAX_WBITS + 16);
        } else if (s->state == START && s->held == 0) {
                s->first[0] = data[0];
                s->held = 1;
                *used = 1;
                return 0;
        } else if (s->state == START) {
                rc = deflate_start(s, o, data);
        } else if (s->state != RUN && s->coding == GZIP) {
                rc = gzip_next(s, data, size, used);
        } else if (s->state != RUN) {
                return RESHA_HTTP_EENCODING; /* bytes after the end */
        }
        return rc < 0 || s->state != RUN ? rc : zlib_run(s, o, data, size, used);
}

/* ---- brotli ------------------------------------------------------------------------------------------------------ */

static int brotli_step(struct stage *s, struct outlet o, const unsigned char *data, size_t size, size_t *used)
{
        if (s->state == END)
                return RESHA_HTTP_EENCODING;
        if (!s->open) {
                s->br = BrotliDecoderCreateInstance(br_alloc, z_free, NULL);
                if (!s->br)
                        return -ENOMEM;
                s->open = true;
                s->state = RUN;
        }
        size_t left = size;
        BrotliDecoderResult r;
        do {
                unsigned char *out = s->out;
                size_t room = OUT_SIZE;
                r = BrotliDecoderDecompressStream(s->br, &left, &data, &room, &out, NULL);
                if (r == BROTLI_DECODER_RESULT_ERROR) {
                        BrotliDecoderErrorCode e = BrotliDecoderGetErrorCode(s->br);
                        bool memory = e <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
                                      e >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
                        return memory ? -ENOMEM : RESHA_HTTP_EENCODING;
                }
                int rc = stage_push(o, s->out, OUT_SIZE - room);
                if (rc < 0)
                        return rc;
        } while (r == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT);
        if (r == BROTLI_DECODER_RESULT_SUCCESS)
                s->state = END;
        *used = size - left;
        return 0;
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

/* Gives bytes to the next stage, or to the caller after the last one. Calls itself at most STAGES_MAX deep. */
static int stage_push(struct outlet o, const unsigned char *data, size_t size)
{
        if (size == 0)
                return 0;
        if (o.before == 0)
                return o.fn(o.arg, data, size);
        if (o.before < o.d->count) { /* from a stage, not from the wire */
                if (size > o.d->between)
                        return RESHA_HTTP_ETOO_LARGE;
                o.d->between -= size;
        }
        struct stage *s = &o.d->stages[--o.before];
        while (size > 0) {
                size_t used = 0;
                int rc =
                        s->coding == BROTLI ? brotli_step(s, o, data, size, &used) : zlib_step(s, o, data, size, &used);
                if (rc < 0)
                        return rc;
                data += used;
                size -= used;
        }
        return 0;
}

int rs_http_decoder_push(rs_http_decoder *d, const void *data, size_t size, rs_http_decoded_fn *fn, void *arg)
{
        return stage_push((struct outlet){ .d = d, .before = d->count, .fn = fn, .arg = arg }, data, size);
}

int rs_http_decoder_finish(const rs_http_decoder *d)
{
        for (unsigned i = 0; i < d->count; i++) {
                const struct stage *s = &d->stages[i];
                if (s->state == RUN || (s->state == START && s->held > 0))
                        return RESHA_HTTP_ETRUNCATED;
        }
        return 0;
}
