/* SPDX-License-Identifier: MIT */
/* Every interleaving of up to four tasks over one object, each operation cancelled at any moment or not, compared with
 * the model.
 *
 * A search without stored program states: each run starts anew and makes the choices of a path again, then takes the
 * first of each new one; the next run takes the next of the last choice that has another. There is a choice wherever
 * the scheduler takes a task out of the ready queue: which of those that are ready, or first a cancel of an operation
 * that a task is in. A state that was met before, by any path, is not gone on from again.
 *
 * In every state is checked: who waits in the model waits in the library and nobody else; mutex, semaphore, queue and
 * event say what the model says. When an operation returns: its result and its item are those of the model. So the
 * library lets nobody overtake, loses and doubles nothing, wakes who it must and nobody else, whatever is cancelled. */

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "model.h"
#include "test.h"

struct setting {
        unsigned tasks;
        uint8_t permits, capacity;
        enum op program[TASKS_MAX][OPS_MAX];
};

/* ---- the search ---- */

enum { DEPTH_MAX = 512, SEEN_BITS = 22 };

static struct search {
        struct {
                uint8_t choice, options;
        } path[DEPTH_MAX];
        unsigned depth, length; /* of this run; of the path that it follows */
        bool known;             /* the state was met before: the run only ends */
        uint64_t *seen;         /* hashes; 0: free */
        uint64_t states, runs, steps;
        const char *failed; /* what went wrong, if that is looked for */
} search;

