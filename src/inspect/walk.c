/* SPDX-License-Identifier: MIT */
/* A walk through the tasks of a loop.
 *
 * It is made on the loop's own thread, in slices between which the tasks go on, or on another thread while the loop is
 * blocked. Either way by a reader (base/reader.h), so that there is one code for both:
 *
 *   - Slabs of tasks live as long as the loop, new ones come last. So a place in them is all that is kept from one
 *     slice to the next; a task that ends and another that begins between two slices may both be seen, or none of
 *     them.
 *   - A slab is copied as a whole, and looked at in the copy. What a task points to is copied, too, before it is looked
 *     at: on another thread it may be anything.
 *   - Every chain that is followed has an end: WALK_SCOPES scopes of a task, WALK_HANDLES handles, WALK_SLABS slabs. */

#include "inspect/walk.h"

#include <stdio.h>
#include <string.h>

#include "sys/observe.h"

enum { WALK_SCOPES = 64, WALK_SLABS = 1 << 20, WALK_HANDLES = 1024 };
static const size_t WALK_STACK = (size_t)1 << 32;

bool rs_walk_begin(struct rs_walk *w, const struct rs_reader *reader, const struct rs_loop *l)
{
        memset(w, 0, sizeof *w);
        w->reader = reader;
        w->at = l;
        return reader->read(&w->loop, l, offsetof(struct rs_loop, next_loop));
}

/* The slab where it was is a place in the list, for the list only grows. */
bool rs_walk_resume(struct rs_walk *w, int64_t now, const struct rs_task *running)
{
        w->now = now;
        w->running = running;
        w->loaded = false;
        if (!w->reader->read(&w->loop, w->at, offsetof(struct rs_loop, next_loop)))
                return false;
        w->number = (uint32_t)(w->loop.last_mark >> RS_MARK_RUN);
        if (!w->slab_at && w->slabs == 0)
                w->slab_at = (const struct rs_slab *)(const void *)w->loop.slabs.first;
        return true;
}

/* ---- a task ---- */

static void see_text(const struct rs_walk *w, const char *from, char *to, size_t size)
{
        if (!w->reader->text(from, to, size))
                to[0] = '\0';
}

/* ---- whom it waits for ---- */

uint32_t rs_walk_id(const struct rs_walk *w, const struct rs_task *at, uint64_t mark)
{
        struct rs_task t;

        if (!w->reader->read(&t, at, sizeof t) || !t.fn || (mark && t.mark != mark))
                return 0;
        return t.id;
}

static void see_holder(struct rs_seen_task *s, uint32_t id)
{
        if (id && s->holders_n < RS_SEEN_HOLDERS)
                s->holders[s->holders_n++] = id;
}

static void see_owner(const struct rs_walk *w, const struct rs_whom *whom, const char *object, struct rs_seen_task *s)
{
        const struct rs_task *owner;
        uint64_t mark = 0;

        if (!w->reader->read(&owner, object + whom->at, sizeof owner))
                return;
        if (!whom->mark_at || w->reader->read(&mark, object + whom->mark_at, sizeof mark))
                see_holder(s, rs_walk_id(w, owner, mark));
}

static void see_handles(const struct rs_walk *w, const struct rs_whom *whom, const struct rs_wait *at,
                        const resha_task *handles, struct rs_seen_task *s)
{
        resha_task h;
        size_t n;

        if (!w->reader->read(&n, (const char *)at + whom->n_at, sizeof n))
                return;
        for (size_t i = 0; i < n && i < WALK_HANDLES && s->holders_n < RS_SEEN_HOLDERS; i++)
                if (w->reader->read(&h, &handles[i], sizeof h) && h._state == RS_HANDLE_RUNNING)
                        see_holder(s, rs_walk_id(w, h._task, 0));
}

static void see_holders(const struct rs_walk *w, const struct rs_task *t, const struct rs_wait *wait,
                        struct rs_seen_task *s)
{
        struct rs_whom whom;

        if (!t->whom || !w->reader->read(&whom, t->whom, sizeof whom))
                return;
        if (whom.form == RS_WHOM_ONE)
                see_owner(w, &whom, wait->object, s);
        else if (whom.form == RS_WHOM_MANY)
                see_handles(w, &whom, t->wait, wait->object, s);
}

/* ---- what it waits for ---- */

