/* SPDX-License-Identifier: MIT */

/* Answers that are passed on. Nothing is kept but one line. */

#include "answer.h"

#include <string.h>

#include "exits.h"
#include "record.h"
#include "screen.h"

enum { AT_ONCE = 64 << 10, NOTES_MOST = 4096 };

static int flush(int fd, struct text *out)
{
        int rc = text_write(out, fd);
        text_clear(out);
        return rc;
}

/* What the first and the last line say; of JSON in one piece, how far it is. */
struct ends {
        bool first, last, fine;
        bool quoted, escaped; /* in a string, behind its backslash */
        uint64_t depth;       /* of brackets */
        char string[256];     /* the latest, or its beginning */
        size_t string_size;
        bool is_note; /* that one is a note */
        struct text *notes;
        struct text refusal[1];
};

static int look_at(struct ends *e, const char *line, size_t size)
{
        struct record r;
        TEXT(copy);
        bool is_end =
                size < 4096 && (!e->first || memmem(line, size, "\"end\"", 5) || memmem(line, size, "\"error\"", 7));
        if (!is_end)
                return *line == '{' ? 0 : -EINVAL;
        text_add(&copy, line, size);
        if (copy.failed || record_parse(&r, copy.data, copy.len) < 0)
                return -EINVAL;
        const char *type = record_text(&r, "type");
        const struct field *ok = record_find(&r, "ok", FIELD_BOOL);
        if (!e->first && strcmp(type, "resha") != 0 && strcmp(type, "error") != 0)
                return -EINVAL;
        e->first = true;
        if (strcmp(type, "error") == 0)
                screen_add(&(struct screen){ .ascii = true }, e->refusal, record_text(&r, "text"));
        e->last |= strcmp(type, "end") == 0;
        e->fine |= e->last && ok && ok->number;
        return 0;
}

/* 1: there may be more. */
static int pass_line(struct door *d, struct text *out, struct ends *e)
{
        char *line;
        size_t size;
        int rc = e->last ? 0 : door_line(d, &line, &size);
        if (rc <= 0 || !size)
                return rc;
        screen_add_raw(out, line, size, true);
        text_putc(out, '\n');
        return look_at(e, line, size) < 0 ? -EBADMSG : 1;
}

static int pass_text(struct door *d, struct text *out, struct ends *e)
{
        char *line;
        size_t size;
        int rc = door_line(d, &line, &size);
        if (rc == 0 && d->start != d->end) /* half a line */
                e->fine = false;
        if (rc <= 0)
                return rc;
        if ((!e->first || e->refusal->len) && *line == '{')
                return look_at(e, line, size) < 0 ? -EBADMSG : 1;
        e->first = e->fine = true;
        screen_add_raw(out, line, size, false);
        text_putc(out, '\n');
        return 1;
}

/* In a string, or at its end: those behind the key of notes are kept. */
static void read_string(struct ends *e, char c)
{
        e->quoted = e->escaped || c != '"';
        e->escaped = !e->escaped && c == '\\';
        if (e->quoted && e->string_size < sizeof e->string - 1)
                e->string[e->string_size++] = c;
        e->string[e->string_size] = '\0';
        if (e->quoted || !e->is_note)
                return;
        e->is_note = false;
        if (!e->notes || e->notes->len > NOTES_MOST)
                return;
        screen_add(&(struct screen){ .ascii = true }, e->notes, e->string);
        text_putc(e->notes, '\n');
}

/* It is whole when all brackets are closed. */
static void count_brackets(struct ends *e, const char *data, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                char c = data[i];
                if (e->quoted) {
                        read_string(e, c);
                        continue;
                }
                e->quoted = c == '"';
                e->string_size = e->quoted ? 0 : e->string_size;
                e->is_note = c == ':' ? strcmp(e->string, "left_out") == 0 : e->is_note && c != ',';
                e->depth += c == '[' || c == '{';
                if ((c == ']' || c == '}') && e->depth)
                        e->fine = --e->depth == 0;
        }
        e->fine &= e->depth == 0 && !e->quoted;
}

static int pass_json(struct door *d, struct text *out, struct ends *e)
{
        static const char error[] = "{\"type\":\"error\"";
        char *data;
        size_t size;
        int rc = door_bytes(d, &data, &size);
        if (rc <= 0)
                return rc;
        if (!e->first && size > sizeof error && memcmp(data, error, sizeof error - 1) == 0) {
                const char *nl = memchr(data, '\n', size);
                size_t line = nl ? (size_t)(nl - data) : size;
                return look_at(e, data, line) < 0 ? -EBADMSG : 0;
        }
        e->first = true;
        count_brackets(e, data, size);
        text_add(out, data, size);
        return 1;
}

static int judge(const struct door *d, const struct ends *e, int rc, struct text *why)
{
        const struct process *p = d->process;
        if (rc == 0 && e->fine)
                return EXIT_DONE;
        if (rc == -EINTR)
                return EXIT_INTERRUPTED;
        if (d->why->len) {
                text_puts(why, text_string(d->why));
                return EXIT_CUT;
        }
        text_printf(why, "process %d (%s) ", (int)p->pid, p->name);
        if (e->refusal->len || (rc == 0 && e->last)) {
                text_puts(why, e->refusal->len ? text_string(e->refusal) : "could not answer");
                return EXIT_REFUSED;
        }
        text_puts(why, rc == -EBADMSG ? "answers in a way that this version does not know"
                       : d->bytes     ? "stopped in the middle of its answer; try again"
                                      : "hung up without an answer: it may have ended, or have too many to answer");
        return EXIT_CUT;
}

static int pass(struct door *d, const struct question *q, int fd, struct text *why)
{
        struct ends e = { .first = false, .notes = q->notes };
        enum answer_form form = q->form;
        TEXT(out);
        int rc, failed = 0;
        do {
                rc = form == ANSWER_LINES  ? pass_line(d, &out, &e)
                     : form == ANSWER_TEXT ? pass_text(d, &out, &e)
                                           : pass_json(d, &out, &e);
                bool flushes = out.len >= AT_ONCE || rc <= 0 || d->start == d->end;
                failed = flushes ? flush(fd, &out) : 0;
        } while (rc > 0 && failed == 0);
        if (failed == 0)
                rc = judge(d, &e, rc, why);
        else if (failed != -EPIPE)
                text_printf(why, "cannot write: %s", strerror(-failed));
        text_done(e.refusal);
        return failed == 0 ? rc : failed == -ENOMEM ? EXIT_SOME_FAILED : EXIT_CANNOT_WRITE;
}

int answer_pass(const struct question *q, int fd, struct text *why)
{
        DOOR(d);
        int rc = door_open(&d, q->process, q->command, q->request);
        d.patience += q->takes;
        if (rc == EXIT_DONE)
                return pass(&d, q, fd, why);
        text_puts(why, text_string(d.why));
        return rc;
}
