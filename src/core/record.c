/* SPDX-License-Identifier: MIT */
/* Error records of tasks: one for each code, the latest RS_RECORDS_MAX codes. A record stays until its code is set
 * again or pushed out, so what happens after a failure, in clean-ups and shields, does not overwrite it. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"

/* Where there is no task: those of a job's thread, or NULL. */
static _Thread_local struct rs_records *thread_records;
static _Thread_local resha_error given; /* of a thread that has neither; the latest */
static _Thread_local resha_error scratch;

void rs_thread_records_set(struct rs_records *records)
{
        thread_records = records;
}

void rs_records_init(struct rs_loop *l)
{
        for (size_t i = RS_RECORDS_SPARE; i-- > 0;)
                rs_record_free(l, &l->spares[i]);
}

/* A record made from a failure says why others were cancelled, so it may use a spare one; the text of an error alone
 * may get lost. */
struct rs_record *rs_record_new(struct rs_loop *l, const resha_error *e)
{
        struct rs_record *r = l ? l->record_free : NULL;

        if (r)
                l->record_free = r->next;
        else
                r = resha_malloc(sizeof *r);
        if (!r && l && e && (r = l->record_spare))
                l->record_spare = r->next;
        if (r) {
                r->next = NULL;
                if (e)
                        r->error = *e;
        }
        return r;
}

void rs_record_free(struct rs_loop *l, struct rs_record *r)
{
        if (l) {
                bool spare = r >= l->spares && r < l->spares + RS_RECORDS_SPARE;
                struct rs_record **list = spare ? &l->record_spare : &l->record_free;
                r->next = *list;
                *list = r;
        } else {
                resha_free(r);
        }
}

void rs_records_free(struct rs_loop *l, struct rs_records *records)
{
        while (records->first) {
                struct rs_record *r = records->first;

                records->first = r->next;
                rs_record_free(l, r);
        }
}

const resha_error *rs_records_find(const struct rs_records *records, int code)
{
        for (const struct rs_record *r = records->first; r; r = r->next)
                if (r->error.code == code)
                        return &r->error;
        return NULL;
}

const resha_error *rs_task_record(const struct rs_task *t, int code)
{
        const resha_error *e = rs_records_find(&t->records, code);

        for (const struct rs_scope *s = t->scope; !e && s && s->task == t; s = s->parent)
                e = rs_records_find(&s->records, code);
        return e;
}

void rs_records_shield(struct rs_task *t, struct rs_scope *s)
{
        s->records = t->records;
        t->records.first = NULL;
}

/* Where the list is full, the latest one of the shield takes the place of the oldest. */
void rs_records_unshield(struct rs_loop *l, struct rs_task *t, struct rs_scope *s)
{
        struct rs_record *inside = t->records.first;
        bool added = false;

        t->records = s->records;
        s->records.first = NULL;
        while (inside) {
                struct rs_record *r = inside, **end = &t->records.first;
                unsigned n = 0;

                inside = r->next;
                for (; *end && n < RS_RECORDS_MAX - 1; n++)
                        end = &(*end)->next;
                if (rs_records_find(&t->records, r->error.code) || (*end && added)) {
                        rs_record_free(l, r);
                        continue;
                }
                if (*end)
                        rs_record_free(l, *end);
                *end = r;
                r->next = NULL;
                added = true;
        }
}

/* The record for `code`, at the front of the list: its old one, the oldest of a full list, or a new one. */
static struct rs_record *record_for(struct rs_loop *l, struct rs_records *records, int code)
{
        struct rs_record **link = &records->first, *r;
        unsigned n = 1;

        for (; (r = *link) != NULL && r->error.code != code && n < RS_RECORDS_MAX; n++)
                link = &r->next;
        if (r)
                *link = r->next;
        else
                r = rs_record_new(l, NULL);
        if (r) {
                r->next = records->first;
                records->first = r;
        }
        return r;
}

static struct rs_records *records_here(void)
{
        struct rs_loop *l = rs_loop_current;

        return l && l->current ? &l->current->records : thread_records;
}

void rs_error_give(struct rs_loop *l, const resha_error *e)
{
        struct rs_records *records = records_here();
        struct rs_record *r = records ? record_for(l, records, e->code) : NULL;

        if (!records)
                given = *e;
        if (r)
                r->error = *e;
}

static void fill_task(const struct rs_loop *l, const struct rs_task *t, resha_error *e)
{
        e->task = t->named ? NULL : t->name; /* a copied name does not live long enough */
        e->spawned_at = t->site;
        e->item = t->item;
        e->items = t->items;
        e->after.ns = (l->simulated ? rs_now((struct rs_loop *)(uintptr_t)l) : l->now) - t->started;
}

void rs_error_describe(struct rs_loop *l, const struct rs_task *t, int code, resha_error *ret_error)
{
        const resha_error *e = rs_task_record(t, code);

        if (e) {
                *ret_error = *e;
                return;
        }
        *ret_error = (resha_error){ .code = code };
        fill_task(l, t, ret_error);
        snprintf(ret_error->text, sizeof ret_error->text, "%s", resha_strerror(code));
        if (code == -ECANCELED)
                rs_reason_describe(t, ret_error);
}

/* Names in it may come from outside, and a line break would make two lines in a log. */
static void one_line(char *text)
{
        for (unsigned char *p = (unsigned char *)text; *p; p++)
                if (*p < ' ' || *p == 0x7f)
                        *p = '?';
}

/* Formats first: the arguments may point into the record that is replaced. */
int resha_fail_at(int code, const char *site, const char *format, ...)
{
        struct rs_loop *l = rs_loop_current;
        struct rs_records *records = records_here();
        char text[sizeof scratch.text];
        va_list args;

        if (code >= 0)
                return code;
        va_start(args, format);
        int n = vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (n < 0)
                snprintf(text, sizeof text, "%s", resha_strerror(code));
        else if ((size_t)n >= sizeof text)
                memcpy(text + sizeof text - 4, "...", 4);
        one_line(text);
        struct rs_record *r = records ? record_for(l, records, code) : NULL;
        resha_error *e = r ? &r->error : records ? NULL : &given;
        if (!e)
                return code;
        *e = (resha_error){ .code = code, .site = site };
        memcpy(e->text, text, sizeof text);
        if (l && l->current)
                fill_task(l, l->current, e);
        return code;
}

int rs_misuse(int code, const char *format, ...)
{
        const struct rs_loop *l = rs_loop_current;
        char text[sizeof scratch.text];
        va_list args;

        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (l && l->strict)
                rs_task_abort(l->current, "%s", text);
        return resha_fail_at(code, NULL, "%s", text);
}

const resha_error *resha_error_of(int rc)
{
        struct rs_loop *l = rs_loop_current;
        const resha_error *e = NULL;

        if (rc < 0 && l && l->current)
                e = rs_task_record(l->current, rc);
        else if (rc < 0 && thread_records)
                e = rs_records_find(thread_records, rc);
        else if (rc < 0 && given.code == rc)
                e = &given;
        if (e)
                return e;
        scratch = (resha_error){ .code = rc < 0 ? rc : 0 };
        if (rc < 0)
                snprintf(scratch.text, sizeof scratch.text, "%s", resha_strerror(rc));
        if (rc == -ECANCELED && l && l->current) {
                fill_task(l, l->current, &scratch);
                rs_reason_describe(l->current, &scratch);
        }
        return &scratch;
}
