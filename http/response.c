/* SPDX-License-Identifier: MIT */
/* Answers, and the sink through which a transport builds one.
 *
 * The sink is where caps and checks of an answer live, so that they are the same over every transport: header bytes,
 * decoded body bytes, lengths that contradict each other, bodies that are too short, content codings. It runs inside
 * the callbacks of libcurl, on whichever task's stack drives it: so it never suspends, sets no error record, and
 * leaves its reason in the sink, where the requesting task finds it.
 *
 * An answer without large headers is two blocks of memory, the struct with room for a usual head and the body, whose
 * size is known from Content-Length most of the time. */

#include "response.h"

#include <resha/alloc.h>
#include <resha/error.h>

#include <string.h>
#include <strings.h>

enum { BODY_FIRST = 4096, BODY_TRUST = 1 << 20 };

/* ---- growing ----------------------------------------------------------------------------------------------------- */

static int refuse(resha_http_sink *sink, int code, const char *why)
{
        resha_http_sink_reason(sink, why);
        return code;
}

/* Room for `more` bytes of head. */
static int reserve_head(resha_response *r, size_t more)
{
        if (r->head_capacity - r->head_size >= more)
                return 0;
        size_t capacity = 2 * (r->head_size + more);
        bool was_inline = r->head == r->head_inline;
        char *head = resha_realloc(was_inline ? NULL : r->head, capacity);
        if (!head)
                return -ENOMEM;
        if (was_inline)
                memcpy(head, r->head_inline, r->head_size);
        r->head = head;
        r->head_capacity = capacity;
        return 0;
}

static int reserve_line(resha_response *r)
{
        if (r->line_count < r->line_capacity)
                return 0;
        size_t capacity = 2 * r->line_capacity;
        bool was_inline = r->lines == r->lines_inline;
        struct rs_http_line *lines = resha_realloc(was_inline ? NULL : r->lines, capacity * sizeof *lines);
        if (!lines)
                return -ENOMEM;
        if (was_inline)
                memcpy(lines, r->lines_inline, r->line_count * sizeof *lines);
        r->lines = lines;
        r->line_capacity = capacity;
        return 0;
}

/* Room for `more` bytes of body and the 0 behind them. */
static int reserve_body(resha_response *r, size_t more)
{
        size_t need = r->body_size + more + 1;
        if (need <= r->body_capacity)
                return 0;
        size_t capacity = r->body_capacity ? 2 * r->body_capacity : need;
        if (capacity < need)
                capacity = need;
        unsigned char *body = resha_realloc(r->body, capacity);
        if (!body)
                return -ENOMEM;
        r->body = body;
        r->body_capacity = capacity;
        return 0;
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

int rs_http_sink_init(resha_http_sink *sink, size_t max_body, size_t max_headers)
{
        resha_response *r = resha_malloc(sizeof *r); /* not cleared: most of it is room */
        if (!r)
                return -ENOMEM;
        memset(r, 0, offsetof(resha_response, lines_inline));
        r->head = r->head_inline;
        r->head_capacity = sizeof r->head_inline;
        r->lines = r->lines_inline;
        r->line_capacity = RS_HTTP_LINES_INLINE;
        *sink = (resha_http_sink){ .response = r, .max_body = max_body, .max_headers = max_headers };
        return 0;
}

int resha_http_sink_status(resha_http_sink *sink, int status)
{
        if (status < 100 || status > 999)
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "the status is not a number of three digits");
        if (sink->in_body)
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "a second status line follows the body");
        rs_http_sink_phase(sink, "reads the head");
        sink->response->status = status;
        sink->response->head_size = 0;
        sink->response->line_count = 0;
        sink->has_length = sink->chunked = sink->coded = false;
        return 0;
}

/* "5", or "5, 5": a list of equal ones is one. What is not a number is the transport's to refuse; here it
 * contradicts. */
static int take_length(resha_http_sink *sink, const char *value)
{
        for (const char *p = value; *p;) {
                uint64_t length = 0;
                p += strspn(p, " \t,");
                const char *start = p;
                for (; *p >= '0' && *p <= '9'; p++) {
                        if (length > (UINT64_MAX - 9) / 10)
                                return refuse(sink, RESHA_HTTP_EPROTOCOL, "its Content-Length is too large a number");
                        length = length * 10 + (uint64_t)(*p - '0');
                }
                if (p == start || (*p && !strchr(" \t,", *p)))
                        return refuse(sink, RESHA_HTTP_EPROTOCOL, "its Content-Length is not a number");
                if (sink->has_length && sink->length != length)
                        return refuse(sink, RESHA_HTTP_EPROTOCOL, "it has two Content-Length that differ");
                sink->has_length = true;
                sink->length = length;
        }
        return 0;
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t';
}

