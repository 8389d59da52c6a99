/* SPDX-License-Identifier: MIT */
/* The buffers of an engine, and the BIO through which its SSL sees them.
 *
 *     below --- in ---> [start ... window ... end) --- BIO ---> SSL
 *     below <-- out --- [start ........... end)   <-- BIO ---- SSL
 *
 * The SSL is shown one record at a time: the window ends where the record does. So one call of it works on one record,
 * whatever the peer sends, and what it keeps inside is never half a record.
 *
 * Most connections of a server wait most of the time. What they wait with is `small`, in the engine; a block is
 * borrowed for what does not fit in there, and goes back when it is empty. Blocks that nobody has are the thread's: the
 * next one to be borrowed is the one that was used last, and is in the cache still.
 *
 * What the SSL wants to write must always fit: of half a record that was refused it would keep the rest, and nobody
 * else could make it write anything. After the handshake there is room by rule (engine.c); in the handshake the task
 * that makes it is the only one, and comes again. */

#include <string.h>

#include "tls.h"

#include <resha/alloc.h>

/* ---- blocks ---- */

struct rs_tls_block {
        struct rs_tls_block *next; /* in place of its bytes */
};

enum { LINE = 64 }; /* of a cache: a block starts with one, or copies of whole records take up to twice the time */

static struct rs_tls_block *block_new(void)
{
        char *whole = resha_malloc(LINE + RS_TLS_BLOCK);

        if (!whole)
                return NULL;
        char *block = whole + LINE - (uintptr_t)whole % LINE;
        ((char **)(void *)block)[-1] = whole; /* there is room: an allocation starts at a multiple of 16 */
        return (struct rs_tls_block *)(void *)block;
}

static void block_free(struct rs_tls_block *b)
{
        resha_free(((char **)(void *)b)[-1]);
}

static _Thread_local struct rs_tls_pool this_pool;

struct rs_tls_pool *rs_tls_pool_join(void)
{
        this_pool.engines++;
        return &this_pool;
}

void rs_tls_pool_leave(struct rs_tls_pool *pool)
{
        if (--pool->engines)
                return;
        while (pool->free) {
                struct rs_tls_block *b = pool->free;
                pool->free = b->next;
                block_free(b);
        }
        pool->count = 0;
}

int rs_tls_block_borrow(struct rs_tls_pool *pool, struct rs_tls_bytes *b)
{
        struct rs_tls_block *block = pool->free;

        if (block) {
                pool->free = block->next;
                pool->count--;
        } else if (!(block = block_new())) {
                return -ENOMEM;
        }
        size_t n = rs_tls_bytes_left(b);
        if (n)
                memcpy(block, b->data + b->start, n);
        *b = (struct rs_tls_bytes){ (char *)block, 0, n, RS_TLS_BLOCK };
        return 0;
}

void rs_tls_block_return(struct rs_tls_pool *pool, struct rs_tls_bytes *b)
{
        struct rs_tls_block *block = (struct rs_tls_block *)(void *)b->data;

        *b = (struct rs_tls_bytes){ 0 };
        if (pool->count == RS_TLS_FREE_MAX) {
                block_free(block);
                return;
        }
        block->next = pool->free;
        pool->free = block;
        pool->count++;
}

/* ---- the BIO ---- */

static int bio_read(BIO *bio, char *buf, int size)
{
        struct rs_tls_engine *e = BIO_get_data(bio);
        size_t n = e->window - e->in.start;

        BIO_clear_retry_flags(bio);
        if (n > (size_t)size)
                n = (size_t)size;
        if (n == 0) {
                BIO_set_retry_read(bio);
                return -1;
        }
        memcpy(buf, e->in.data + e->in.start, n);
        e->in.start += n;
        return (int)n;
}

static int bio_write(BIO *bio, const char *data, int size)
{
        struct rs_tls_engine *e = BIO_get_data(bio);

        BIO_clear_retry_flags(bio);
        if (!e->out.data && rs_tls_block_borrow(e->pool, &e->out) < 0) {
                e->no_block = true;
                return -1;
        }
        size_t n = e->out.size - e->out.end;
        if (n < (size_t)size && e->open)
                return -1;
        if (n > (size_t)size)
                n = (size_t)size;
        if (n == 0) {
                BIO_set_retry_write(bio);
                return -1;
        }
        memcpy(e->out.data + e->out.end, data, n);
        e->out.end += n;
        return (int)n;
}

static long bio_ctrl(BIO *bio, int command, __attribute__((unused)) long number, __attribute__((unused)) void *pointer)
{
        struct rs_tls_engine *e = BIO_get_data(bio);

        switch (command) {
        case BIO_CTRL_FLUSH:
        case BIO_CTRL_DUP: return 1;
        case BIO_CTRL_PENDING: return (long)(e->window - e->in.start);
        case BIO_CTRL_WPENDING: return (long)rs_tls_bytes_left(&e->out);
        default: return 0;
        }
}

/* One for the process, made by the first engine, and for good; a later one tries again if there was no memory. Of two
 * threads that make one at once the first counts: a lock could be another thread's in a process that is forked. */
static BIO_METHOD *the_method(void)
{
        static _Atomic(BIO_METHOD *) made;
        BIO_METHOD *m = atomic_load(&made), *first = NULL;

        if (m)
                return m;
        m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "resha");
        if (!m || BIO_meth_set_read(m, bio_read) != 1 || BIO_meth_set_write(m, bio_write) != 1 ||
            BIO_meth_set_ctrl(m, bio_ctrl) != 1) {
                BIO_meth_free(m);
                return NULL;
        }
        if (atomic_compare_exchange_strong(&made, &first, m))
                return m;
        BIO_meth_free(m);
        return first;
}

int rs_tls_bio_attach(struct rs_tls_engine *e)
{
        BIO_METHOD *method = the_method();
        BIO *bio = method ? BIO_new(method) : NULL;

        if (!bio)
                return rs_tls_fail(-ENOMEM, "a BIO");
        BIO_set_data(bio, e);
        BIO_set_init(bio, 1);
        SSL_set_bio(e->ssl, bio, bio);
        return 0;
}
