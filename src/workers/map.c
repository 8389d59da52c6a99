/* SPDX-License-Identifier: MIT */
/* Maps: a group with a task for each worker that is used at a time, a lane. A lane takes a seat, fills its desk, and
 * waits for bytes of its worker until all that it has put there is settled; then again, as long as there is something.
 * Others who want a seat get it in between.
 *
 * A cancel takes back what waits and kills what runs; nothing of the caller is used by the workers, so nothing is
 * waited for. The seat may be taken by the next one at once, who waits until the worker there is another one.
 *
 * In the simulated world a lane runs its items itself, each after a delay of the world's luck, on a copy. */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "os/delay.h"
#include "sys/sys.h"
#include "workers/workers.h"

/* ---- waiting for a worker ---- */

struct alarm {
        struct rs_timer timer;
        struct rs_loop *loop;
        struct rs_op *op;
};

static void alarm_fire(struct rs_timer *t)
{
        struct alarm *a = RS_CONTAINER(t, struct alarm, timer);

        rs_operation_abort(a->loop, a->op, -ETIME);
}

/* 0: there may be something to see; -ETIME: the deadline has passed; else what ends the lane. */
static __attribute__((noinline)) int wait_for_byte(resha_workers *w, const struct rs_seat *s, int64_t deadline)
{
        struct rs_op op = { .kind = RS_OP_POLL, .fd = s->fd, .events = POLLIN };
        struct alarm a = { .timer = { .fire = alarm_fire }, .op = &op };
        char buf[64];
        int rc = rs_enter(&a.loop);

        if (rc < 0)
                return rc;
        if (deadline != INT64_MAX)
                rs_timer_set(a.loop, &a.timer, deadline);
        rc = (int)rs_operation(a.loop, &op, "worker process");
        rs_timer_clear(a.loop, &a.timer);
        if (rc < 0)
                return rc;
        ssize_t n = rs_sys_recv(s->fd, buf, sizeof buf);
        return n == 0 || (n < 0 && n != -EAGAIN) ? rs_workers_lost(w) : 0;
}

/* The worker that had the seat may still write to the desk. */
static int wait_for_another(resha_workers *w, struct rs_seat *s)
{
        int rc = 0;

        while (rc == 0 && s->dying) {
                s->dying = __atomic_load_n(&s->desk->generation, __ATOMIC_ACQUIRE) == s->generation;
                if (s->dying)
                        rc = wait_for_byte(w, s, INT64_MAX);
        }
        return rc;
}

/* Until all that is at the desk is settled. */
static int see_through(struct rs_lane *lane)
{
        struct rs_seat *s = lane->seat;
        int rc = rs_sys_send(s->fd, "", 1) < 0 ? rs_workers_lost(lane->map->w) : 0;

        while (rc == 0 && lane->open) {
                rc = wait_for_byte(lane->map->w, s, rs_lane_deadline(lane));
                if (rc == -ETIME)
                        rc = rs_lane_overrun(lane);
                if (rc == 0)
                        rc = rs_lane_collect(lane);
        }
        if (rc < 0)
                rs_lane_drop(lane);
        return rc;
}

/* 1: one desk was filled and done; 0: nothing is left. */
static int round_of(struct rs_lane *lane)
{
        struct rs_map *m = lane->map;
        int rc = wait_for_another(m->w, lane->seat);

        if (rc == 0)
                rc = rs_lane_fill(lane);
        if (rc <= 0) {
                if (lane->count)
                        rs_lane_drop(lane);
                return rc;
        }
        rs_list_push(&m->working, &lane->node);
        rc = see_through(lane);
        rs_list_remove(&m->working, &lane->node);
        return rc < 0 ? rc : 1;
}

static __attribute__((noinline)) int take_seat(struct rs_lane *lane)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return rc < 0 ? rc : rs_seat_take(l, lane->map->w, &lane->seat);
}

static int lane_main(void *arg)
{
        struct rs_lane *lane = arg;
        resha_workers *w = lane->map->w;
        int rc = 1;

        while (rc > 0) {
                rc = take_seat(lane);
                if (rc < 0)
                        return rc;
                do
                        rc = round_of(lane);
                while (rc > 0 && !rs_seat_wanted(w));
                rs_seat_leave(w, lane->seat);
        }
        return rc;
}

/* ---- the simulated world ---- */