/* A line that starts with a blank continues the value before it, after one blank. */
static int continue_line(resha_http_sink *sink, const char *text, size_t size)
{
        resha_response *r = sink->response;
        if (r->line_count == 0)
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "its first header line continues nothing");
        int rc = reserve_head(r, size + 1);
        if (rc < 0)
                return rc;
        r->head[r->head_size - 1] = ' ';
        memcpy(r->head + r->head_size, text, size);
        r->head[r->head_size + size] = 0;
        r->head_size += size + 1;
        return 0;
}

/* What the library itself looks at. */
static int notice(resha_http_sink *sink, const char *name, size_t name_size, const char *value)
{
        switch (name_size) {
        case 14: return strcasecmp(name, "Content-Length") == 0 ? take_length(sink, value) : 0;
        case 16: sink->coded |= strcasecmp(name, "Content-Encoding") == 0; return 0;
        case 17: sink->chunked |= strcasecmp(name, "Transfer-Encoding") == 0; return 0;
        default: return 0;
        }
}

/* Copies the line and parts name and value in the copy. What has no colon is no header: as libcurl and browsers do. */
static int take_line(resha_http_sink *sink, const char *text, size_t size)
{
        resha_response *r = sink->response;
        const char *colon = memchr(text, ':', size);
        if (!colon || colon == text)
                return 0;
        if (r->line_count == r->line_capacity || r->head_capacity - r->head_size <= size) {
                int rc = reserve_line(r);
                if (rc >= 0)
                        rc = reserve_head(r, size + 1);
                if (rc < 0)
                        return rc;
        }
        char *name = r->head + r->head_size, *name_end = name + (colon - text), *value = name_end + 1,
             *end = name + size;
        memcpy(name, text, size);
        *end = 0;
        while (name_end > name && is_blank(name_end[-1]))
                name_end--;
        *name_end = 0;
        while (is_blank(*value))
                value++;
        r->lines[r->line_count++] = (struct rs_http_line){ (uint32_t)(name - r->head), (uint32_t)(value - r->head) };
        r->head_size += size + 1;
        return notice(sink, name, (size_t)(name_end - name), value);
}

int resha_http_sink_header(resha_http_sink *sink, const char *line, size_t size)
{
        sink->head_total += size;
        if (sink->head_total > sink->max_headers)
                return refuse(sink, RESHA_HTTP_EHEADERS_TOO_LARGE, "");
        if (sink->response->status == 0)
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "a header precedes the status line");
        if (sink->in_body)
                return 0; /* a trailer: counted, not kept */
        while (size > 0 && is_blank(line[size - 1]))
                size--;
        if (size == 0)
                return 0;
        if (memchr(line, 0, size))
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "a header holds a zero byte");
        if (!is_blank(*line))
                return take_line(sink, line, size);
        while (is_blank(*line)) {
                line++;
                size--;
        }
        return continue_line(sink, line, size);
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

static bool is_bodiless(const resha_http_sink *sink)
{
        int status = sink->response->status;
        return sink->head_request || status == 204 || status == 304;
}

static int refuse_size(resha_http_sink *sink)
{
        return refuse(sink, RESHA_HTTP_ETOO_LARGE, "");
}

static int choose_codings(resha_http_sink *sink)
{
        const resha_response *r = sink->response;
        for (size_t i = 0; i < r->line_count; i++) {
                if (strcasecmp(r->head + r->lines[i].name, "Content-Encoding") != 0)
                        continue;
                int rc = rs_http_decoder_add(&sink->decoder, r->head + r->lines[i].value);
                if (rc == RESHA_HTTP_EENCODING)
                        return refuse(sink, rc, "the body has a content coding that is not gzip, deflate or br");
                if (rc < 0)
                        return rc;
        }
        if (sink->decoder)
                rs_http_decoder_limit(sink->decoder, sink->max_body);
        return 0;
}

static int begin_body(resha_http_sink *sink)
{
        int rc = 0;
        if (sink->response->status == 0)
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "a body precedes the status line");
        sink->in_body = true;
        if (sink->coded && !sink->keep_coding)
                rc = choose_codings(sink);
        if (rc < 0 || sink->decoder)
                return rc;
        bool known = sink->has_length && !sink->chunked;
        if (known && sink->length > sink->max_body)
                return refuse_size(sink);
        /* A length is a promise of the server's: it is trusted with memory up to 1 MiB. */
        size_t first = known && sink->length < BODY_TRUST ? (size_t)sink->length : BODY_FIRST;
        return reserve_body(sink->response, first);
}

