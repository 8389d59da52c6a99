/* SPDX-License-Identifier: MIT */

/* From lines to rows. For each type of line there is a table of its fields, and where each goes; a field that is not in
 * it is of a later version and skipped. The fields of a line come in the order of the table, mostly, so that each is
 * found at the first look. */

#include "snapshot.h"

#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "exits.h"
#include "screen.h"

static const uint64_t MEMORY_LIMIT = UINT64_C(1) << 30;

enum slot_kind { SLOT_TEXT, SLOT_NUMBER, SLOT_ADDRESS, SLOT_BOOL, SLOT_LOOP, SLOT_HOLDERS };

struct slot {
        const char *name;
        enum slot_kind kind;
        size_t offset;
};

#define TEXT_AT(type, member) \
        { \
#member, SLOT_TEXT, offsetof(struct type, member) \
        }
#define NUMBER_AT(type, member) \
        { \
#member, SLOT_NUMBER, offsetof(struct type, member) \
        }
#define ADDRESS_AT(type, member) \
        { \
#member, SLOT_ADDRESS, offsetof(struct type, member) \
        }
#define BOOL_AT(type, member) \
        { \
#member, SLOT_BOOL, offsetof(struct type, member) \
        }
#define LOOP_AT(type) \
        { \
                "loop", SLOT_LOOP, offsetof(struct type, loop) \
        }

static const struct slot loop_slots[] = {
        LOOP_AT(loop_row),
        TEXT_AT(loop_row, backend),
        TEXT_AT(loop_row, state),
        { "for", SLOT_NUMBER, offsetof(struct loop_row, since) },
        TEXT_AT(loop_row, mode),
        NUMBER_AT(loop_row, tasks),
        NUMBER_AT(loop_row, ready),
        NUMBER_AT(loop_row, polls),
        NUMBER_AT(loop_row, switches),
        NUMBER_AT(loop_row, current),
        NUMBER_AT(loop_row, jobs),
        NUMBER_AT(loop_row, open),
        NUMBER_AT(loop_row, pause),
        { NULL, SLOT_TEXT, 0 },
};

static const struct slot task_slots[] = {
        LOOP_AT(task_row),
        NUMBER_AT(task_row, id),
        TEXT_AT(task_row, name),
        TEXT_AT(task_row, site),
        NUMBER_AT(task_row, age),
        TEXT_AT(task_row, state),
        NUMBER_AT(task_row, since),
        TEXT_AT(task_row, what),
        ADDRESS_AT(task_row, object),
        { "holders", SLOT_HOLDERS, offsetof(struct task_row, holders) },
        TEXT_AT(task_row, detail),
        TEXT_AT(task_row, doing),
        NUMBER_AT(task_row, due),
        NUMBER_AT(task_row, deadline),
        ADDRESS_AT(task_row, group),
        NUMBER_AT(task_row, item),
        NUMBER_AT(task_row, items),
        ADDRESS_AT(task_row, scope),
        TEXT_AT(task_row, cancelled),
        NUMBER_AT(task_row, ignored),
        NUMBER_AT(task_row, stack_used),
        NUMBER_AT(task_row, stack_high),
        NUMBER_AT(task_row, stack_size),
        { NULL, SLOT_TEXT, 0 },
};

static const struct slot scope_slots[] = {
        LOOP_AT(scope_row),
        ADDRESS_AT(scope_row, at),
        NUMBER_AT(scope_row, task),
        TEXT_AT(scope_row, kind),
        ADDRESS_AT(scope_row, parent),
        NUMBER_AT(scope_row, left),
        BOOL_AT(scope_row, cancelled),
        NUMBER_AT(scope_row, running),
        NUMBER_AT(scope_row, limit),
        NUMBER_AT(scope_row, failures),
        NUMBER_AT(scope_row, waiting),
        { NULL, SLOT_TEXT, 0 },
};

static const struct slot object_slots[] = {
        LOOP_AT(object_row),         ADDRESS_AT(object_row, at),   TEXT_AT(object_row, kind),
        TEXT_AT(object_row, name),   TEXT_AT(object_row, detail),  NUMBER_AT(object_row, owner),
        NUMBER_AT(object_row, held), NUMBER_AT(object_row, limit), NUMBER_AT(object_row, waiting),
        { NULL, SLOT_TEXT, 0 },
};

