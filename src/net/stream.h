/* SPDX-License-Identifier: MIT */
#ifndef RS_STREAM_H
#define RS_STREAM_H

/* The inside of streams, for the files of this folder. */

#include <errno.h>
#include <string.h>

#include <resha/alloc.h>
#include <resha/stream.h>

#include "core/core.h"

struct rs_server;

/* Bytes that a stream holds: [start, end) of data. */
struct rs_span {
        char *data; /* NULL until it is needed */
        size_t capacity, start, end;
};

static inline size_t rs_span_size(const struct rs_span *b)
{
        return b->end - b->start;
}

/* Room for `capacity` bytes from data on; what is there stays where it is. 0 or -ENOMEM. */
static inline int rs_span_grow(struct rs_span *b, size_t capacity)
{
        char *data = capacity > b->capacity ? resha_realloc(b->data, capacity) : b->data;

        if (!data && capacity)
                return -ENOMEM;
        b->data = data;
        b->capacity = capacity > b->capacity ? capacity : b->capacity;
        return 0;
}

/* The bytes to the front of data. */
static inline void rs_span_pack(struct rs_span *b)
{
        if (b->start)
                memmove(b->data, b->data + b->start, rs_span_size(b));
        b->end -= b->start;
        b->start = 0;
}

static inline void rs_span_skip(struct rs_span *b, size_t n)
{
        b->start += n;
        if (b->start == b->end)
                b->start = b->end = 0;
}

/* What each call looks at is at the end, in two lines of the cache with what a file stream has behind it. */
struct resha_stream {
        struct rs_shown shown;
        struct rs_server *server; /* that accepted it */
        size_t mark;              /* of bytes in out */
        struct rs_span out;       /* written, but kept back */
        struct rs_span in;        /* read, but not delivered */
        const resha_stream_ops *ops;
        void *impl;
        struct rs_loop *loop;
        struct rs_wait *closer; /* waits until nobody is inside */
        bool reading, writing;  /* a task is inside */
        bool closing;
        bool keeps;       /* a write has to look at out and mark */
        bool shut;        /* the writing side was ended here */
        bool aborted;     /* broken off: the peer must not see an end */
        bool foreign;     /* of a kind that a user has made: whether it waits is not known here */
        bool one_way;     /* there is nothing to read once the writing side has ended */
        int read_failed;  /* why nothing more can be read: the connection's failure, or -ENOMEM if bytes were lost */
        int write_failed; /* the same for writing */
};

/* Waits until no task is inside a call of s. For an implementation that has just ended their waits. */
void rs_stream_wait_idle(resha_stream *s);

/* It is there: counted, and shown. fd -1: none, or not known here. */
void rs_stream_begin(resha_stream *s, int fd);

/* What is behind ops is gone, or somebody else's. */
void rs_stream_free(resha_stream *s);

/* ---- between the files of streams ---- */

/* Why a call cannot enter, as a code with its record: the loop, the end, another task that `verb`s. */
int rs_stream_refuse(const resha_stream *s, const struct rs_loop *l, const char *verb);

/* The failure that the stream has met before, or its end, again. */
int rs_stream_failed_before(const resha_stream *s, int code);

/* Codes that speak of the call, or of what the machine was short of; all others of the connection. */
bool rs_stream_passes(int code);

/* The start and the end of each call that reads or writes; inside: s->reading or s->writing. */
static inline __attribute__((always_inline)) int rs_stream_enter(resha_stream *s, bool *inside, const char *verb,
                                                                 struct rs_loop **ret_loop)
{
        int rc = rs_enter(ret_loop);

        if (RS_UNLIKELY(rc < 0))
                return rc;
        if (RS_UNLIKELY(s->loop != *ret_loop || s->closing || *inside))
                return rs_stream_refuse(s, *ret_loop, verb);
        *inside = true;
        return 0;
}

/* Between two operations of one call; failed: s->read_failed or write_failed. The task may have stood still, in no wait
 * that a close or an abort could have ended. */
static inline int rs_stream_go_on(const resha_stream *s, const int *failed)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return rc < 0 ? rc : RS_UNLIKELY(s->closing) ? -EBADF : *failed;
}

/* The same, where neither a cancel nor a failure matters: whether the kind's part is there still. */
static inline int rs_stream_is_there(const resha_stream *s)
{
        return RS_UNLIKELY(s->closing) ? -EBADF : 0;
}

static inline void rs_stream_leave(resha_stream *s, bool *inside)
{
        *inside = false;
        if (RS_UNLIKELY(s->closer != NULL)) {
                struct rs_wait *w = s->closer;
                s->closer = NULL;
                rs_wake(w, 0);
        }
}

/* After a call of the kind: one that need not wait counts, so that others get their turns. Those of the backend's files
 * count where that is known. */
static inline void rs_stream_count(resha_stream *s)
{
        if (RS_UNLIKELY(s->foreign))
                (void)rs_complete(s->loop, 0);
}

/* Some bytes of the kind, 0 at the end, or negative: the caller is the reader. */
ssize_t rs_stream_pull(resha_stream *s, void *buf, size_t size);

/* What a write to the kind gave when it took nothing: a negative code. */
int rs_stream_not_written(resha_stream *s, ssize_t rc);

/* Sends what is kept; the caller is the writer. */
int rs_stream_send_kept(resha_stream *s);

/* The same for what the kind has taken and not sent yet. */
int rs_stream_send_taken(resha_stream *s);

/* The file stream that s is; NULL: one of another kind. */
struct rs_file_stream *rs_file_stream_of(resha_stream *s);

/* The stream of a file of the backend: the stream is first, and the implementation is the rest. */
struct rs_file_stream {
        resha_stream stream;
        struct rs_file *file; /* NULL: not connected yet */
        struct rs_op *op[2];  /* that tasks wait for: read, write */
        bool borrowed;        /* the file is a second one of what standard input or output is */
};

/* That of a socket, without a file. NULL: no memory. Freed with resha_free() until it has one. */
struct rs_file_stream *rs_socket_stream_new(struct rs_loop *l, int family);

/* That of another file, of kind "pipe", "terminal" or "file". */
struct rs_file_stream *rs_other_stream_new(struct rs_loop *l, struct rs_file *file);

#endif