static const struct rs_waits *waits_of(const struct rs_task *t, const struct rs_wait *wait)
{
        for (const struct rs_waits *const *x = rs_all_waits; *x; x++)
                if ((*x)->cancel ? (*x)->cancel == wait->cancel : (*x)->whom == t->whom)
                        return *x;
        return NULL;
}

static void see_wait(struct rs_walk *w, const struct rs_task *t, struct rs_seen_task *s)
{
        bool sleeps = t->wait == &s->at->sleeping;
        struct rs_wait wait = t->sleeping;

        if (!sleeps && !w->reader->read(&wait, t->wait, sizeof wait))
                return;
        const struct rs_waits *waits = waits_of(t, &wait);
        see_text(w, wait.what, s->what, sizeof s->what);
        s->object = wait.object;
        see_holders(w, t, &wait, s);
        if (waits) {
                waits->see(waits->shared ? &rs_reader_copies : w->reader, t->wait, &wait, &w->waited);
                w->first = !wait.node.prev;
        }
        if (sleeps && rs_timer_active(&t->sleep))
                s->due = t->sleep.deadline - w->now;
        else if (w->waited.due)
                s->due = w->waited.due - w->now;
}

static void see_state(struct rs_walk *w, const struct rs_task *t, struct rs_seen_task *s)
{
        if (s->at == w->running && !t->wait)
                s->state = RS_SEEN_RUNS;
        else if (!t->stack && !t->sp)
                s->state = RS_SEEN_NEW;
        else
                s->state = t->wait ? RS_SEEN_WAITS : RS_SEEN_READY;
        if (s->state == RS_SEEN_NEW)
                s->since = s->age;
        if (s->state != RS_SEEN_WAITS)
                return;
        s->since = t->since ? w->now - t->since : INT64_MIN;
        see_wait(w, t, s);
}

static void see_stack(struct rs_walk *w, const struct rs_task *t, struct rs_seen_task *s)
{
        const void *sp = s->state == RS_SEEN_RUNS ? NULL : t->sp;

        w->stack = NULL;
        s->stack = (struct rs_stack_use){ 0 };
        if (!t->stack || !w->reader->read(&w->stack_copy, t->stack, sizeof w->stack_copy))
                return;
        if (w->stack_copy.size > WALK_STACK)
                return; /* by copies it may be anything, and pages of it would be counted */
        w->stack = &w->stack_copy;
        rs_stacks_use(w->stack, w->loop.stacks.guard, sp, w->loop.marks != NULL, &s->stack);
}

size_t rs_walk_stack(const struct rs_walk *w, void *room, const void **ret_addresses, size_t max)
{
        if (!w->stack || !w->task->sp)
                return 0;
        return rs_stacks_parked(w->task->sp, w->stack->top, room, ret_addresses, max);
}

/* ---- what it says that it does ---- */

/* "mirror example.org: connects (attempt 2)" */
static void see_doing(const struct rs_walk *w, const struct rs_task *t, struct rs_seen_task *s)
{
        char what[32] = "", text[96] = "", phase[48] = "", attempt[24] = "";
        resha_doing d;

        s->doing[0] = '\0';
        if (!t->doing || !w->reader->read(&d, t->doing, sizeof d))
                return;
        see_text(w, d.what, what, sizeof what);
        see_text(w, d.text, text, sizeof text);
        see_text(w, d.phase, phase, sizeof phase);
        if (d.attempt > 1)
                snprintf(attempt, sizeof attempt, " (attempt %u)", d.attempt);
        snprintf(s->doing, sizeof s->doing, "%s%s%s%s%s%s", what, *text ? " " : "", text, *phase ? ": " : "", phase,
                 attempt);
}

/* ---- scopes ---- */