static const struct slot handle_slots[] = {
        LOOP_AT(handle_row),       ADDRESS_AT(handle_row, at),     TEXT_AT(handle_row, kind),
        NUMBER_AT(handle_row, fd), TEXT_AT(handle_row, opened_at), NUMBER_AT(handle_row, age),
        TEXT_AT(handle_row, name), TEXT_AT(handle_row, detail),    NUMBER_AT(handle_row, task),
        { NULL, SLOT_TEXT, 0 },
};

static const struct slot frame_slots[] = {
        LOOP_AT(frame_row),       NUMBER_AT(frame_row, task), NUMBER_AT(frame_row, depth),
        TEXT_AT(frame_row, text), { NULL, SLOT_TEXT, 0 },
};

static const struct slot place_slots[] = {
        LOOP_AT(place_row),          TEXT_AT(place_row, site),         TEXT_AT(place_row, name),
        NUMBER_AT(place_row, tasks), NUMBER_AT(place_row, stack_high), NUMBER_AT(place_row, stack_size),
        BOOL_AT(place_row, exact),   { NULL, SLOT_TEXT, 0 },
};

static const struct slot sample_slots[] = {
        LOOP_AT(sample_row),         TEXT_AT(sample_row, site), TEXT_AT(sample_row, name),
        NUMBER_AT(sample_row, hits), NUMBER_AT(sample_row, of), NUMBER_AT(sample_row, sleeps),
        { NULL, SLOT_TEXT, 0 },
};

static void read_holders(struct record *r, const struct slot *slot, void *at)
{
        struct task_row *t = (struct task_row *)(void *)((char *)at - slot->offset);
        const struct field *f = record_find(r, slot->name, FIELD_LIST);
        t->n_holders = f ? f->n_list : 0;
        for (unsigned i = 0; i < t->n_holders; i++)
                t->holders[i] = f->list[i];
}

static int fill(struct snapshot *s, struct record *r, const struct slot *slots, void *row)
{
        for (const struct slot *slot = slots; slot->name; slot++) {
                char *at = (char *)row + slot->offset;
                const struct field *f;
                switch (slot->kind) {
                case SLOT_TEXT:
                        *(const char **)(void *)at = keep_text(&s->keep, record_text(r, slot->name));
                        if (!*(const char **)(void *)at)
                                return -ENOMEM;
                        break;
                case SLOT_NUMBER: *(int64_t *)(void *)at = record_number(r, slot->name, -1); break;
                case SLOT_ADDRESS: *(uint64_t *)(void *)at = record_address(r, slot->name); break;
                case SLOT_BOOL:
                        f = record_find(r, slot->name, FIELD_BOOL);
                        *(bool *)(void *)at = f && f->number;
                        break;
                case SLOT_LOOP: *(uint32_t *)(void *)at = (uint32_t)record_number(r, slot->name, 1); break;
                case SLOT_HOLDERS: read_holders(r, slot, at); break;
                }
        }
        return 0;
}

/* ---- rows ---- */

/* One row more, cleared; NULL: no memory. */
static void *add_row(struct snapshot *s, void *rows, size_t *n, size_t *cap, size_t size)
{
        void **row = rows;
        if (*n == *cap) {
                size_t more = *cap ? 2 * *cap : 16;
                void *grown = s->keep.bytes + more * size > MEMORY_LIMIT ? NULL : resha_realloc(*row, more * size);
                if (!grown)
                        return NULL;
                s->keep.bytes += (more - *cap) * size;
                *row = grown;
                *cap = more;
        }
        void *at = (char *)*row + *n * size;
        memset(at, 0, size);
        ++*n;
        return at;
}

#define ADD(s, rows, r, slots) \
        add((s), &(s)->rows.row, &(s)->rows.n, &(s)->rows.cap, sizeof *(s)->rows.row, (r), (slots))

static int add(struct snapshot *s, void *rows, size_t *n, size_t *cap, size_t size, struct record *r,
               const struct slot *slots)
{
        void *row = add_row(s, rows, n, cap, size);
        return row ? fill(s, r, slots, row) : -ENOMEM;
}

