/* SPDX-License-Identifier: MIT */
#ifndef RS_DWARF_H
#define RS_DWARF_H

/* Reading the numbers and texts of DWARF: each read is within the bounds, or `bad` is set and nothing more is read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rs_reader {
        const uint8_t *at, *end;
        bool bad;
};

static inline void rs_read_skip(struct rs_reader *r, uint64_t n)
{
        if (n > (uint64_t)(r->end - r->at)) {
                r->bad = true;
                n = (uint64_t)(r->end - r->at);
        }
        r->at += n;
}

/* size: at most 8. */
static inline uint64_t rs_read_fixed(struct rs_reader *r, unsigned size)
{
        const uint8_t *from = r->at;
        uint64_t v = 0;

        rs_read_skip(r, size);
        for (unsigned i = 0; i < size && i < 8 && !r->bad; i++)
                v |= (uint64_t)from[i] << 8 * i;
        return v;
}

static inline int64_t rs_read_signed(struct rs_reader *r, unsigned size)
{
        unsigned above = 64 - 8 * size;

        return (int64_t)(rs_read_fixed(r, size) << above) >> above;
}

/* Of any length; bits above the 64th are dropped. */
static inline uint64_t rs_read_leb(struct rs_reader *r, bool is_signed)
{
        uint64_t v = 0;
        unsigned shift = 0;
        uint8_t byte;

        do {
                byte = (uint8_t)rs_read_fixed(r, 1);
                if (shift < 64) {
                        v |= (uint64_t)(byte & 0x7f) << shift;
                        shift += 7;
                }
        } while (byte & 0x80 && !r->bad);
        if (is_signed && shift < 64 && byte & 0x40)
                v |= ~UINT64_C(0) << shift;
        return v;
}

static inline uint64_t rs_read_uleb(struct rs_reader *r)
{
        return rs_read_leb(r, false);
}

static inline int64_t rs_read_sleb(struct rs_reader *r)
{
        return (int64_t)rs_read_leb(r, true);
}

static inline const char *rs_read_string(struct rs_reader *r)
{
        const char *s = (const char *)r->at;
        const uint8_t *end = r->at < r->end ? memchr(r->at, 0, (size_t)(r->end - r->at)) : NULL;

        r->bad |= !end;
        r->at = end ? end + 1 : r->end;
        return end ? s : "";
}

#endif
