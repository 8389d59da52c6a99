/* SPDX-License-Identifier: MIT */
#ifndef RS_REQUEST_H
#define RS_REQUEST_H

/* What a client of the inspector asks: one line. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
        RS_REQUEST_MAX = 256,           /* bytes of the line, its end not counted */
        RS_REQUEST_MS_MAX = 600 * 1000, /* of sample and trace */
};

enum rs_request_kind { RS_REQUEST_SNAPSHOT, RS_REQUEST_STATS, RS_REQUEST_SAMPLE, RS_REQUEST_TRACE };

struct rs_request {
        enum rs_request_kind kind;
        bool stacks;         /* snapshot: and frames */
        bool loops;          /* snapshot: of the loops alone, without their tasks */
        uint32_t loop, task; /* snapshot: of that task alone; 0: of all */
        uint32_t ms;         /* sample, trace */
};

/* A line without its end, of any bytes. NULL; or what is wrong with it, and *ret is as it was. */
const char *rs_request_parse(const char *line, size_t n, struct rs_request *ret);

#endif
