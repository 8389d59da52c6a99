/* SPDX-License-Identifier: MIT */

/* One URL on its way. A job is one allocation for its two spellings of the URL, which are the same bytes unless there
 * is a password in it. */

#include "job.h"

#include <string.h>

#include <resha/alloc.h>

#include "text.h"
#include "url.h"

struct job *job_new(enum job_kind kind, uint64_t number, const char *url, size_t size)
{
        bool may_be_private = memchr(url, '@', size) != NULL;
        struct job *j = resha_malloc(sizeof *j + (size + 1) * (may_be_private ? 2 : 1));
        if (!j)
                return NULL;
        *j = (struct job){ .kind = kind, .number = number };
        memcpy(j->data, url, size);
        j->data[size] = '\0';
        j->url = j->key = j->data;
        if (may_be_private) {
                TEXT(key);
                url_add_public(&key, url, size);
                if (key.failed) {
                        resha_free(j);
                        return NULL;
                }
                j->key = memcpy(j->data + size + 1, text_string(&key), key.len + 1);
        }
        return j;
}

void job_free(struct job *j)
{
        if (!j)
                return;
        resha_response_free(j->response);
        resha_free(j->etag);
        resha_free(j->last_modified);
        resha_free(j->error);
        resha_free(j);
}

void job_freep(struct job **j)
{
        job_free(*j);
        *j = NULL;
}

void job_drop(void *item)
{
        job_free(*(struct job **)item);
}

void job_fail(struct job *j, const char *text)
{
        resha_free(j->error);
        j->error = resha_strdup(text);
        j->outcome = JOB_FAILED;
}

bool job_is_old(const struct job *j)
{
        return j->outcome == JOB_ALREADY || (j->outcome == JOB_EMPTY && j->attempts == 0);
}

const char *job_body(const struct job *j, size_t *ret_size)
{
        *ret_size = 0;
        return j->response ? resha_response_body(j->response, ret_size) : "";
}