static uint64_t hash(const void *data, size_t size)
{
        const uint8_t *p = data;
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < size; i++)
                h = (h ^ p[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
        return h ? h : 1;
}

/* True if it is new. */
static bool note_state(const struct model *m)
{
        uint64_t h = hash(m, sizeof *m), mask = (UINT64_C(1) << SEEN_BITS) - 1;

        for (uint64_t i = h & mask;; i = (i + 1) & mask) {
                if (search.seen[i] == h)
                        return false;
                if (!search.seen[i]) {
                        search.seen[i] = h;
                        if (++search.states > mask / 2)
                                FAIL("more states than there is room for");
                        return true;
                }
        }
}

static unsigned choose(unsigned options, const struct model *m)
{
        search.steps++;
        if (search.depth < search.length)
                return search.path[search.depth++].choice;
        if (search.depth == DEPTH_MAX)
                FAIL("a path of more than %d choices", DEPTH_MAX);
        search.known = search.known || !note_state(m);
        search.path[search.depth].choice = 0;
        search.path[search.depth].options = search.known ? 1 : (uint8_t)options;
        search.length = ++search.depth;
        return 0;
}

/* The path of the next run; false: there is none. */
static bool next_path(void)
{
        while (search.length && search.path[search.length - 1].choice + 1 >= search.path[search.length - 1].options)
                search.length--;
        if (!search.length)
                return false;
        search.path[search.length - 1].choice++;
        search.depth = 0;
        search.known = false;
        return true;
}

/* ---- one run ---- */

static struct run {
        const struct setting *setting;
        struct model model;
        struct rs_task *task[TASKS_MAX]; /* NULL: not started, or ended */
        struct rs_scope *scope[TASKS_MAX];
        resha_scope scopes[TASKS_MAX];
        resha_mutex mutex;
        resha_semaphore semaphore;
        resha_queue *queue;
        resha_event event;
        resha_condition condition;
        unsigned started, ended;
        bool over; /* the driver ends what is left */
} run;

static void wrong(const char *what, unsigned i)
{
        char path[3 * DEPTH_MAX] = "";

        search.failed = what;
        run.over = true;
        if (planted != RIGHT)
                return;
        for (unsigned k = 0; k < search.depth; k++)
                snprintf(path + strlen(path), sizeof path - strlen(path), "%u ", (unsigned)search.path[k].choice);
        FAIL("%s (task %u, operation %u), after the choices %s", what, i, (unsigned)run.model.task[i].pc, path);
}

static enum op op_of(unsigned i)
{
        return run.setting->program[i][run.model.task[i].pc];
}

/* The library and the model, side by side. */
static void compare(void)
{
        const struct model *m = &run.model;

        for (unsigned i = 0; i < run.setting->tasks; i++)
                if (run.task[i] && (run.task[i]->wait != NULL) != (m->task[i].phase == WAITING))
                        wrong(run.task[i]->wait ? "waits, and should not" : "should wait, and does not", i);
        if (resha_mutex_locked(&run.mutex) != (m->owner >= 0))
                wrong("the mutex is locked where the model is free, or free where it is locked", 0);
        if (resha_semaphore_available(&run.semaphore) != m->permits)
                wrong("other permits are free than in the model", 0);
        if (resha_queue_count(run.queue) != m->count)
                wrong("the queue has another count than the model", 0);
        if (resha_event_is_set(&run.event) != m->set)
                wrong("the event is not as the model is", 0);
}

static bool may_cancel(unsigned i)
{
        return run.task[i] && run.scope[i] && !run.model.task[i].cancelled;
}

/* Which of the explored tasks that is; -1: the driver. */
static int index_of(const struct rs_task *t)
{
        for (unsigned i = 0; i < run.setting->tasks; i++)
                if (run.task[i] == t)
                        return (int)i;
        return -1;
}

/* The place in the ready queue of the n-th that is not the driver; where there is none, of the driver. */
static uint64_t place_of(const struct rs_loop *l, unsigned n)
{
        uint64_t place = 0, driver = 0;

        for (const struct rs_task *t = l->ready_first; t; t = t->ready_next, place++)
                if (index_of(t) < 0)
                        driver = place;
                else if (n-- == 0)
                        return place;
        return driver;
}

static unsigned count_ready(const struct rs_loop *l)
{
        unsigned n = 0;

        for (const struct rs_task *t = l->ready_first; t; t = t->ready_next)
                n += index_of(t) >= 0;
        return n;
}

/* One choice: the n-th cancel there could be, or none: then *ret_ready is which of the ready ones runs. */
static bool step(const struct rs_loop *l, unsigned *ret_ready)
{
        unsigned cancels[TASKS_MAX], n = 0, ready = count_ready(l);

        compare();
        if (run.over)
                return false;
        for (unsigned i = 0; i < run.setting->tasks; i++)
                if (may_cancel(i))
                        cancels[n++] = i;
        /* Where nobody is ready, to run the driver is a choice, too: it ends the run. */
        unsigned choice = choose(n + (ready ? ready : 1), &run.model);
        if (choice >= n) {
                *ret_ready = choice - n;
                return false;
        }
        model_cancel(&run.model, cancels[choice], op_of(cancels[choice]));
        resha_scope_cancel(&run.scopes[cancels[choice]]);
        return true;
}

/* In the place of the simulated world's luck. The scheduler asks when it is about to take a task. */
static uint64_t on_schedule(struct rs_backend *b)
{
        const struct rs_loop *l = rs_loop_current;
        unsigned ready = 0;

        (void)b;
        if (run.started < run.setting->tasks || run.over)
                return 0;
        while (step(l, &ready))
                continue;
        return run.over ? 0 : place_of(l, ready);
}

/* ---- the tasks ---- */

static int select_either(uint8_t *item)
{
        resha_case cases[] = { RESHA_ON_GET(run.queue, item), RESHA_ON_EVENT(&run.event) };

        return resha_select(cases, 2);
}

static int meet(uint8_t *item)
{
        uint8_t own = *item;
        resha_case cases[] = { RESHA_ON_GET(run.queue, item), RESHA_ON_PUT(run.queue, &own) };

        return resha_select(cases, 2);
}

static int call(enum op op, uint8_t *item)
{
        switch (op) {
        case LOCK: return resha_mutex_lock(&run.mutex);
        case UNLOCK: return resha_mutex_unlock(&run.mutex);
        case ACQUIRE: return resha_semaphore_acquire(&run.semaphore);
        case RELEASE: return resha_semaphore_release(&run.semaphore);
        case PUT: return resha_queue_put(run.queue, item);
        case GET: return resha_queue_get(run.queue, item);
        case SHUTDOWN: return resha_queue_shutdown(run.queue), 0;
        case EVENT_WAIT: return resha_event_wait(&run.event);
        case EVENT_SET: return resha_event_set(&run.event), 0;
        case EVENT_CLEAR: return resha_event_clear(&run.event), 0;
        case SELECT: return select_either(item);
        case MEET: return meet(item);
        case CONDITION_WAIT: return resha_condition_wait(&run.condition);
        case NOTIFY: return resha_condition_notify(&run.condition, 1);
        case NOTIFY_ALL: return resha_condition_notify_all(&run.condition);
        case END: break;
        }
        return 0;
}

/* One operation, in a scope of its own, so that it can be cancelled alone; first, others may run. */
static int one_operation(unsigned i, enum op op)
{
        resha_scope *s = &run.scopes[i];
        uint8_t item = (uint8_t)(1 + i * OPS_MAX + run.model.task[i].pc);

        run.model.task[i].phase = ENTERED;
        run.model.task[i].cancelled = false;
        run.model.task[i].result = 0;
        run.model.task[i].item = 0;
        if (cancellable(op)) {
                *s = (resha_scope){ { 0 } };
                resha_timeout_begin(s, RESHA_FOREVER);
                run.scope[i] = rs_scope_of(s);
        }
        int rc = resha_yield(); /* the operation looks itself whether it is cancelled */
        model_call(&run.model, i, op, item);
        rc = call(op, &item);
        if (!run.over && rc != run.model.task[i].result)
                wrong("returns another result than the model", i);
        bool got = (op == GET && rc == 1) || (op == MEET && rc == 0) ||
                   (op == SELECT && rc == 0 && run.model.task[i].item);
        if (!run.over && got && item != run.model.task[i].item)
                wrong("gets another item than in the model", i);
        if (cancellable(op)) {
                run.scope[i] = NULL;
                (void)!resha_scope_end(s, rc);
        }
        return rc;
}

/* The operation behind the one that gives back what was not had. */
static uint8_t behind(const enum op *program, uint8_t pc, enum op op)
{
        while (program[pc] != op)
                pc++;
        return (uint8_t)(pc + 1);
}

static int explored(void *arg)
{
        unsigned i = (unsigned)(uintptr_t)arg;
        const enum op *program = run.setting->program[i];
        uint8_t *pc = &run.model.task[i].pc;

        run.task[i] = rs_loop_current->current;
        run.started++;
        while (program[*pc] != END) {
                enum op op = program[*pc];
                int rc = one_operation(i, op);
                if (rc < 0 && op == LOCK)
                        *pc = behind(program, *pc, UNLOCK);
                else if (rc < 0 && op == ACQUIRE)
                        *pc = behind(program, *pc, RELEASE);
                else
                        ++*pc;
        }
        run.model.task[i].phase = DONE;
        run.model.task[i].result = 0;
        run.model.task[i].item = 0;
        run.model.task[i].cancelled = false;
        run.task[i] = NULL;
        run.ended++;
        return 0;
}

static int spawn_and_drive(const struct setting *s)
{
        RESHA_GROUP(g);
        int rc;

        resha_group_begin(&g, NULL);
        for (uintptr_t i = 0; i < s->tasks; i++)
                resha_spawn(&g, explored, (void *)i);
        do /* comes back when nobody else is ready: all have ended, or wait for what nobody will do */
                rc = resha_yield();
        while (rc == 0 && run.started < s->tasks);
        run.over = true;
        resha_group_cancel(&g);
        return resha_group_end(&g, rc);
}

static int one_run(const struct setting *s)
{
        memset(&run, 0, sizeof run);
        run.setting = s;
        run.model.owner = -1;
        run.model.permits = s->permits;
        run.model.capacity = s->capacity;
        int rc = resha_queue_new(1, s->capacity, NULL, &run.queue);
        if (rc < 0)
                return rc;
        resha_semaphore_init(&run.semaphore, s->permits);
        resha_condition_init(&run.condition, &run.mutex);
        rc = spawn_and_drive(s);
        search.runs++;
        /* Whatever was cancelled: all have ended, and gave back what they had. */
        ASSERT_EQ(run.ended, s->tasks);
        ASSERT_FALSE(resha_mutex_locked(&run.mutex));
        ASSERT_EQ(resha_semaphore_available(&run.semaphore), s->permits);
        resha_queue_free(run.queue);
        return rc;
}

/* The driver: all runs of one setting. */
static int all_runs(void *arg)
{
        struct rs_loop *l = rs_loop_current;
        const struct rs_backend_ops *world = l->backend->ops;
        struct rs_backend_ops ops = *world;
        int rc;

        ops.random = on_schedule;
        l->backend->ops = &ops;
        l->shuffle = l->each = true;
        l->run_left = 1; /* from the next switch on */
        do
                rc = one_run(arg);
        while (rc == 0 && !search.failed && next_path());
        l->shuffle = false;
        l->backend->ops = world;
        return rc;
}

static void explore(const struct setting *s)
{
        uint64_t *seen = resha_calloc(UINT64_C(1) << SEEN_BITS, sizeof *seen);

        ASSERT_TRUE(seen != NULL);
        search = (struct search){ .seen = seen };
        resha_run_opts opts = { .backend = "sim:0" };
        ASSERT_OK(resha_run(all_runs, (void *)(uintptr_t)s, &opts));
        resha_free(seen);
}

static void explore_all(const struct setting *settings, size_t n)
{
        uint64_t states = 0, runs = 0, steps = 0;

        for (size_t i = 0; i < n; i++) {
                explore(&settings[i]);
                states += search.states;
                runs += search.runs;
                steps += search.steps;
        }
        printf("%zu settings: %llu states visited, each with its invariants checked, in %llu runs of %llu steps\n", n,
               (unsigned long long)states, (unsigned long long)runs, (unsigned long long)steps);
}

#define EXPLORE(name, ...) \
        TEST(name) \
        { \
                static const struct setting settings[] = { __VA_ARGS__ }; \
                explore_all(settings, sizeof settings / sizeof settings[0]); \
        }

#define PROGRAMS(...) .program = { __VA_ARGS__ }
#define P(...) \
        { \
                __VA_ARGS__, END \
        }

/* ---- what is explored ---- */

EXPLORE(mutex, { 4, PROGRAMS(P(LOCK, UNLOCK), P(LOCK, UNLOCK), P(LOCK, UNLOCK), P(LOCK, UNLOCK)) },
        { 4, PROGRAMS(P(LOCK, UNLOCK, LOCK, UNLOCK), P(LOCK, UNLOCK, LOCK, UNLOCK), P(LOCK, UNLOCK, LOCK, UNLOCK),
                      P(LOCK, UNLOCK, LOCK, UNLOCK)) },
        { 2, PROGRAMS(P(LOCK, UNLOCK, LOCK, UNLOCK, LOCK, UNLOCK), P(LOCK, UNLOCK, LOCK, UNLOCK, LOCK, UNLOCK)) })

EXPLORE(semaphore,
        { 4, .permits = 1,
          PROGRAMS(P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE)) },
        { 4, .permits = 2,
          PROGRAMS(P(ACQUIRE, RELEASE, ACQUIRE, RELEASE), P(ACQUIRE, RELEASE, ACQUIRE, RELEASE), P(ACQUIRE, RELEASE),
                   P(ACQUIRE, RELEASE)) },
        { 4, .permits = 3,
          PROGRAMS(P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE)) })

