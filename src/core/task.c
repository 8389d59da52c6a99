/* SPDX-License-Identifier: MIT */
/* Tasks: making, ending, handles.
 *
 *     rs_task_new() -- queued --> first run, when sched.c binds a stack -- fn returns --> rs_task_end(): handle and
 *     group are told, the struct is freed
 *
 * The structs come from slabs of the loop and go back at once when a task has ended: what may be looked at later is in
 * the handle, which is the caller's. */

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/core.h"
#include "core/probe.h"
#include "core/slab.h"
#include "core/waited.h"
#include "sys/sys.h"

enum { RS_COPY_MAX = 16 * 1024, RS_NAME_MAX = 48 };

static bool slab_add(struct rs_loop *l)
{
        char *memory = resha_malloc(sizeof(struct rs_slab) + _Alignof(struct rs_slab));

        if (!memory)
                return false;
        struct rs_slab *s = (void *)(memory + _Alignof(struct rs_slab) - (uintptr_t)memory % _Alignof(struct rs_slab));
        s->memory = memory;
        rs_list_push(&l->slabs, &s->node);
        for (size_t i = RS_SLAB_TASKS; i-- > 0;) {
                s->tasks[i].fn = NULL;
                s->tasks[i].sleep.seq = 0;
                s->tasks[i].ready_next = l->task_free;
                l->task_free = &s->tasks[i];
        }
        return true;
}

/* All but the timer of its sleep. Sixteen bytes at a time: an assignment of the struct becomes a loop of three times as
 * many instructions, and this is a tenth of a spawn. */
static inline void clear(struct rs_task *t)
{
        typedef uint64_t pair __attribute__((vector_size(16), may_alias));
        enum { FROM = offsetof(struct rs_task, ready_next), TO = sizeof(struct rs_task) };

        _Static_assert(FROM % sizeof(pair) == 0 && TO % sizeof(pair) == 0, "odd words at the ends");
#pragma GCC unroll 32
        for (size_t i = FROM / sizeof(pair); i < TO / sizeof(pair); i++)
                ((pair *)(void *)t)[i] = (pair){ 0 };
}

void rs_slabs_free(struct rs_loop *l)
{
        struct rs_node *n;

        while ((n = rs_list_pop(&l->slabs)))
                resha_free(RS_CONTAINER(n, struct rs_slab, node)->memory);
}

struct rs_task *rs_task_new(struct rs_loop *l, resha_fn *fn, void *arg)
{
        if (RS_UNLIKELY(!l->task_free) && !slab_add(l))
                return NULL;
        struct rs_task *t = l->task_free;

        l->task_free = t->ready_next;
        clear(t);
        t->fn = fn;
        t->arg = arg;
        t->frame_low = UINTPTR_MAX;
        t->mark = ++l->last_mark;
        t->started = l->now;
        l->tasks++;
        if (RS_UNLIKELY(l->watch != NULL))
                rs_task_watch(l, t);
        return t;
}

/* What most tasks do not have. */
static __attribute__((noinline)) void free_extras(struct rs_loop *l, struct rs_task *t)
{
        rs_records_free(l, &t->records);
        rs_local_drop(l, t->locals);
        if (t->named)
                resha_free((void *)(uintptr_t)t->name);
        if (t->owns_arg)
                resha_free(t->arg);
}

static void task_free(struct rs_loop *l, struct rs_task *t)
{
        if (RS_UNLIKELY((uintptr_t)t->records.first | (uintptr_t)t->locals | t->named | t->owns_arg))
                free_extras(l, t);
        t->fn = NULL;
        t->ready_next = l->task_free;
        l->task_free = t;
        l->tasks--;
}

void rs_slab_each(struct rs_loop *l, struct rs_node *slab, void (*fn)(struct rs_loop *l, struct rs_task *t, void *arg),
                  void *arg)
{
        struct rs_slab *s = RS_CONTAINER(slab, struct rs_slab, node);

        for (size_t i = 0; i < RS_SLAB_TASKS; i++)
                if (s->tasks[i].fn)
                        fn(l, &s->tasks[i], arg);
}

