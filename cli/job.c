/* SPDX-License-Identifier: MIT */

/* One URL on its way. A job is one allocation for its two spellings of the URL, which are the same bytes unless there
 * is a password in it, and for an answer of usual size. */

#include "job.h"

#include <string.h>

#include <resha/alloc.h>

#include "text.h"
#include "url.h"

struct job *job_new(enum job_kind kind, uint64_t number, const char *url, size_t size)
{
        bool may_be_private = memchr(url, '@', size) != NULL;
        size_t spellings = (size + 1) * (may_be_private ? 2 : 1);
        struct job *j = resha_malloc(sizeof *j + spellings + JOB_ROOM);
        if (!j)
                return NULL;
        *j = (struct job){ .kind = kind, .number = number };
        memcpy(j->data, url, size);
        j->data[size] = '\0';
        j->url = j->key = j->data;
        j->room = j->data + spellings;
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
        resha_response_free(j->answer.whole);
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

static size_t size_of(const char *text)
{
        return text ? strlen(text) + 1 : 0;
}

/* Moves a text of that size to *room. */
static void move(const char **text, size_t size, char **room)
{
        if (*text)
                *text = memcpy(*room, *text, size);
        *room += size;
}

void job_take_answer(struct job *j, resha_response *response)
{
        struct answer *a = &j->answer;
        *a = (struct answer){
                .content_type = resha_response_header(response, "content-type"),
                .etag = resha_response_header(response, "etag"),
                .last_modified = resha_response_header(response, "last-modified"),
                .whole = response,
        };
        a->body = resha_response_body(response, &a->size);
        size_t type = size_of(a->content_type), etag = size_of(a->etag), modified = size_of(a->last_modified);
        char *room = j->room;
        if (a->size >= JOB_ROOM || type + etag + modified + a->size >= JOB_ROOM)
                return;
        move(&a->content_type, type, &room);
        move(&a->etag, etag, &room);
        move(&a->last_modified, modified, &room);
        move(&a->body, a->size + 1, &room);
        a->whole = NULL;
        resha_response_free(response);
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
        *ret_size = j->answer.size;
        return j->answer.body ? j->answer.body : "";
}
