/* SPDX-License-Identifier: MIT */
/* Content codings: whole, cut, joined, corrupt, in pieces of every size. */

#include "test.h"

#include "decode.h"

#include <resha/alloc.h>
#include <resha/error.h>

#include <string.h>
#include <zlib.h>

enum { PLAIN = 5000 };

/* "resha " and 1994 times "a", as brotli */
static const unsigned char brotli[] = { 0x1b, 0xcf, 0x07, 0x00, 0x04, 0x1c, 0x72, 0xa4, 0x67, 0x3d,
                                        0xb4, 0xc5, 0x15, 0xb6, 0x05, 0x72, 0xf0, 0xe5, 0x15, 0x01 };

struct out {
        unsigned char data[4 * PLAIN];
        size_t size, cap;
};

static int take(void *arg, const void *data, size_t size)
{
        struct out *o = arg;
        if (size > o->cap - o->size)
                return RESHA_HTTP_ETOO_LARGE;
        memcpy(o->data + o->size, data, size);
        o->size += size;
        return 0;
}

static unsigned char plain[PLAIN];

static void make_plain(void)
{
        uint32_t x = 1;
        for (size_t i = 0; i < PLAIN; i++) {
                x = x * 1664525 + 1013904223;
                plain[i] = (unsigned char)(i % 3 ? 'a' : x >> 24);
        }
}

/* window_bits as zlib's: 31 gzip, 15 zlib, -15 raw */
static size_t pack(int window_bits, const void *data, size_t size, unsigned char *out, size_t room)
{
        z_stream z = { .next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)size };
        z.next_out = out;
        z.avail_out = (uInt)room;
        ASSERT_EQ(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ASSERT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
        size_t n = z.total_out;
        deflateEnd(&z);
        return n;
}

/* Decodes in pieces; the result of the first call that failed, or of finish. */
static int decode(const char *coding, const unsigned char *data, size_t size, size_t piece, struct out *o)
{
        rs_http_decoder *d = NULL;
        int rc = rs_http_decoder_add(&d, coding);
        o->size = 0;
        o->cap = sizeof o->data;
        ASSERT_TRUE(d != NULL || rc < 0);
        for (size_t i = 0; rc >= 0 && i < size; i += piece)
                rc = rs_http_decoder_push(d, data + i, size - i < piece ? size - i : piece, take, o);
        if (rc >= 0)
                rc = rs_http_decoder_finish(d);
        rs_http_decoder_free(d);
        return rc;
}

static void check_whole_and_cut(const char *coding, int window_bits)
{
        static struct out o;
        unsigned char packed[2 * PLAIN];
        make_plain();
        size_t n = pack(window_bits, plain, PLAIN, packed, sizeof packed);
        for (size_t piece = 1; piece <= n; piece = piece < 8 ? piece + 1 : piece * 3) {
                ASSERT_EQ(decode(coding, packed, n, piece, &o), 0);
                ASSERT_EQ(o.size, PLAIN);
                ASSERT_TRUE(memcmp(o.data, plain, PLAIN) == 0);
        }
        for (size_t cut = 1; cut < n; cut += cut < 40 ? 1 : 37) /* the trailer counts too */
                ASSERT_EQ(decode(coding, packed, n - cut, n, &o), RESHA_HTTP_ETRUNCATED);
        ASSERT_EQ(decode(coding, packed, 0, 1, &o), 0); /* no byte at all is an empty body */
        packed[n] = 'x';
        ASSERT_EQ(decode(coding, packed, n + 1, n + 1, &o), RESHA_HTTP_EENCODING);
}

TEST(gzip_whole_and_cut)
{
        check_whole_and_cut("gzip", 31);
}
TEST(x_gzip_is_gzip)
{
        check_whole_and_cut("X-GZip", 31);
}
TEST(deflate_as_zlib)
{
        check_whole_and_cut("deflate", 15);
}
TEST(deflate_raw)
{
        check_whole_and_cut("deflate", -15);
}

TEST(gzip_of_several_members)
{
        static struct out o;
        unsigned char packed[2 * PLAIN];
        size_t n = 0;
        for (int i = 0; i < 4; i++)
                n += pack(31, i == 2 ? "" : "member ", i == 2 ? 0 : 7, packed + n, sizeof packed - n);
        for (size_t piece = 1; piece <= n; piece++) {
                ASSERT_EQ(decode("gzip", packed, n, piece, &o), 0);
                o.data[o.size] = 0;
                ASSERT_STR((char *)o.data, "member member member ");
        }
        ASSERT_EQ(decode("gzip", packed, n - 1, 5, &o), RESHA_HTTP_ETRUNCATED);
        memset(packed + n, 0, 512); /* padding of tapes */
        ASSERT_EQ(decode("gzip", packed, n + 512, 100, &o), 0);
        packed[n + 512] = 0x1f;
        ASSERT_EQ(decode("gzip", packed, n + 513, 100, &o), RESHA_HTTP_EENCODING);
}

