/* SPDX-License-Identifier: MIT */
/* The law of streams: whatever luck, time limits and cancels do, a reader gets the bytes of its writer, each once, in
 * their order, and the end behind the last one.
 *
 * Each trial is a conversation, in one direction or both, over one kind of stream. A writer takes its next bytes from a
 * text that is known, by one of the writing calls at random, and goes on from what the call says was taken; a reader
 * does the same with the reading calls, and what each of them must give is known from the text alone: how far a line or
 * piece goes, or that it does not fit. Many calls run out of time, and are followed by calls of another kind. A task
 * that is cancelled goes on under a shield from where the cancelled call has left it, so that what that call had taken
 * must still be there. If anything else fails, the stream is broken off, and what was read must be a beginning of what
 * was written. */

#include "bytes_law.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/core.h"
#include "io/sim.h"

enum { PARTS = 5 };

resha_stream *(*bytes_wrap)(resha_stream *s);
int (*bytes_wrap_both)(resha_stream *both[2]);
int (*bytes_end)(resha_stream *s) = resha_stream_shutdown;
struct bytes_seen bytes_seen;

static unsigned roll(unsigned below)
{
        return (unsigned)(resha_test_random() % below);
}

/* To a round instant, at which half of the world's delays end. */
static resha_duration little_time(void)
{
        return RESHA_NS((int64_t)(1 + roll(30)) * 100000 - resha_now().ns % 100000);
}

static const char *text_of(int way)
{
        static char text[2][BYTES_TEXT];
        static const char rare[] = "\n\n\r\n\0ab";

        if (!text[way][0]) {
                uint64_t x = 88172645463325252u + (uint64_t)way;
                for (size_t i = 0; i < BYTES_TEXT; i++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        text[way][i] = x % 9 ? (char)('a' + x / 9 % 26) : rare[x / 9 % 7];
                }
        }
        return text[way];
}

/* ---- calls, under a time limit or a shield ---- */

static int called(struct side *s, resha_fn *fn)
{
        struct bytes *all = s->way->all;
        int rc;

        all->calls++;
        if (s->shielded)
                return resha_shielded(RESHA_S(60), fn, s);
        rc = roll(2) ? resha_timeout(little_time(), fn, s) : fn(s);
        if (rc == -ETIME)
                all->late++;
        if (rc == -ECANCELED) {
                all->cancelled++;
                s->shielded = true;
        }
        return rc;
}

static bool goes_on(int rc)
{
        return rc >= 0 || rc == -ETIME || rc == -ECANCELED;
}

/* ---- writing ---- */

enum write_choice { WRITE_ALL, WRITE_VEC, SEND_FILE, FLUSH, WRITE_CHOICES };

static int write_parts(struct side *s, const char *from)
{
        struct iovec parts[PARTS];
        size_t left = s->size;

        for (int i = 0; i < PARTS; i++) {
                size_t n = i < PARTS - 1 ? roll((unsigned)left + 1) : left;
                parts[i] = (struct iovec){ (void *)(uintptr_t)from, n };
                from += n;
                left -= n;
        }
        return resha_write_vec(s->way->out, parts, PARTS, &s->taken);
}

static int write_call(void *arg)
{
        struct side *s = arg;
        struct way *w = s->way;
        const char *from = w->text + w->taken;
        uint64_t sent = 0;
        int rc;

        switch (s->choice) {
        case WRITE_ALL: return resha_write_all(w->out, from, s->size, &s->taken);
        case WRITE_VEC: return write_parts(s, from);
        case SEND_FILE:
                rc = resha_send_file(w->out, w->fd, (int64_t)w->taken, s->size, &sent);
                s->taken = (size_t)sent;
                return rc;
        default: return resha_flush(w->out);
        }
}

static int write_some(struct way *w)
{
        struct side *s = &w->writer;
        size_t left = w->total - w->taken;

        if (roll(8) == 0) {
                int rc = resha_stream_buffer(w->out, roll(2) ? 1 + roll(300) : 0);
                if (rc < 0)
                        return rc;
        }
        s->choice = (int)roll(WRITE_CHOICES);
        s->size = s->choice == FLUSH ? 0 : 1 + roll(left < 400 ? (unsigned)left : 400);
        s->taken = 0;
        int rc = called(s, write_call);
        ASSERT_TRUE(s->taken <= s->size);
        ASSERT_TRUE(rc < 0 || s->taken == s->size);
        w->taken += s->taken;
        return rc;
}