/* Why the innermost thing around it that was cancelled was; and the nearest of the deadlines that it sees. */
static void see_around(const struct rs_walk *w, const struct rs_task *t, struct rs_seen_task *s)
{
        static const char *const causes[] = {
                [RS_CAUSE_CALL] = "call",
                [RS_CAUSE_THREAD] = "thread",
                [RS_CAUSE_FAILURE] = "failure of another",
                [RS_CAUSE_BODY_FAILED] = "failure of the group's body",
                [RS_CAUSE_BODY_ENDED] = "end of the group's body",
                [RS_CAUSE_LEFT] = "the group's block was left",
                [RS_CAUSE_DEADLINE] = "deadline",
                [RS_CAUSE_GRACE] = "grace is over",
                [RS_CAUSE_RACE] = "another has won",
                [RS_CAUSE_INTERRUPT] = "Ctrl-C",
                [RS_CAUSE_TERMINATE] = "SIGTERM",
                [RS_CAUSE_DEADLOCK] = "deadlock",
                [RS_CAUSE_BACKEND] = "failure of the backend",
                [RS_CAUSE_BESIDE] = "a loop beside",
        };
        const struct rs_scope *at = t->scope;
        struct rs_scope x;
        unsigned cause = t->cancel_requested ? t->cause : RS_CAUSE_NONE;

        for (unsigned n = 0; n < WALK_SCOPES && w->reader->read(&x, at, sizeof x); n++, at = x.parent) {
                if (RS_READ_BOOL(x.requested) && !cause)
                        cause = x.cause;
                if (rs_timer_active(&x.timer) && (s->deadline == INT64_MIN || x.timer.deadline - w->now < s->deadline))
                        s->deadline = x.timer.deadline - w->now;
                if (RS_READ_BOOL(x.shield))
                        break;
        }
        s->cancelled = cause && cause < sizeof causes / sizeof *causes ? causes[cause] : NULL;
}

static void see_group(const struct rs_walk *w, struct rs_seen_scope *ret)
{
        struct rs_group g;

        if (!w->reader->read(&g, ret->at, sizeof g))
                return;
        ret->running = g.running;
        ret->limit = g.limit == SIZE_MAX ? 0 : g.limit;
        ret->failures = g.failures;
        ret->waiting = rs_waited_count(w->reader, NULL, &g.spawners);
}

bool rs_walk_scope(struct rs_walk *w, struct rs_seen_scope *ret)
{
        struct rs_scope x;

        if (!w->next_scope || w->scopes++ == WALK_SCOPES || !w->reader->read(&x, w->next_scope, sizeof x))
                return false;
        bool group = RS_READ_BOOL(x.is_group);
        *ret = (struct rs_seen_scope){
                .at = w->next_scope,
                .parent = x.parent,
                .kind = group                       ? "group"
                        : RS_READ_BOOL(x.shield)    ? "shield"
                        : RS_READ_BOOL(x.nosuspend) ? "nosuspend"
                                                    : "scope",
                .left = rs_timer_active(&x.timer) ? x.timer.deadline - w->now : INT64_MIN,
                .cancelled = RS_READ_BOOL(x.effective),
                .group = group,
        };
        if (group)
                see_group(w, ret);
        w->next_scope = x.inner;
        return true;
}

static void see(struct rs_walk *w, const struct rs_task *t, const struct rs_task *at)
{
        struct rs_seen_task *s = &w->seen;

        s->at = at;
        s->id = t->id;
        s->age = w->now - t->started;
        s->since = s->due = s->deadline = INT64_MIN;
        s->what[0] = '\0';
        w->waited.detail[0] = w->waited.state[0] = '\0';
        w->waited.kind = NULL;
        w->waited.owner = NULL;
        w->waited.due = 0;
        w->waited.limit = w->waited.held = w->waited.waiting = 0;
        s->object = NULL;
        s->holders_n = 0;
        see_text(w, t->name, s->name, sizeof s->name);
        see_text(w, t->site, s->site, sizeof s->site);
        s->group = t->group;
        s->scope = t->scope;
        s->item = t->item;
        s->items = t->items;
        s->ignored = t->ignored;
        w->scopes = 0;
        w->next_scope = t->outermost;
        see_around(w, t, s);
        see_doing(w, t, s);
        see_state(w, t, s);
        see_stack(w, t, s);
}

/* ---- the walk ---- */

static bool load(struct rs_walk *w)
{
        if (!w->loaded)
                w->loaded =
                        w->slab_at && w->slabs < WALK_SLABS && w->reader->read(&w->slab, w->slab_at, sizeof w->slab);
        return w->loaded;
}

bool rs_walk_next(struct rs_walk *w)
{
        while (load(w)) {
                while (w->index < RS_SLAB_TASKS) {
                        unsigned i = w->index++;
                        if (!w->slab.tasks[i].fn)
                                continue;
                        w->task = &w->slab.tasks[i];
                        see(w, w->task, &w->slab_at->tasks[i]);
                        return true;
                }
                if (!w->slab.node.next)
                        break; /* at the end of this one, should others be added meanwhile */
                w->slabs++;
                w->index = 0;
                w->slab_at = (const struct rs_slab *)(const void *)w->slab.node.next;
                w->loaded = false;
        }
        return false;
}

void rs_walk_back(struct rs_walk *w)
{
        w->index--;
        w->loaded = false;
}