EXPLORE(queue, { 4, .capacity = 0, PROGRAMS(P(PUT, PUT), P(PUT, PUT), P(GET, GET), P(GET, GET)) },
        { 4, .capacity = 1, PROGRAMS(P(PUT, PUT), P(PUT, PUT), P(GET, GET), P(GET, GET)) },
        { 4, .capacity = 2, PROGRAMS(P(PUT, PUT), P(PUT, PUT), P(GET, GET), P(GET)) },
        { 4, .capacity = 1, PROGRAMS(P(PUT, PUT), P(PUT, PUT), P(GET, GET), P(SHUTDOWN)) },
        { 4, .capacity = 0, PROGRAMS(P(PUT, PUT), P(GET, GET), P(GET, GET), P(SHUTDOWN)) },
        { 3, .capacity = 1, PROGRAMS(P(PUT, PUT, PUT), P(GET, GET), P(GET, PUT)) })

EXPLORE(event,
        { 4, PROGRAMS(P(EVENT_WAIT, EVENT_WAIT), P(EVENT_WAIT, EVENT_WAIT), P(EVENT_WAIT),
                      P(EVENT_SET, EVENT_CLEAR, EVENT_SET)) },
        { 4, PROGRAMS(P(EVENT_WAIT, EVENT_CLEAR, EVENT_WAIT), P(EVENT_WAIT, EVENT_SET), P(EVENT_SET, EVENT_CLEAR),
                      P(EVENT_WAIT)) })