/* With the peer, whose reader ends too once it has all; else without. */
static int end_call(void *arg)
{
        struct side *s = arg;
        int rc;

        if (s->choice)
                return resha_stream_finish(s->way->out);
        rc = resha_flush(s->way->out);
        return rc < 0 ? rc : bytes_end(s->way->out);
}

static int write_all_of_it(struct way *w)
{
        int rc = 0;

        while (w->taken < w->total && goes_on(rc))
                rc = write_some(w);
        if (!goes_on(rc))
                return rc;
        w->writer.choice = w->all->ways == 1 && roll(2);
        do
                rc = called(&w->writer, end_call);
        while (rc < 0 && goes_on(rc));
        return rc;
}

/* ---- reading ---- */

enum read_choice { READ_SOME, READ_EXACTLY, READ_LINE, READ_UNTIL, READ_CHOICES };

static const resha_separator separators[] = { { "\r\n", 0 }, { "\0", 1 }, { "ab", 0 } };
enum { SEPARATORS = sizeof separators / sizeof separators[0] };

static int read_call(void *arg)
{
        struct side *s = arg;
        resha_stream *in = s->way->in;

        switch (s->choice) {
        case READ_SOME: s->got = resha_read(in, s->buf, s->size); break;
        case READ_EXACTLY: s->got = resha_read_exactly(in, s->buf, s->size); break;
        case READ_LINE: s->got = resha_read_line(in, s->buf, s->size); break;
        default: s->got = resha_read_until(in, separators, SEPARATORS, s->buf, s->size, &s->which);
        }
        return s->got < 0 ? (int)s->got : 0;
}

static bool ends_with(const char *from, size_t n, const char *what, size_t size)
{
        return n >= size && memcmp(from + n - size, what, size) == 0;
}

/* What a call for pieces must give, the index of the separator in *ret_which. */
static ssize_t piece(const struct way *w, bool line, size_t room, size_t *ret_which)
{
        size_t left = w->total - w->pos;

        for (size_t n = 1; n <= left && n <= room; n++)
                for (size_t i = 0; i < (line ? 1 : SEPARATORS); i++) {
                        const char *what = line ? "\n" : separators[i].text;
                        size_t size = line || separators[i].size ? 1 : strlen(what);
                        *ret_which = i;
                        if (ends_with(w->text + w->pos, n, what, size))
                                return (ssize_t)n;
                }
        *ret_which = SEPARATORS;
        return left <= room ? (ssize_t)left : -EMSGSIZE;
}

/* The call's result, as it must be if the writer has not given up. */
static void check_read(struct way *w)
{
        struct side *s = &w->reader;
        size_t left = w->total - w->pos, which = 0;
        ssize_t want = 0;

        if (s->choice == READ_EXACTLY)
                want = (ssize_t)(s->size < left ? s->size : left);
        else if (s->choice >= READ_LINE)
                want = piece(w, s->choice == READ_LINE, s->size - 1, &which);
        if (w->gave_up)
                ASSERT_TRUE(s->got == -EMSGSIZE || s->got <= (ssize_t)left);
        else if (s->choice == READ_SOME)
                ASSERT_TRUE(s->got >= (left > 0) && (size_t)s->got <= (s->size < left ? s->size : left));
        else
                ASSERT_EQ(s->got, want);
        if (s->choice == READ_UNTIL && !w->gave_up && want > 0)
                ASSERT_EQ(s->which, which);
        if (s->got > 0)
                ASSERT_EQ(memcmp(s->buf, w->text + w->pos, (size_t)s->got), 0);
}

/* A call that gave less than it could have, and is not one that may, has met the end. */
static bool at_end(const struct side *s)
{
        return s->got == 0 || (s->choice == READ_EXACTLY && s->got > 0 && (size_t)s->got < s->size);
}

static int read_some(struct way *w)
{
        struct side *s = &w->reader;
        int rc;

        s->choice = (int)roll(READ_CHOICES);
        s->size = 2 + roll(BYTES_ROOM - 2);
        rc = called(s, read_call);
        if (rc < 0 && rc != -EMSGSIZE)
                return rc;
        check_read(w);
        if (rc == -EMSGSIZE) {
                w->all->too_long++;
                return 0;
        }
        w->pos += (size_t)s->got;
        w->ended = at_end(s);
        return 0;
}

static int end_call_of_reader(void *arg)
{
        return bytes_end(arg);
}

/* Some of those who finish wait for our end, too. */
static int read_all_of_it(struct way *w)
{
        int rc = 0;

        while (!w->ended && goes_on(rc))
                rc = read_some(w);
        if (w->ended && w->all->ways == 1)
                (void)!resha_shielded(RESHA_S(60), end_call_of_reader, w->in);
        return w->ended ? 0 : rc;
}