static int keep(void *arg, const void *data, size_t size)
{
        resha_http_sink *sink = arg;
        resha_response *r = sink->response;
        if (size > sink->max_body - r->body_size)
                return refuse_size(sink);
        int rc = reserve_body(r, size);
        if (rc < 0)
                return rc;
        memcpy(r->body + r->body_size, data, size);
        r->body_size += size;
        return 0;
}

int resha_http_sink_body(resha_http_sink *sink, const void *data, size_t size)
{
        if (size == 0 || is_bodiless(sink))
                return 0;
        int rc = sink->in_body ? 0 : begin_body(sink);
        if (rc < 0)
                return rc;
        sink->raw += size;
        rs_http_sink_phase(sink, "reads the body");
        if (!sink->decoder)
                return keep(sink, data, size);
        rc = rs_http_decoder_push(sink->decoder, data, size, keep, sink);
        return rc == RESHA_HTTP_EENCODING ? refuse(sink, rc, "the compressed body is corrupt") : rc;
}

/* ---- its end ----------------------------------------------------------------------------------------------------- */

void resha_http_sink_reason(resha_http_sink *sink, const char *text)
{
        size_t n = strnlen(text, sizeof sink->reason - 1);
        memcpy(sink->reason, text, n);
        sink->reason[n] = 0;
}

void resha_http_sink_facts(resha_http_sink *sink, const resha_http_timings *timings, bool reused)
{
        sink->response->timings = *timings;
        sink->response->reused = reused;
}

int rs_http_sink_finish(resha_http_sink *sink)
{
        if (sink->response->status < 200)
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "there is no status line");
        if (is_bodiless(sink))
                return 0;
        bool known = sink->has_length && !sink->chunked;
        if (known && sink->raw < sink->length)
                return refuse(sink, RESHA_HTTP_ETRUNCATED, "the body is shorter than its Content-Length");
        if (known && sink->raw > sink->length)
                return refuse(sink, RESHA_HTTP_EPROTOCOL, "the body is longer than its Content-Length");
        if (sink->decoder && rs_http_decoder_finish(sink->decoder) < 0)
                return refuse(sink, RESHA_HTTP_ETRUNCATED, "the compressed body ends too early");
        if (sink->response->body)
                sink->response->body[sink->response->body_size] = 0;
        return 0;
}

bool rs_http_sink_contradicts(const resha_http_sink *sink)
{
        return sink->has_length && sink->chunked;
}

void rs_http_sink_done(resha_http_sink *sink)
{
        resha_response_free(sink->response);
        rs_http_decoder_free(sink->decoder);
        sink->response = NULL;
        sink->decoder = NULL;
}

/* ---- what callers see -------------------------------------------------------------------------------------------- */

int resha_response_status(const resha_response *r)
{
        return r->status;
}

const char *resha_response_header(const resha_response *r, const char *name)
{
        for (size_t i = 0; i < r->line_count; i++) {
                const char *line = r->head + r->lines[i].name;
                bool maybe = ((line[0] ^ name[0]) & ~0x20) == 0; /* most are another name, and seen to be here */
                if (maybe && strcasecmp(line, name) == 0)
                        return r->head + r->lines[i].value;
        }
        return NULL;
}

size_t resha_response_header_count(const resha_response *r)
{
        return r->line_count;
}

bool resha_response_header_at(const resha_response *r, size_t i, const char **ret_name, const char **ret_value)
{
        if (i >= r->line_count)
                return false;
        *ret_name = r->head + r->lines[i].name;
        *ret_value = r->head + r->lines[i].value;
        return true;
}

const void *resha_response_body(const resha_response *r, size_t *ret_size)
{
        if (ret_size)
                *ret_size = r->body_size;
        return r->body ? (const char *)r->body : "";
}

const char *resha_response_url(const resha_response *r)
{
        return r->url;
}

const resha_http_timings *resha_response_timings(const resha_response *r)
{
        return &r->timings;
}

bool resha_response_reused(const resha_response *r)
{
        return r->reused;
}

unsigned resha_response_redirects(const resha_response *r)
{
        return r->redirects;
}

void resha_response_free(resha_response *r)
{
        if (!r)
                return;
        if (r->head != r->head_inline)
                resha_free(r->head);
        if (r->lines != r->lines_inline)
                resha_free(r->lines);
        resha_free(r->body);
        resha_free(r->url);
        resha_free(r);
}

void resha_response_freep(resha_response **r)
{
        resha_response_free(*r);
        *r = NULL;
}