static void handle_ended(struct rs_loop *l, struct rs_task *t, int rc)
{
        resha_task *h = t->handle;
        struct rs_list *waiters = (struct rs_list *)(void *)h->_waiters;
        struct rs_node *n;

        h->_status = rc;
        h->_state = RS_HANDLE_ENDED;
        h->_task = NULL;
        while ((n = rs_list_pop(waiters)))
                rs_wake(RS_CONTAINER(n, struct rs_wait, node), rs_status_tell(rc));
        if (RS_UNLIKELY(l->watchers.first != NULL))
                rs_watch_ended(l, h);
}

void rs_task_end(struct rs_loop *l, struct rs_task *t, int rc)
{
        bool cancelled = false;

        while (RS_UNLIKELY(t->outermost != NULL)) {
                if (t->scope->is_group)
                        rs_frame_abort(l);
                rs_scope_close(l, t->scope);
        }
        if (RS_UNLIKELY(rc < 0 || t->escaped)) {
                rc = rs_attribute(l, t, rc, rs_task_base_cancelled(t));
                cancelled = rc == -ECANCELED && rs_task_base_cancelled(t);
        }
        if (t->handle)
                handle_ended(l, t, rc);
        if (t->group) {
                rs_group_child_ended(l, t->group, t, rc, cancelled);
        } else {
                l->finished = true;
                l->main_result = rc;
                if (rc < 0 && l->opts.ret_error)
                        rs_error_describe(l, t, rc, l->opts.ret_error);
        }
        RS_EVENT(l, rs_ring_ended(l, t, rc));
        RS_PROBE_END(t, rc);
        task_free(l, t);
}

/* A limit of the system, said so that its owner can move it. */
static __attribute__((noinline, cold)) int no_stack(struct rs_loop *l, int rc)
{
        char kernel[32];

        if (rc == -EAGAIN)
                resha_fail_at(rc, NULL, "no stack for one more task beside %zu on Linux %s: %s", l->tasks,
                              rs_sys_kernel(kernel),
                              l->stacks.light_guards
                                      ? "no address space; raise ulimit -v, or vm.max_map_count by sysctl"
                                      : "each stack's guard costs two mappings; raise vm.max_map_count by "
                                        "sysctl, or use Linux 6.13 or later");
        return rc;
}

int rs_spawn(struct rs_loop *l, struct rs_group *g, resha_fn *fn, void *arg, const char *name, const char *site,
             struct rs_task **ret_task)
{
        int rc = rs_stack_reserve(&l->stacks);
        struct rs_task *t;

        if (RS_UNLIKELY(rc < 0))
                return no_stack(l, rc);
        t = rs_task_new(l, fn, arg);
        if (RS_UNLIKELY(!t)) {
                rs_stack_unreserve(&l->stacks);
                return no_stack(l, -ENOMEM);
        }
        t->name = name;
        t->site = site;
        t->group = g;
        t->scope = &g->scope;
        if (RS_UNLIKELY(l->locals != 0) && l->current)
                t->locals = rs_local_hold(l->current->locals);
        rs_list_push(&g->children, &t->sibling);
        g->running++;
        rs_ready(l, t);
        RS_EVENT(l, rs_ring_spawned(l, t));
        RS_PROBE_SPAWN(l, t);
        *ret_task = t;
        return 0;
}

static void spawner_cancel(struct rs_wait *w)
{
        struct rs_group *g = (struct rs_group *)(uintptr_t)w->object;

        rs_list_remove(&g->spawners, &w->node);
        rs_wake(w, -ECANCELED);
}

static void place_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                      struct rs_waited *ret)
{
        struct rs_group g;

        (void)at;
        if (r->read(&g, w->object, sizeof g))
                snprintf(ret->detail, sizeof ret->detail, "%zu of %zu run", g.running, g.limit);
}

const struct rs_waits rs_place_waits = { .cancel = spawner_cancel, .see = place_see };

