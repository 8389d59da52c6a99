/* SPDX-License-Identifier: MIT */

/* Names of the statuses that a fetch meets (RFC 9110, RFC 6585, and two of proxies). */

#include "status.h"

#include <string.h>

#include <resha/error.h>
#include <resha/http.h>

static const struct {
        int status;
        const char *name;
} names[] = {
        { 300, "Multiple Choices" },
        { 301, "Moved Permanently" },
        { 302, "Found" },
        { 303, "See Other" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 308, "Permanent Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 402, "Payment Required" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 407, "Proxy Authentication Required" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 411, "Length Required" },
        { 412, "Precondition Failed" },
        { 413, "Content Too Large" },
        { 414, "URI Too Long" },
        { 415, "Unsupported Media Type" },
        { 416, "Range Not Satisfiable" },
        { 417, "Expectation Failed" },
        { 421, "Misdirected Request" },
        { 422, "Unprocessable Content" },
        { 425, "Too Early" },
        { 426, "Upgrade Required" },
        { 428, "Precondition Required" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 451, "Unavailable For Legal Reasons" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 505, "HTTP Version Not Supported" },
        { 507, "Insufficient Storage" },
        { 511, "Network Authentication Required" },
        { 522, "Connection Timed Out" },
        { 524, "A Timeout Occurred" },
};

void status_add(struct text *t, int status)
{
        text_printf(t, "%d", status);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (names[i].status == status)
                        text_printf(t, " %s", names[i].name);
}

void status_add_error(struct text *t, int rc)
{
        const char *text = resha_error_of(rc)->text;
        const char *rest = strncmp(text, "GET ", 4) == 0 ? strstr(text, ": ") : NULL;
        const char *shown = rest && rest[2] ? rest + 2 : text;
        const char *remedy = strstr(shown, "; raise max_"), *authority = strstr(shown, "; a private authority");
        remedy = remedy ? remedy : authority;
        text_add(t, shown, remedy ? (size_t)(remedy - shown) : strlen(shown));
        if (rc == RESHA_HTTP_ETOO_LARGE)
                text_puts(t, "; --max-body sets the limit");
        if (authority)
                text_puts(t, "; who is trusted is the system's matter: update-ca-certificates(8)");
}