static int call_inline(struct rs_map *m, char *copy, resha_bytes *b)
{
        RESHA_SCOPE(s);

        resha_nosuspend_begin(&s, "item of a worker");
        rs_local_job(true, NULL);
        int rc = m->bytes ? m->bytes(b->data, b->size, &b->ret_data, &b->ret_size) : m->fn(copy);
        rs_local_job(false, NULL);
        return resha_scope_end(&s, rc);
}

static int too_large(const resha_workers *w, const char *what, size_t size)
{
        return resha_fail_at(-EMSGSIZE, NULL, "%s of %zu bytes: at most %zu (largest in the options)", what, size,
                             w->largest);
}

/* What a worker would send of the result: nothing that has no bytes, or no place. */
static int inline_result(const resha_workers *w, int rc, resha_bytes *b)
{
        if (!b->ret_data)
                b->ret_size = 0;
        if (rc >= 0 && b->ret_size > w->largest)
                rc = too_large(w, "a result", b->ret_size);
        if (rc < 0 || !b->ret_size) {
                resha_free(b->ret_data);
                b->ret_data = NULL;
        }
        return rc;
}

static int run_inline(struct rs_map *m, size_t item, char *copy)
{
        char *data = rs_map_item(m, item);
        resha_bytes b = { 0 }, *of = m->bytes ? (resha_bytes *)(void *)data : &b;

        b.data = of->data;
        b.size = of->size;
        if (!m->bytes && m->size)
                memcpy(copy, data, m->size);
        int rc = b.size > m->w->largest ? too_large(m->w, "an argument", b.size)
                                        : inline_result(m->w, call_inline(m, copy, &b), &b);
        if (rc < 0)
                return rs_map_failed(m, item, rc);
        of->ret_data = b.ret_data;
        of->ret_size = b.ret_size;
        if (!m->bytes && m->size)
                memcpy(data, copy, m->size);
        rs_map_succeeded(m, item, rc);
        return 0;
}

static __attribute__((noinline)) int delay(struct rs_lane *lane)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = rs_seat_take(l, lane->map->w, &lane->seat);
        if (rc < 0)
                return rc;
        rc = rs_delay(l, "worker process");
        rs_seat_leave(lane->map->w, lane->seat);
        return rc;
}

static int lane_simulated(void *arg)
{
        struct rs_lane *lane = arg;
        struct rs_map *m = lane->map;
        char *copy = resha_malloc(m->size + 1);
        int rc = copy ? 0 : -ENOMEM;

        while (rc == 0 && m->next < m->n) {
                size_t item = m->next++;
                rc = delay(lane);
                if (rc == 0)
                        rc = run_inline(m, item, copy);
        }
        resha_free(copy);
        return rc;
}

/* ---- what is shown ---- */

static void refresh(void *object)
{
        struct rs_map *m = object;

        m->figures[RS_MAP_LEFT] = m->n - m->figures[RS_MAP_DONE] - m->figures[RS_MAP_FAILED];
}

static void describe(const void *object, char *text, size_t size)
{
        const struct rs_map *m = object;

        snprintf(text, size, "%" PRIu64 " of %zu items done, %" PRIu64 " failed; by %u workers",
                 m->figures[RS_MAP_DONE], m->n, m->figures[RS_MAP_FAILED], m->lanes);
}

static const resha_figure figures[RS_MAP_FIGURES] = {
        [RS_MAP_LEFT] = { "resha_workers_items", "Items of maps that run and wait to be done.", RESHA_FIGURE_GAUGE,
                          false },
        [RS_MAP_DONE] = { "resha_workers_done_total", "Items that have succeeded.", RESHA_FIGURE_COUNTER, false },
        [RS_MAP_FAILED] = { "resha_workers_failed_total", "Items that have failed.", RESHA_FIGURE_COUNTER, false },
};

static const resha_shown_kind map_kind = { .kind = "map over processes",
                                           .figures = figures,
                                           .count = RS_MAP_FIGURES,
                                           .label = "workers",
                                           .describe = describe,
                                           .refresh = refresh };

/* Until it returns. */
static void show(struct rs_loop *l, struct rs_map *m, const void *opened_by)
{
        rs_shown_add(l, &m->shown, &map_kind, m, -1);
        rs_shown_opened(&m->shown, opened_by);
        m->shown.name = m->w->name;
        m->shown.values = m->figures;
        m->shown.ours = true;
}

/* ---- maps ---- */