static int add_task(struct snapshot *s, struct record *r)
{
        int rc = ADD(s, tasks, r, task_slots);
        if (rc < 0)
                return rc;
        const struct task_row *t = &s->tasks.row[s->tasks.n - 1];
        return keep_index_set(&s->task_at, t->loop, t->id, (uint32_t)s->tasks.n - 1);
}

static int add_scope(struct snapshot *s, struct record *r)
{
        int rc = ADD(s, scopes, r, scope_slots);
        if (rc < 0)
                return rc;
        const struct scope_row *x = &s->scopes.row[s->scopes.n - 1];
        return keep_index_set(&s->scope_at, x->loop, x->at, (uint32_t)s->scopes.n - 1);
}

/* What several tasks wait at may come with each of them: it is kept once. */
static int add_object(struct snapshot *s, struct record *r)
{
        int rc = ADD(s, objects, r, object_slots);
        if (rc < 0)
                return rc;
        const struct object_row *x = &s->objects.row[s->objects.n - 1];
        struct object_row *before = snapshot_object(s, x->loop, x->at);
        if (!before)
                return keep_index_set(&s->object_at, x->loop, x->at, (uint32_t)s->objects.n - 1);
        *before = *x;
        s->objects.n--;
        return 0;
}

static int add_loop(struct snapshot *s, struct record *r)
{
        return ADD(s, loops, r, loop_slots);
}

static int add_handle(struct snapshot *s, struct record *r)
{
        return ADD(s, handles, r, handle_slots);
}

static int add_frame(struct snapshot *s, struct record *r)
{
        return ADD(s, frames, r, frame_slots);
}

static int add_place(struct snapshot *s, struct record *r)
{
        return ADD(s, places, r, place_slots);
}

static int add_sample(struct snapshot *s, struct record *r)
{
        return ADD(s, samples, r, sample_slots);
}

static int add_note(struct snapshot *s, struct record *r)
{
        if (s->notes.len < 64 << 10) {
                text_puts(&s->notes, record_text(r, "text"));
                text_putc(&s->notes, '\n');
        }
        return s->notes.failed ? -ENOMEM : 0;
}

static int add_head(struct snapshot *s, struct record *r)
{
        const struct field *debug = record_find(r, "debug", FIELD_BOOL);
        s->version = keep_text(&s->keep, record_text(r, "version"));
        s->program = keep_text(&s->keep, record_text(r, "program"));
        s->debug = debug && debug->number;
        s->all_loops = record_number(r, "loops", 0);
        s->headed = true;
        return s->version && s->program ? 0 : -ENOMEM;
}

static int add_end(struct snapshot *s, struct record *r)
{
        const struct field *ok = record_find(r, "ok", FIELD_BOOL);
        const char *text = record_text(r, "text");
        s->ended = true;
        if ((ok && ok->number) || s->refusal)
                return 0;
        s->refusal = keep_text(&s->keep, *text ? text : "it could not answer");
        return s->refusal ? 0 : -ENOMEM;
}

static int add_error(struct snapshot *s, struct record *r)
{
        const char *text = record_text(r, "text");
        s->refusal = keep_text(&s->keep, *text ? text : "it could not answer");
        return s->refusal ? 0 : -ENOMEM;
}

static const struct {
        const char *type;
        int (*add)(struct snapshot *s, struct record *r);
        bool always; /* also where only stacks are wanted */
} types[] = {
        { "task", add_task, false },      { "frame", add_frame, true },    { "scope", add_scope, false },
        { "object", add_object, false },  { "handle", add_handle, false }, { "place", add_place, false },
        { "loop", add_loop, false },      { "sample", add_sample, false }, { "note", add_note, false },
        { "samples", add_sample, false }, { "resha", add_head, true },     { "error", add_error, true },
        { "end", add_end, true },
};

int snapshot_add(struct snapshot *s, char *line, size_t size)
{
        struct record r;
        int rc = record_parse(&r, line, size);
        const char *type = rc < 0 ? "" : record_text(&r, "type");
        for (size_t i = 0; rc == 0 && i < sizeof types / sizeof types[0]; i++)
                if (strcmp(types[i].type, type) == 0 && (types[i].always || !s->frames_only))
                        return s->keep.bytes > MEMORY_LIMIT ? -ENOMEM : types[i].add(s, &r);
        return rc;
}

