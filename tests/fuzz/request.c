/* SPDX-License-Identifier: MIT */
/* Any bytes as a request to the inspector: refused with a text, or exactly one of the requests that there are, which
 * written out is the same request. And as a text in a line of JSON: one line of printable ASCII and UTF-8, or none
 * where it does not fit. */

#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/alloc.h>

#include "base/json.h"
#include "inspect/request.h"

static void check(bool ok)
{
        if (!ok)
                abort();
}

static void write_out(const struct rs_request *r, char *line, size_t size)
{
        char task[40] = "";

        if (r->task)
                snprintf(task, sizeof task, " task=%" PRIu32 ".%" PRIu32, r->loop, r->task);
        switch (r->kind) {
        case RS_REQUEST_SNAPSHOT:
                snprintf(line, size, "snapshot%s%s%s", r->loops ? " loops" : "", r->stacks ? " stacks" : "", task);
                break;
        case RS_REQUEST_STATS: snprintf(line, size, "stats"); break;
        case RS_REQUEST_SAMPLE: snprintf(line, size, "sample %" PRIu32, r->ms); break;
        case RS_REQUEST_TRACE: snprintf(line, size, "trace %" PRIu32, r->ms); break;
        }
}

static void try_request(const char *data, size_t size)
{
        struct rs_request r = { 0 }, again = { 0 };
        char line[RS_REQUEST_MAX + 1];

        const char *wrong = rs_request_parse(data, size, &r);
        if (wrong) {
                check(strlen(wrong) > 0);
                return;
        }
        bool timed = r.kind == RS_REQUEST_SAMPLE || r.kind == RS_REQUEST_TRACE;
        check(size <= RS_REQUEST_MAX && !memchr(data, '\0', size));
        check(timed ? r.ms >= 1 && r.ms <= RS_REQUEST_MS_MAX : r.ms == 0);
        check(!r.task == !r.loop && (r.kind == RS_REQUEST_SNAPSHOT || (!r.task && !r.stacks && !r.loops)));
        write_out(&r, line, sizeof line);
        check(!rs_request_parse(line, strlen(line), &again) && memcmp(&r, &again, sizeof r) == 0);
}

/* In room for some of it, or all. */
static void try_text(const char *text, size_t room_size)
{
        char *room = resha_malloc(room_size ? room_size : 1);
        struct rs_json j;

        check(room != NULL);
        rs_json_init(&j, room, room_size);
        rs_json_begin(&j, "note");
        rs_json_text(&j, "text", text);
        if (rs_json_end(&j)) {
                check(memchr(room, '\n', (size_t)(j.at - room)) == j.at - 1);
                for (const char *at = room; at < j.at - 1; at++)
                        check((unsigned char)*at >= ' ' && *at != 0x7f);
        } else {
                check(j.at == room);
        }
        resha_free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *copy = resha_malloc(size + 1);

        check(copy != NULL);
        if (size)
                memcpy(copy, data, size);
        try_request(copy, size);
        copy[size] = '\0';
        try_text(copy, 6 * size + 64);
        try_text(copy, size);
        resha_free(copy);
        return 0;
}
