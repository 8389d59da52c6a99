/* SPDX-License-Identifier: MIT */

/* Headers of -H. A name is a token (RFC 9110), a value has no control character but tab: with a line break in it, more
 * than one header would be sent. Messages name the header, never its value. */

#include "header.h"

#include <string.h>

#include <resha/error.h>

#include "list.h"

static bool is_token(const char *s, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                char c = s[i];
                bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
                if (!letter && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
                        return false;
        }
        return size > 0;
}

static bool is_value(const char *s)
{
        for (; *s; s++)
                if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
                        return false;
        return true;
}

static int add(struct options *o, const char *spec, struct text *problem)
{
        const char *colon = strchr(spec, ':');
        size_t name_size = colon ? (size_t)(colon - spec) : 0;
        if (!is_token(spec, name_size)) {
                text_puts(problem, "-H: 'NAME: VALUE' is needed, or @FILE with one a line");
                return -EINVAL;
        }
        if (strncasecmp(spec, "Content-Length:", 15) == 0 || strncasecmp(spec, "Transfer-Encoding:", 18) == 0) {
                text_printf(problem, "-H: '%.*s' follows from the request and cannot be set", (int)name_size, spec);
                return -EINVAL;
        }
        const char *value = colon + 1 + strspn(colon + 1, " \t");
        if (!is_value(value)) {
                text_printf(problem, "-H: the value of '%.*s' has a control character in it", (int)name_size, spec);
                return -EINVAL;
        }
        if (o->n_headers == MAX_HEADERS) {
                text_printf(problem, "-H: more than %d headers", MAX_HEADERS);
                return -EINVAL;
        }
        char *name = options_keep(o, name_size + 1 + strlen(value) + 1);
        if (!name)
                return -ENOMEM;
        memcpy(name, spec, name_size);
        name[name_size] = '\0';
        char *copy = name + name_size + 1;
        memcpy(copy, value, strlen(value) + 1);
        o->headers[o->n_headers++] = (resha_http_header){ .name = name, .value = copy };
        return 0;
}

static int add_file(struct options *o, const char *path, struct text *problem)
{
        struct list *l RESHA_CLEANUP(list_freep) = NULL;
        const char *line;
        size_t size;
        unsigned long number;
        int rc = list_open(path, &l);
        while (rc >= 0 && (rc = list_next(l, true, &line, &size, &number)) > 0) {
                if (memchr(line, '\0', size)) {
                        text_printf(problem, "-H @%s: line %lu has a 0 byte in it", path, number);
                        return -EINVAL;
                }
                if ((rc = add(o, line, problem)) < 0)
                        return rc;
        }
        if (rc < 0 && !problem->len)
                text_printf(problem, "-H @%s: %s", path, resha_strerror(rc));
        return rc;
}

int header_add(struct options *o, const char *spec, struct text *ret_problem)
{
        return spec[0] == '@' ? add_file(o, spec + 1, ret_problem) : add(o, spec, ret_problem);
}

void header_wipe(char *spec)
{
        char *colon = spec[0] == '@' ? NULL : strchr(spec, ':');
        for (char *p = colon ? colon + 1 : NULL; p && *p; p++)
                *p = '*';
}