/* A place under the limit: it is counted in `running` for us by the child that ended, and given back here: the spawn
 * counts it again. */
static int wait_for_place(struct rs_loop *l, struct rs_group *g)
{
        struct rs_wait w = { .cancel = spawner_cancel, .what = "place in group", .object = g };

        rs_list_push(&g->spawners, &w.node);
        int rc = (int)rs_wait(l, &w);
        if (rc < 0)
                return rc;
        g->running--;
        if (!g->scope.effective)
                return 0;
        rs_group_place_free(g); /* the spawner stands outside of a group that was cancelled meanwhile */
        return -ECANCELED;
}

static __attribute__((noinline, cold)) int group_not_open(void)
{
        return resha_fail_at(-EPERM, NULL,
                             "the group of a spawn is not open: resha_group_begin() first, and spawn before "
                             "its end");
}

/* Open, not cancelled, and with a place. */
static int may_spawn(struct rs_loop *l, struct rs_group *g)
{
        if (RS_UNLIKELY(!rs_scope_is_here(&g->scope) || !g->scope.is_group))
                return group_not_open();
        if (RS_LIKELY(g->limit == SIZE_MAX))
                return RS_UNLIKELY(g->scope.effective) ? -ECANCELED : 0;
        int rc = rs_enter(&l);
        if (rc == 0 && g->scope.effective)
                rc = -ECANCELED;
        if (rc == 0 && (g->running >= g->limit || !rs_list_empty(&g->spawners)))
                rc = wait_for_place(l, g);
        return rc;
}

/* There was a place, but no task: the place is free for others. Nobody need look at the result where the argument is
 * borrowed: the group fails with it. */
static __attribute__((noinline, cold)) int not_spawned(struct rs_loop *l, struct rs_group *g, int rc, bool borrowed)
{
        resha_error e = *resha_error_of(rc);

        if (l->current)
                rs_error_describe(l, l->current, rc, &e);
        if (borrowed)
                rs_group_fail(l, g, rc, &e, RS_CAUSE_BODY_FAILED);
        rs_group_place_free(g);
        return rc;
}

int resha_spawn_at(resha_group *group, resha_fn *fn, void *arg, const char *name, const char *site)
{
        struct rs_loop *l = rs_loop_current;
        struct rs_group *g = rs_group_of(group);
        struct rs_task *t;

        if (RS_UNLIKELY(!l))
                return rs_outside();
        /* By who has opened it, as most are. */
        bool plain = g->scope.task && g->scope.task == l->current && g->limit == SIZE_MAX && !g->scope.effective;
        int rc = RS_LIKELY(plain) ? 0 : may_spawn(l, g);
        if (RS_UNLIKELY(rc < 0))
                return rc;
        rc = rs_spawn(l, g, fn, arg, name, site, &t);
        return RS_LIKELY(rc == 0) ? 0 : not_spawned(l, g, rc, true);
}

static __attribute__((noinline, cold)) int bad_opts(const resha_spawn_opts *o)
{
        if (!rs_reserved_zero(o->_reserved))
                return resha_fail_at(-EINVAL, NULL, "a reserved word of spawn options is not zero");
        if (o->copy > RS_COPY_MAX)
                return resha_fail_at(-EINVAL, NULL, "a spawn copies %zu bytes: at most %d", o->copy, RS_COPY_MAX);
        return resha_fail_at(-EBUSY, NULL,
                             "the handle of a spawn is that of a task that runs: wait for it, or use another");
}

/* A handle is told of its task's end: that of a task that still runs is not given to another. */
static int check_opts(const resha_spawn_opts *o)
{
        bool taken = o->task && o->task->_state == RS_HANDLE_RUNNING;

        return RS_LIKELY(rs_reserved_zero(o->_reserved) && o->copy <= RS_COPY_MAX && !taken) ? 0 : bad_opts(o);
}

static __attribute__((noinline, cold)) int no_extras(int rc, const resha_spawn_opts *o)
{
        if (rc == -EINVAL)
                resha_fail_at(rc, NULL, "a task's stack of %zu bytes: %zu to 4 GiB", o->stack, (size_t)RS_STACK_MIN);
        return rc;
}

