/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_RESPONSE_H
#define RS_HTTP_RESPONSE_H

/* An answer while it is being built (the sink that a transport fills) and afterwards. */

#include "decode.h"

#include <resha/http.h>
#include <resha/shown.h>

/* The rooms are such that the whole is below the size (1,032 bytes) up to which glibc keeps blocks at hand. */
enum { RS_HTTP_REASON_MAX = 120, RS_HTTP_HEAD_INLINE = 640, RS_HTTP_LINES_INLINE = 16 };

/* Where a header's name and value are in the head. */
struct rs_http_line {
        uint32_t name, value;
};

struct resha_response {
        int status;
        unsigned redirects;
        bool reused;
        resha_http_timings timings;
        char *url; /* owned */

        char *head; /* "name\0value\0name\0value\0..."; the inline room or the heap */
        size_t head_size, head_capacity;
        struct rs_http_line *lines; /* the inline room or the heap */
        size_t line_count, line_capacity;

        unsigned char *body; /* with a 0 behind it; NULL while empty */
        size_t body_size, body_capacity;

        struct rs_http_line lines_inline[RS_HTTP_LINES_INLINE];
        char head_inline[RS_HTTP_HEAD_INLINE];
};

struct resha_http_sink {
        resha_response *response; /* what is being built; owned until taken */
        rs_http_decoder *decoder;
        resha_doing *doing; /* of the call; NULL: none. Set before init, which leaves it */
        size_t max_body, max_headers;
        bool head_request; /* HEAD: a length without a body is fine */
        bool keep_coding;

        size_t head_total; /* bytes of header lines so far, of all status lines */
        uint64_t raw;      /* bytes of the body as they came */
        uint64_t length;   /* Content-Length, if has_length */
        bool has_length;
        bool chunked; /* Transfer-Encoding is there: it counts, the length does not */
        bool coded;   /* there is a Content-Encoding */
        bool in_body; /* no more headers: what comes is a trailer */
        char reason[RS_HTTP_REASON_MAX];
};

/* Begins an answer. 0 or -ENOMEM. */
int rs_http_sink_init(resha_http_sink *sink, size_t max_body, size_t max_headers);

/* What the attempt does now; static. */
static inline void rs_http_sink_phase(resha_http_sink *sink, const char *phase)
{
        if (sink && sink->doing)
                sink->doing->phase = phase;
}

/* The transport has delivered the whole answer: last checks. 0 or a code, with a reason. */
int rs_http_sink_finish(resha_http_sink *sink);

/* Both Content-Length and Transfer-Encoding: the connection must not be used again. */
bool rs_http_sink_contradicts(const resha_http_sink *sink);

/* Releases what is left of it. */
void rs_http_sink_done(resha_http_sink *sink);

#endif
