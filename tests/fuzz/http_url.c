/* SPDX-License-Identifier: MIT */
/* Any text as a URL: it is refused, or libcurl, which will send it, reads the same scheme, host and port in what is to
 * be sent. The part after a line end, if there is one, is a redirect from there. */

#include "fuzz.h"
#include "url.h"

#include <curl/curl.h>
#include <resha/alloc.h>
#include <resha/error.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char *part(CURLU *u, CURLUPart what)
{
        char *text = NULL;
        if (curl_url_get(u, what, &text, CURLU_DEFAULT_PORT) != CURLUE_OK || !text)
                abort();
        return text;
}

/* libcurl writes an IPv6 address as inet_ntop(3) does and keeps the zone apart; numbers that are an IPv4 address,
 * too. */
static void same_host(const rs_http_url *u, const char *host)
{
        if (strchr(u->host, ':') ? host[0] != '[' : strcasecmp(host, u->host) != 0)
                if (strspn(u->host, "0123456789abcdefx.") != strlen(u->host))
                        abort();
}

static void check(const rs_http_url *u)
{
        char shown[64];
        CURLU *c = curl_url();
        if (!c)
                abort();
        CURLUcode rc = curl_url_set(c, CURLUPART_URL, u->text, CURLU_PATH_AS_IS | CURLU_DISALLOW_USER);
        if (rc == CURLUE_OK) { /* it may be stricter: then nothing is sent */
                char *scheme = part(c, CURLUPART_SCHEME), *host = part(c, CURLUPART_HOST),
                     *port = part(c, CURLUPART_PORT);
                if (strcmp(scheme, u->https ? "https" : "http") != 0 || strtoul(port, NULL, 10) != u->port)
                        abort();
                same_host(u, host);
                curl_free(scheme);
                curl_free(host);
                curl_free(port);
        }
        curl_url_cleanup(c);
        if (strpbrk(u->text, "\r\n \t#") || !*u->host)
                abort();
        if (strlen(rs_http_url_show(u->text, shown, sizeof shown)) >= sizeof shown)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *why = NULL;
        rs_http_url u, next;
        char shown[48], *text = resha_malloc(size + 1);
        if (!text)
                abort();
        memcpy(text, data, size);
        text[size] = '\0';
        char *location = strchr(text, '\n');
        if (location)
                *location++ = '\0';
        rs_http_url_show(text, shown, sizeof shown);
        int rc = rs_http_url_parse(text, &u, &why);
        if (rc < 0 && (rc != RESHA_HTTP_EURL || !why))
                abort();
        if (rc == 0) {
                check(&u);
                if (location && rs_http_url_join(u.text, location, &next, &why) == 0) {
                        check(&next);
                        rs_http_url_done(&next);
                }
                rs_http_url_done(&u);
        }
        resha_free(text);
        return 0;
}