/* The parts of a task that most have not: a copied argument, a stack of another size. Made before the task is. */
static int spawn_extras(struct rs_loop *l, const void *arg, const resha_spawn_opts *o, void **ret_copy,
                        struct rs_stack **ret_stack)
{
        int rc = 0;

        if (o->copy) {
                *ret_copy = resha_malloc(o->copy);
                if (!*ret_copy)
                        return -ENOMEM;
                memcpy(*ret_copy, arg, o->copy);
        }
        if (o->stack && o->stack != l->stacks.slice)
                rc = rs_stack_map(&l->stacks, o->stack, ret_stack);
        return RS_LIKELY(rc == 0) ? 0 : no_extras(rc, o);
}

int resha_spawn_task_at(resha_group *g, resha_fn *fn, void *arg, resha_task *handle, const char *name, const char *site)
{
        return resha_spawn_opt(g, fn, arg, &(resha_spawn_opts){ .task = handle, .name = name, .site = site });
}

int resha_spawn_copy_at(resha_group *g, resha_fn *fn, const void *arg, size_t size, const char *name, const char *site)
{
        return resha_spawn_opt(g, fn, arg, &(resha_spawn_opts){ .copy = size, .name = name, .site = site });
}

int resha_spawn_opt(resha_group *group, resha_fn *fn, const void *arg, const resha_spawn_opts *opts)
{
        static const resha_spawn_opts defaults;
        const resha_spawn_opts *o = opts ? opts : &defaults;
        struct rs_loop *l = rs_loop_current;
        struct rs_group *g = rs_group_of(group);
        struct rs_stack *stack = NULL;
        struct rs_task *t;
        void *copy = NULL;

        if (!l)
                return rs_outside();
        int rc = may_spawn(l, g);
        if (rc < 0)
                return rc;
        rc = check_opts(o);
        if (rc == 0)
                rc = spawn_extras(l, arg, o, &copy, &stack);
        if (rc == 0)
                rc = rs_spawn(l, g, fn, copy ? copy : (void *)(uintptr_t)arg, o->name ? o->name : "task", o->site, &t);
        if (rc < 0) {
                resha_free(copy);
                if (stack)
                        rs_stack_give(&l->stacks, stack);
                return not_spawned(l, g, rc, o->copy == 0);
        }
        t->owns_arg = copy != NULL;
        if (stack) {
                t->stack = stack;
                rs_stack_unreserve(&l->stacks);
        }
        if (o->task) {
                *o->task = (resha_task){ ._task = t, ._state = RS_HANDLE_RUNNING, ._loop = l };
                t->handle = o->task;
                if (RS_UNLIKELY(l->watchers.first != NULL))
                        rs_watch_spawned(l, o->task);
        }
        return 0;
}

/* ---- handles ---- */

bool resha_task_done(const resha_task *h, int *ret_status)
{
        if (h->_state != RS_HANDLE_ENDED)
                return false;
        if (ret_status)
                *ret_status = h->_status;
        return true;
}

void resha_task_cancel_at(resha_task *h, const char *site)
{
        if (h->_state == RS_HANDLE_RUNNING && h->_loop == rs_loop_current)
                rs_task_cancel(rs_loop_current, h->_task, RS_CAUSE_CALL, site);
}

const char *resha_task_name(void)
{
        struct rs_loop *l = rs_loop_current;

        return l && l->current ? l->current->name : NULL;
}

int resha_task_set_name(const char *name)
{
        struct rs_loop *l = rs_loop_current;

        if (!l || !l->current)
                return rs_outside();
        size_t n = strnlen(name, RS_NAME_MAX - 1);
        char *copy = resha_malloc(n + 1);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, name, n);
        copy[n] = 0;
        struct rs_task *t = l->current;
        if (t->named)
                resha_free((void *)(uintptr_t)t->name);
        t->name = copy;
        t->named = true;
        RS_EVENT(l, rs_ring_named(l, t));
        return 0;
}