void snapshot_done(struct snapshot *s)
{
        keep_done(&s->keep);
        resha_free(s->loops.row);
        resha_free(s->tasks.row);
        resha_free(s->scopes.row);
        resha_free(s->objects.row);
        resha_free(s->handles.row);
        resha_free(s->frames.row);
        resha_free(s->places.row);
        resha_free(s->samples.row);
        text_done(&s->notes);
        keep_index_done(&s->task_at);
        keep_index_done(&s->scope_at);
        keep_index_done(&s->object_at);
        *s = (struct snapshot)SNAPSHOT_NOTHING;
}

struct task_row *snapshot_task(const struct snapshot *s, uint32_t loop, int64_t id)
{
        int64_t at = id < 0 ? NO_ROW : keep_index_find(&s->task_at, loop, (uint64_t)id);
        return at < 0 ? NULL : &s->tasks.row[at];
}

struct scope_row *snapshot_scope(const struct snapshot *s, uint32_t loop, uint64_t at)
{
        int64_t i = at ? keep_index_find(&s->scope_at, loop, at) : NO_ROW;
        return i < 0 ? NULL : &s->scopes.row[i];
}

struct object_row *snapshot_object(const struct snapshot *s, uint32_t loop, uint64_t at)
{
        int64_t i = at ? keep_index_find(&s->object_at, loop, at) : NO_ROW;
        return i < 0 ? NULL : &s->objects.row[i];
}

/* ---- asking ---- */

static int incomplete(const struct snapshot *s, const struct door *d, struct text *why)
{
        const struct process *p = d->process;
        if (!d->bytes)
                text_printf(why,
                            "process %d (%s) hung up without an answer: it may have ended, or have too many to "
                            "answer; try again",
                            (int)p->pid, p->name);
        else if (!s->headed)
                text_printf(why, "process %d (%s) answers in a way that this version does not know", (int)p->pid,
                            p->name);
        else
                text_printf(why, "the answer of process %d (%s) ends early; try again", (int)p->pid, p->name);
        return EXIT_CUT;
}

static int read_failed(const struct snapshot *s, const struct door *d, int rc, struct text *why)
{
        const struct process *p = d->process;
        if (rc == -EINTR)
                return EXIT_INTERRUPTED;
        if (rc == -ENOMEM) {
                text_printf(why, "process %d (%s) tells more than fits into memory; --json passes it on as it comes",
                            (int)p->pid, p->name);
                return EXIT_SOME_FAILED;
        }
        if (rc == -EINVAL)
                return incomplete(&(struct snapshot){ .headed = s->headed && s->tasks.n }, d, why);
        text_puts(why, text_string(d->why));
        return EXIT_CUT;
}

/* Behind a line that is only a part of one: it is given up, and this says why. */
static int add_reason(struct snapshot *s, struct door *d, int rc)
{
        char *line;
        size_t size;
        bool told = door_line(d, &line, &size) > 0 && size && snapshot_add(s, line, size) == 0 && s->refusal;
        return told ? 0 : rc;
}

int snapshot_load(struct snapshot *s, const struct process *p, const struct wanted *w, struct text *why)
{
        char *line;
        size_t size;
        DOOR(d);
        s->headed = s->ended = false;
        s->refusal = NULL;
        int rc = door_open(&d, p, w->command, w->request);
        d.patience += w->takes;
        d.key = w->key;
        if (rc != EXIT_DONE) {
                text_puts(why, text_string(d.why));
                return rc;
        }
        while (!s->ended && (rc = door_line(&d, &line, &size)) > 0) {
                rc = size ? snapshot_add(s, line, size) : 0;
                if (rc < 0)
                        break;
        }
        if (rc == -EINVAL)
                rc = add_reason(s, &d, rc);
        if (rc < 0)
                return read_failed(s, &d, rc, why);
        if (s->refusal) {
                text_printf(why, "process %d (%s): ", (int)p->pid, p->name);
                screen_add(&(struct screen){ .ascii = true }, why, s->refusal);
                return EXIT_REFUSED;
        }
        return s->headed && s->ended ? EXIT_DONE : incomplete(s, &d, why);
}