/* ---- the conversation ---- */

/* A cancel was answered by going on; it is told at the end. Anything else ends all. */
static int ended(struct side *s, int rc)
{
        struct way *w = s->way;

        if (rc >= 0)
                return s->shielded && resha_cancelled() ? -ECANCELED : 0;
        w->gave_up = true;
        w->all->broken = true;
        resha_stream_abort(w->out);
        resha_stream_abort(w->in);
        return rc;
}

static int writer(void *arg)
{
        struct way *w = arg;

        return ended(&w->writer, write_all_of_it(w));
}

static int reader(void *arg)
{
        struct way *w = arg;

        return ended(&w->reader, read_all_of_it(w));
}

enum kind { TCP, UNIX, PAIR, PIPE, KINDS };

int bytes_connected(bool tcp, resha_stream *ret_two[2])
{
        resha_listener *l RESHA_CLEANUP(resha_listener_closep) = NULL;
        resha_addr at;
        int rc = tcp ? resha_addr_parse("127.0.0.1", 0, &at) : resha_addr_unix("@bytes", &at);

        if (rc < 0 || (rc = resha_listen(&at, NULL, &l)) < 0 || (rc = resha_listener_addr(l, &at)) < 0)
                return rc;
        if ((rc = resha_connect(&at, NULL, &ret_two[0])) < 0)
                return rc;
        return resha_accept(l, &ret_two[1]);
}

static int two_ends(enum kind kind, resha_stream *ret_two[2])
{
        switch (kind) {
        case PAIR: return resha_stream_pair(ret_two);
        case PIPE: return resha_pipe(&ret_two[1], &ret_two[0]);
        default: return bytes_connected(kind == TCP, ret_two);
        }
}

static int talk(struct bytes *b)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < b->ways; i++) {
                resha_spawn(&g, reader, &b->way[i]);
                resha_spawn(&g, writer, &b->way[i]);
        }
        return resha_group_end(&g, 0);
}

static void prepare(struct bytes *b, int i, resha_stream *from, resha_stream *to, size_t most)
{
        struct way *w = &b->way[i];
        int fd = memfd_create("bytes", MFD_CLOEXEC);

        *w = (struct way){
                .all = b, .out = from, .in = to, .text = text_of(i), .fd = fd, .total = roll((unsigned)most)
        };
        w->writer.way = w->reader.way = w;
        ASSERT_EQ(write(fd, w->text, w->total), w->total);
}

int bytes_converse(struct bytes *b, size_t most)
{
        resha_stream *one RESHA_CLEANUP(resha_stream_closep) = NULL, *two RESHA_CLEANUP(resha_stream_closep) = NULL;
        resha_stream *both[2] = { NULL, NULL };
        bool wrapped = bytes_wrap || bytes_wrap_both;
        enum kind kind = (enum kind)roll(wrapped ? PIPE : KINDS); /* who is around a pipe does not know its ends */
        int rc = two_ends(kind, both);

        if (bytes_wrap_both && rc >= 0)
                rc = bytes_wrap_both(both);
        one = bytes_wrap ? bytes_wrap(both[0]) : both[0];
        two = bytes_wrap ? bytes_wrap(both[1]) : both[1];
        if (rc < 0)
                return rc;
        rs_sim_plan(rs_loop_current->backend)->piece_max = b->piece_max;
        b->ways = kind == PIPE ? 1 : 1 + (int)roll(2);
        prepare(b, 0, one, two, most);
        if (b->ways == 2)
                prepare(b, 1, two, one, most);
        b->begun = true;
        rc = talk(b);
        for (int i = 0; i < b->ways; i++)
                close(b->way[i].fd);
        return rc;
}

void bytes_check(void *state, int rc, const resha_test_trial *t)
{
        const struct bytes *b = state;

        (void)rc;
        bytes_seen.late += b->late;
        bytes_seen.cancelled += b->cancelled;
        bytes_seen.too_long += b->too_long;
        bytes_seen.calls += b->calls;
        if (!b->begun)
                return;
        ASSERT_TRUE(!b->broken || t->disturbed);
        for (int i = 0; i < b->ways; i++) {
                const struct way *w = &b->way[i];
                ASSERT_TRUE(w->pos <= w->taken);
                if (b->broken)
                        continue;
                ASSERT_EQ(w->taken, w->total);
                ASSERT_EQ(w->pos, w->total);
                ASSERT_TRUE(w->ended);
        }
}
