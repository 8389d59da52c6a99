/* SPDX-License-Identifier: MIT */
/* The headers of an attempt in libcurl's form. Those that it would add on its own are ruled out: what is sent is what
 * the session decided. */

#include "curl.h"
#include "headers.h"

#include <curl/curl.h>

#include <resha/alloc.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int append(struct curl_slist **list, const char *name, const char *value)
{
        char small[512], *line = small;
        size_t size = strlen(name) + (value ? strlen(value) : 0) + 3;
        if (size > sizeof small)
                line = resha_malloc(size);
        if (!line)
                return -ENOMEM;
        /* libcurl's grammar: "Name;" is an empty value, "Name:" none at all, not even its own. */
        if (!value)
                snprintf(line, size, "%s:", name);
        else if (!value[strspn(value, " \t")])
                snprintf(line, size, "%s;", name);
        else
                snprintf(line, size, "%s: %s", name, value);
        struct curl_slist *longer = curl_slist_append(*list, line);
        if (line != small)
                resha_free(line);
        if (!longer)
                return -ENOMEM;
        *list = longer;
        return 0;
}

bool rs_http_sends_body(const resha_http_attempt *a)
{
        return a->has_body || rs_http_method_is(a->method, "POST");
}

int rs_http_curl_headers(const resha_http_attempt *a, struct curl_slist **ret_list)
{
        static const char *const own[] = { "Accept", "Content-Type", "Expect" }; /* the latter two with a body only */
        struct curl_slist *list = NULL;
        int rc = 0;
        for (size_t i = 0; i < a->header_count && rc >= 0; i++)
                rc = append(&list, a->headers[i].name, a->headers[i].value);
        for (size_t k = 0; k < (rs_http_sends_body(a) ? 3 : 1) && rc >= 0; k++) {
                size_t i = 0;
                while (i < a->header_count && strcasecmp(a->headers[i].name, own[k]) != 0)
                        i++;
                if (i == a->header_count)
                        rc = append(&list, own[k], NULL);
        }
        if (rc < 0)
                curl_slist_free_all(list);
        else
                *ret_list = list;
        return rc;
}