EXPLORE(condition,
        { 4, PROGRAMS(P(LOCK, CONDITION_WAIT, UNLOCK), P(LOCK, CONDITION_WAIT, UNLOCK), P(LOCK, NOTIFY, UNLOCK),
                      P(LOCK, NOTIFY, UNLOCK)) },
        { 4, PROGRAMS(P(LOCK, CONDITION_WAIT, UNLOCK), P(LOCK, CONDITION_WAIT, UNLOCK), P(LOCK, CONDITION_WAIT, UNLOCK),
                      P(LOCK, NOTIFY_ALL, UNLOCK)) },
        { 4, PROGRAMS(P(LOCK, CONDITION_WAIT, UNLOCK), P(LOCK, CONDITION_WAIT, NOTIFY, UNLOCK), P(LOCK, UNLOCK),
                      P(LOCK, NOTIFY, UNLOCK)) },
        { 3, PROGRAMS(P(LOCK, CONDITION_WAIT, CONDITION_WAIT, UNLOCK), P(LOCK, CONDITION_WAIT, NOTIFY, UNLOCK),
                      P(LOCK, NOTIFY, UNLOCK, LOCK, NOTIFY_ALL, UNLOCK)) })

EXPLORE(select, { 4, .capacity = 0, PROGRAMS(P(SELECT, SELECT), P(GET), P(PUT, PUT), P(EVENT_SET, EVENT_CLEAR)) },
        { 4, .capacity = 1, PROGRAMS(P(SELECT, SELECT), P(SELECT), P(PUT, PUT), P(EVENT_SET, EVENT_CLEAR)) },
        { 4, .capacity = 0, PROGRAMS(P(SELECT, SELECT), P(EVENT_WAIT, EVENT_SET), P(PUT, SHUTDOWN), P(GET)) })