static void prepare(const struct rs_map *m)
{
        const resha_gather_opts *o = m->opts;

        for (size_t i = 0; i < m->n && m->bytes; i++) {
                resha_bytes *b = (resha_bytes *)(void *)rs_map_item(m, i);
                b->ret_data = NULL;
                b->ret_size = 0;
        }
        for (size_t i = 0; i < m->n && (o->ret_status || o->ret_errors); i++) {
                if (o->ret_status)
                        o->ret_status[i] = -ECANCELED;
                if (o->ret_errors)
                        o->ret_errors[i] = (resha_error){ .code = -ECANCELED, .text = "cancelled before it was done" };
        }
}

static int check(const struct rs_map *m)
{
        if (!m->w)
                return resha_fail_at(-EINVAL, NULL, "no workers: resha_workers_start() has failed or was not called");
        if (!rs_reserved_zero(m->opts->_reserved) || m->n >= UINT32_MAX)
                return resha_fail_at(-EINVAL, NULL, "a map of %zu items: less than 2^32, and reserved words zero",
                                     m->n);
        if (!m->bytes && m->size > m->w->largest)
                return resha_fail_at(-EMSGSIZE, NULL,
                                     "items of %zu bytes: workers \"%s\" take at most %zu (largest in the options)",
                                     m->size, m->w->name, m->w->largest);
        if (m->w->pid != rs_sys_pid())
                return resha_fail_at(-EPERM, NULL, "workers \"%s\" belong to another process", m->w->name);
        return 0;
}

static int run_lanes(struct rs_map *m, resha_fn *fn)
{
        RESHA_GROUP(g);
        struct rs_lane *lanes = resha_calloc(m->lanes, sizeof *lanes);

        if (!lanes)
                return -ENOMEM;
        resha_group_begin(&g, NULL);
        rs_group_of(&g)->child_done = rs_group_passes_over;
        for (unsigned i = 0; i < m->lanes; i++) {
                lanes[i].map = m;
                resha_spawn(&g, fn, &lanes[i]);
        }
        int rc = resha_group_end(&g, 0);
        resha_free(lanes);
        return rc;
}

/* The lanes are nothing that the caller knows: what has failed is an item. */
static void name_item(int rc)
{
        resha_error e = *resha_error_of(rc);

        if (!e.items)
                return;
        e.task = e.spawned_at = NULL;
        e.after = (resha_duration){ 0 };
        e.cancelled = 0;
        rs_error_give(rs_loop_current, &e);
}

static __attribute__((noinline)) int enter(struct rs_loop **ret_loop)
{
        return rs_enter(ret_loop);
}

static int run_map(struct rs_map *m, const void *called_by)
{
        static const resha_gather_opts defaults;
        struct rs_loop *l;
        resha_workers *w = m->w;

        m->opts = m->opts ? m->opts : &defaults;
        if (m->n < UINT32_MAX) /* else it is refused */
                prepare(m);
        int rc = enter(&l);
        if (rc == 0)
                rc = check(m);
        if (rc == 0 && m->n) {
                size_t lanes = m->opts->limit && m->opts->limit < w->processes ? m->opts->limit : w->processes;
                m->lanes = (unsigned)(lanes < m->n ? lanes : m->n);
                rs_lock(&w->lock);
                w->refs++;
                rs_unlock(&w->lock);
                show(l, m, called_by);
                rc = run_lanes(m, w->simulated || l->simulated ? lane_simulated : lane_main);
                rs_shown_remove(&m->shown);
                rs_workers_unref(w);
                if (rc < 0)
                        name_item(rc);
        }
        if (m->opts->ret_failed)
                *m->opts->ret_failed = m->n - m->figures[RS_MAP_DONE];
        return rc;
}

int resha_workers_map(resha_workers *w, resha_fn *fn, void *items, size_t n, size_t size, const resha_gather_opts *opts)
{
        return run_map(&(struct rs_map){ .w = w, .fn = fn, .items = items, .n = n, .size = size, .opts = opts },
                       __builtin_return_address(0));
}

int resha_workers_map_bytes(resha_workers *w, resha_bytes_fn *fn, resha_bytes *items, size_t n,
                            const resha_gather_opts *opts)
{
        return run_map(
                &(struct rs_map){
                        .w = w, .bytes = fn, .items = (char *)items, .n = n, .size = sizeof *items, .opts = opts },
                __builtin_return_address(0));
}
