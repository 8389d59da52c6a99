/* SPDX-License-Identifier: MIT */
/* Places of spawn, gathered while tasks are walked through. Places are told from one another by the addresses of their
 * texts, which are static: nothing is compared while a loop stands still. Bounded: tasks of further places are not
 * counted, and the snapshot says so. */

#include "inspect/places.h"

#include <string.h>

#include "core/marks.h"

/* The one of these, or a new one; NULL: there are too many. */
static struct rs_place *place_of(struct rs_places *p, const char *site, const char *name)
{
        uint64_t hash = ((uintptr_t)site ^ (uintptr_t)name << 7) * UINT64_C(0x9e3779b97f4a7c15);
        const size_t size = sizeof p->table / sizeof *p->table;

        for (size_t i = hash >> 32 & (size - 1);; i = (i + 1) & (size - 1)) {
                struct rs_place *x = p->table[i] ? &p->place[p->table[i] - 1] : NULL;
                if (x && x->site == site && x->name == name)
                        return x;
                if (x)
                        continue;
                if (p->n == RS_PLACES) {
                        p->full = true;
                        return NULL;
                }
                x = &p->place[p->n++];
                *x = (struct rs_place){ .site = site, .name = name, .exact = true };
                p->table[i] = (unsigned short)p->n;
                return x;
        }
}

struct rs_place *rs_places_of(struct rs_places *p, const struct rs_walk *w)
{
        const char *name = w->task->named ? NULL : w->task->name;
        struct rs_place *x = place_of(p, w->task->site, name);

        if (x && x->tasks++ == 0) {
                memcpy(x->site_text, w->seen.site, sizeof x->site_text);
                memcpy(x->name_text, name ? w->seen.name : "", name ? sizeof x->name_text : 1);
        }
        return x;
}

void rs_places_marks(struct rs_places *p, const struct rs_walk *w)
{
        struct rs_stack_mark m;
        size_t n;

        if (!w->loop.marks || !w->reader->read(&n, &w->loop.marks->n, sizeof n))
                return;
        for (size_t i = 0; i < n && i < RS_MARKS && w->reader->read(&m, &w->loop.marks->mark[i], sizeof m); i++) {
                struct rs_place *x = place_of(p, m.site, m.name);
                if (!x)
                        return;
                if (x->tasks == 0 && m.site && !w->reader->text(m.site, x->site_text, sizeof x->site_text))
                        x->site_text[0] = '\0';
                if (x->tasks == 0 && m.name && !w->reader->text(m.name, x->name_text, sizeof x->name_text))
                        x->name_text[0] = '\0';
                rs_places_stack(x, &(struct rs_stack_use){ .high = m.high, .exact = true });
        }
}

void rs_places_stack(struct rs_place *p, const struct rs_stack_use *use)
{
        if (use->high > p->high) {
                p->high = use->high;
                p->exact = use->exact;
        }
}

bool rs_places_put(const struct rs_places *p, uint32_t loop, struct rs_json *j, size_t *at)
{
        for (; *at < p->n; ++*at) {
                const struct rs_place *x = &p->place[*at];
                rs_json_begin(j, "place");
                rs_json_int(j, "loop", loop);
                if (x->site_text[0])
                        rs_json_text(j, "site", x->site_text);
                if (x->name_text[0])
                        rs_json_text(j, "name", x->name_text);
                rs_json_int(j, "tasks", (int64_t)x->tasks);
                if (x->high) {
                        rs_json_int(j, "stack_high", (int64_t)x->high);
                        rs_json_bool(j, "exact", x->exact);
                }
                if (!rs_json_end(j))
                        return false;
        }
        return true;
}