EXPLORE(select_both_sides, { 4, .capacity = 0, PROGRAMS(P(MEET), P(MEET), P(MEET), P(MEET)) },
        { 4, .capacity = 0, PROGRAMS(P(MEET, MEET), P(MEET, MEET), P(PUT), P(GET)) },
        { 4, .capacity = 0, PROGRAMS(P(MEET, MEET), P(MEET), P(PUT, GET), P(SELECT, EVENT_SET)) },
        { 3, .capacity = 0, PROGRAMS(P(MEET, MEET, MEET), P(MEET, MEET, MEET), P(MEET, MEET)) })

/* Each wrong model must be found out by one of these. */
static const struct setting revealing[] = {
        { 3, .permits = 1, PROGRAMS(P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE), P(ACQUIRE, RELEASE)) },
        { 2, .capacity = 1, PROGRAMS(P(PUT), P(GET)) },
        { 3, PROGRAMS(P(EVENT_WAIT), P(EVENT_WAIT), P(EVENT_SET)) },
        { 3, PROGRAMS(P(LOCK, CONDITION_WAIT, UNLOCK), P(LOCK, CONDITION_WAIT, UNLOCK), P(LOCK, NOTIFY, UNLOCK)) },
        { 3, PROGRAMS(P(SELECT), P(PUT), P(EVENT_SET)) },
};

TEST(a_model_that_is_wrong_is_found_out)
{
        for (planted = RIGHT + 1; planted < PLANTED; planted++) {
                search.failed = NULL;
                for (size_t i = 0; !search.failed && i < sizeof revealing / sizeof revealing[0]; i++)
                        explore(&revealing[i]);
                if (!search.failed)
                        FAIL("planted %d was not found", (int)planted);
        }
}
