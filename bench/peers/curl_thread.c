/* SPDX-License-Identifier: MIT */
/* curl_thread LIST DATABASE CONCURRENCY: the bare loop on libcurl, which copies answers into batches of 500; a thread
 * writes each batch to SQLite in one transaction. Batches are used again; when all are full, the loop waits. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "curl_loop.h"
#include "rows.h"

enum { BATCHES = 3 };

/* Answers whose texts lie in `text`, as offsets until the batch is full: it may move while it grows. */
struct batch {
        struct answer answers[ROWS_BATCH];
        size_t count, used, room;
        char *text;
        struct batch *next;
};

static struct batch batches[BATCHES], *filling, *empty, *full, **full_end = &full;
static int ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static struct batch *take_empty(void)
{
        pthread_mutex_lock(&lock);
        while (!empty)
                pthread_cond_wait(&changed, &lock);
        struct batch *b = empty;
        empty = b->next;
        pthread_mutex_unlock(&lock);
        b->count = b->used = 0;
        b->next = NULL;
        return b;
}

static void give(struct batch *b, int last)
{
        pthread_mutex_lock(&lock);
        if (b) {
                *full_end = b;
                full_end = &b->next;
        }
        ended = last;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

/* Copies a text into the batch; its offset plus 1, as a pointer: NULL stays NULL. */
static const char *keep(struct batch *b, const char *text, size_t size)
{
        if (!text)
                return NULL;
        if (b->used + size + 1 > b->room) {
                b->room = (b->used + size + 1) * 2;
                b->text = realloc(b->text, b->room);
                if (!b->text)
                        exit(1);
        }
        memcpy(b->text + b->used, text, size);
        b->text[b->used + size] = 0;
        b->used += size + 1;
        return (const char *)(b->used - size);
}

static const char *keep_string(struct batch *b, const char *text)
{
        return keep(b, text, text ? strlen(text) : 0);
}

static void store(const struct answer *a)
{
        struct batch *b = filling = filling ? filling : take_empty();
        struct answer *copy = &b->answers[b->count++];

        *copy = *a; /* the URL stays where it is */
        copy->content_type = keep_string(b, a->content_type);
        copy->etag = keep_string(b, a->etag);
        copy->last_modified = keep_string(b, a->last_modified);
        copy->error = keep_string(b, a->error);
        copy->body = keep(b, a->body, a->size);
        if (b->count == ROWS_BATCH) {
                give(b, 0);
                filling = NULL;
        }
}

static const char *found(const struct batch *b, const char *offset)
{
        return offset ? b->text + (size_t)offset - 1 : NULL;
}

static void write_batch(struct batch *b)
{
        rows_begin();
        for (size_t i = 0; i < b->count; i++) {
                struct answer *a = &b->answers[i];

                a->content_type = found(b, a->content_type);
                a->etag = found(b, a->etag);
                a->last_modified = found(b, a->last_modified);
                a->error = found(b, a->error);
                a->body = found(b, a->body);
                rows_add(a);
        }
        rows_commit();
}

static void *writer(void *path)
{
        rows_open(path);
        pthread_mutex_lock(&lock);
        for (;;) {
                while (!full && !ended)
                        pthread_cond_wait(&changed, &lock);
                struct batch *b = full;
                if (!b)
                        break;
                full = b->next;
                if (!full)
                        full_end = &full;
                pthread_mutex_unlock(&lock);
                write_batch(b);
                pthread_mutex_lock(&lock);
                b->next = empty;
                empty = b;
                pthread_cond_broadcast(&changed);
        }
        pthread_mutex_unlock(&lock);
        rows_close();
        return NULL;
}

int main(int argc, char **argv)
{
        pthread_t thread;
        size_t n;

        if (argc != 4)
                return 2;
        char **urls = curl_loop_urls(argv[1], &n);
        for (int i = 0; i < BATCHES; i++) {
                batches[i].next = empty;
                empty = &batches[i];
        }
        if (pthread_create(&thread, NULL, writer, argv[2]) != 0)
                return 1;
        curl_loop_run(urls, n, (unsigned)strtoul(argv[3], NULL, 10), store);
        give(filling, 1);
        pthread_join(thread, NULL);
        return 0;
}