TEST(gzip_corrupt)
{
        static struct out o;
        unsigned char packed[2 * PLAIN];
        make_plain();
        size_t n = pack(31, plain, PLAIN, packed, sizeof packed);
        packed[n - 6] ^= 1; /* the check sum */
        ASSERT_EQ(decode("gzip", packed, n, 1000, &o), RESHA_HTTP_EENCODING);
        ASSERT_EQ(decode("gzip", (const unsigned char *)"plain text", 10, 10, &o), RESHA_HTTP_EENCODING);
        ASSERT_EQ(decode("br", (const unsigned char *)"\xff\xff\xff\xff\xff", 5, 5, &o), RESHA_HTTP_EENCODING);
}

TEST(brotli_whole_and_cut)
{
        static struct out o;
        unsigned char more[sizeof brotli + 1];
        for (size_t piece = 1; piece <= sizeof brotli; piece++) {
                ASSERT_EQ(decode("br", brotli, sizeof brotli, piece, &o), 0);
                ASSERT_EQ(o.size, 2000);
                ASSERT_TRUE(memcmp(o.data, "resha aaaa", 10) == 0 && o.data[1999] == 'a');
        }
        for (size_t n = 1; n < sizeof brotli; n++)
                ASSERT_EQ(decode("br", brotli, n, n, &o), RESHA_HTTP_ETRUNCATED);
        memcpy(more, brotli, sizeof brotli);
        more[sizeof brotli] = 0;
        ASSERT_EQ(decode("br", more, sizeof more, 100, &o), RESHA_HTTP_EENCODING);
}

TEST(codings_one_upon_another)
{
        static struct out o;
        unsigned char inner[2 * PLAIN], outer[3 * PLAIN];
        make_plain();
        size_t n = pack(15, plain, PLAIN, inner, sizeof inner);
        size_t m = pack(31, inner, n, outer, sizeof outer);
        for (size_t piece = 1; piece < 100; piece += 7) {
                ASSERT_EQ(decode("deflate, identity, gzip", outer, m, piece, &o), 0);
                ASSERT_EQ(o.size, PLAIN);
                ASSERT_TRUE(memcmp(o.data, plain, PLAIN) == 0);
        }
        ASSERT_EQ(decode("gzip, deflate", outer, m, 50, &o), RESHA_HTTP_EENCODING);
}

TEST(codings_unknown_or_blank)
{
        rs_http_decoder *d = NULL;
        ASSERT_EQ(rs_http_decoder_add(&d, ""), 0);
        ASSERT_EQ(rs_http_decoder_add(&d, " , identity ,\t"), 0);
        ASSERT_TRUE(d == NULL);
        ASSERT_EQ(rs_http_decoder_add(&d, "zstd"), RESHA_HTTP_EENCODING);
        ASSERT_EQ(rs_http_decoder_add(&d, "gzip gzip"), RESHA_HTTP_EENCODING);
        ASSERT_EQ(rs_http_decoder_add(&d, "gzip,gzip,gzip,gzip"), 0);
        ASSERT_EQ(rs_http_decoder_add(&d, "gzip"), RESHA_HTTP_EENCODING); /* a chain without an end */
        rs_http_decoder_free(d);
}

/* A bomb: 1 MiB of zeros is a kilobyte. What takes the output stops it within one buffer of its cap. */
TEST(output_comes_in_bounded_pieces)
{
        static struct out o;
        static unsigned char zeros[1 << 20], packed[8192];
        rs_http_decoder *d = NULL;
        size_t n = pack(31, zeros, sizeof zeros, packed, sizeof packed);
        ASSERT_EQ(rs_http_decoder_add(&d, "gzip"), 0);
        o.cap = sizeof o.data;
        ASSERT_EQ(rs_http_decoder_push(d, packed, n, take, &o), RESHA_HTTP_ETOO_LARGE);
        ASSERT_TRUE(o.size > 0 && o.size <= sizeof o.data);
        rs_http_decoder_free(d);
}

/* A bomb that gives nothing to the caller: gigabytes of zero bytes, which are padding to the gzip inside. */
TEST(what_codings_give_to_one_another_is_bounded)
{
        static unsigned char zeros[4 << 20], packed[2][16384];
        static const unsigned char empty[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0 };
        rs_http_decoder *d = NULL;
        static struct out o;
        memcpy(zeros, empty, sizeof empty);
        size_t n = pack(31, zeros, sizeof zeros, packed[0], sizeof packed[0]);
        size_t m = pack(31, packed[0], n, packed[1], sizeof packed[1]);
        ASSERT_EQ(decode("gzip, gzip, gzip", packed[1], m, m, &o), 0); /* no limit */
        ASSERT_EQ(o.size, 0);
        ASSERT_EQ(rs_http_decoder_add(&d, "gzip, gzip, gzip"), 0);
        rs_http_decoder_limit(d, 1000);
        ASSERT_EQ(rs_http_decoder_push(d, packed[1], m, take, &o), RESHA_HTTP_ETOO_LARGE);
        rs_http_decoder_free(d);
}
