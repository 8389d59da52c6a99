/* SPDX-License-Identifier: MIT */
/* A lane: one worker's share of a map, cell by cell.
 *
 * How many items are put on a desk is guided by how many are left: large chunks first, single items at the end. Whoever
 * has nothing left takes back half of what waits at another's desk, so that a wrong guess costs one item's time at
 * most. All lanes of a map are tasks of one loop; what they share with a worker is moved by compare-and-swap. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <resha/alloc.h>

#include "sys/sys.h"
#include "workers/workers.h"

#define OVERWRITTEN "worker process: it has overwritten what it shares"

/* ---- results ---- */

static struct rs_lock sites_lock = RS_LOCK_INIT;

void rs_lane_forked(void)
{
        sites_lock = (struct rs_lock)RS_LOCK_INIT;
}

/* A place is static in records, and a worker's is text. */
static const char *site_here(const char *text)
{
        enum { SITES = 128 };
        static char sites[SITES][sizeof((struct rs_said *)0)->site];
        const char *found = NULL;
        size_t size = strnlen(text, sizeof sites[0] - 1);

        if (size == 0)
                return NULL;
        rs_lock(&sites_lock);
        for (int i = 0; i < SITES && !found; i++) {
                if (!sites[i][0])
                        memcpy(sites[i], text, size);
                if (strncmp(sites[i], text, size) == 0 && !sites[i][size])
                        found = sites[i];
        }
        rs_unlock(&sites_lock);
        return found;
}

void rs_map_succeeded(struct rs_map *m, size_t item, int rc)
{
        const resha_gather_opts *o = m->opts;

        m->figures[RS_MAP_DONE]++;
        if (o->ret_status)
                o->ret_status[item] = rc;
        if (o->ret_errors)
                o->ret_errors[item] = (resha_error){ 0 };
}

int rs_map_failed(struct rs_map *m, size_t item, int rc)
{
        const resha_gather_opts *o = m->opts;
        resha_error e = *resha_error_of(rc);

        m->figures[RS_MAP_FAILED]++;
        e.code = rc;
        e.item = (uint32_t)(item + 1);
        e.items = (uint32_t)m->n;
        e.task = e.spawned_at = NULL; /* the lane's, which is ours */
        if (o->ret_status)
                o->ret_status[item] = rc;
        if (o->ret_errors)
                o->ret_errors[item] = e;
        if (o->keep_going)
                return 0;
        rs_error_give(rs_loop_current, &e);
        return rc;
}

static int said(int rc, const struct rs_said *s)
{
        char text[sizeof s->text];
        size_t size = strnlen(s->text, sizeof text - 1);

        memcpy(text, s->text, size);
        text[size] = 0;
        return resha_fail_at(rc, site_here(s->site), "%s", size ? text : resha_strerror(rc));
}

static int died(const resha_workers *w, const struct rs_cell *c)
{
        char limit[80] = "";
        const char *name = sigabbrev_np(c->status);

        if (c->code == 0)
                return resha_fail_at(-EAGAIN, NULL,
                                     "worker process: none could be forked for %.1f s (%s); allow more processes "
                                     "(ulimit -u, pids.max of the control group)",
                                     (double)rs_workers_starved_ns / 1e9, resha_strerror(-c->status));
        if (c->code == RS_DIED_SLOWLY)
                return resha_fail_at(-ETIMEDOUT, NULL,
                                     "worker process: its init took longer than %.3f s (time in the options), again "
                                     "and again, and was killed",
                                     (double)w->time / 1e9);
        if (c->code == CLD_EXITED)
                return resha_fail_at(RESHA_EPROCESS, NULL,
                                     "worker process: exit status %d; an item ends by returning, not by exit()",
                                     c->status);
        if (w->memory && (c->status == SIGSEGV || c->status == SIGABRT))
                snprintf(limit, sizeof limit, "; if for want of memory: it may have %.4g MiB (memory in the options)",
                         (double)w->memory / 1048576);
        else if (c->status == SIGKILL)
                snprintf(limit, sizeof limit, ", by somebody or by the kernel for want of memory (see dmesg)");
        else
                snprintf(limit, sizeof limit, "; to see where, call the function with this item in the program");
        return resha_fail_at(RESHA_EPROCESS, NULL, "worker process: killed by signal %d (SIG%s)%s", c->status,
                             name ? name : "?", limit);
}

/* The bytes of a result. 0 or a code with its record. */
static int fetch(struct rs_lane *lane, const struct rs_cell *c, resha_bytes *b)
{
        resha_workers *w = lane->map->w;
        uint64_t at = c->ret_at, size = c->ret_size;

        b->ret_data = NULL;
        b->ret_size = 0;
        if (size == 0)
                return 0;
        if (size > w->area || at > w->area - size)
                return resha_fail_at(RESHA_EPROCESS, NULL, OVERWRITTEN);
        lane->seat->big |= at + size > RS_DESK_BIG;
        void *copy = resha_malloc(size);
        if (!copy)
                return resha_fail_at(-ENOMEM, NULL, "no memory for a result of %llu bytes", (unsigned long long)size);
        memcpy(copy, rs_desk_results(w, lane->seat->desk) + at, size);
        b->ret_data = copy;
        b->ret_size = size;
        return 0;
}

static int done(struct rs_lane *lane, unsigned i)
{
        struct rs_map *m = lane->map;
        struct rs_desk *d = lane->seat->desk;
        const struct rs_cell *c = &d->cells[i];
        size_t item = lane->item[i];
        int rc = c->result;

        if (rc < 0)
                return rs_map_failed(m, item, said(rc, &d->said[i]));
        if (m->bytes) {
                int got = fetch(lane, c, (resha_bytes *)(void *)rs_map_item(m, item));
                if (got < 0)
                        return rs_map_failed(m, item, got);
        } else if (m->size) {
                memcpy(rs_map_item(m, item), rs_desk_items(d) + (size_t)i * ((m->size + 15) & ~(size_t)15), m->size);
        }
        rs_map_succeeded(m, item, rc);
        return 0;
}

static void settle(struct rs_lane *lane, unsigned i)
{
        lane->settled[i] = true;
        lane->open--;
}

/* No state that a cell of a lane has. Who has done that and is still there will do nothing more for it. */
static int overwritten(struct rs_lane *lane, unsigned i, uint32_t generation)
{
        if (generation == lane->generation)
                rs_seat_kill(lane->map->w, lane->seat, generation);
        return rs_map_failed(lane->map, lane->item[i], resha_fail_at(RESHA_EPROCESS, NULL, OVERWRITTEN));
}

static int collect_cell(struct rs_lane *lane, unsigned i, uint32_t generation)
{
        const struct rs_cell *c = &lane->seat->desk->cells[i];
        uint32_t state = rs_cell_state(c);

        if (state == RS_CELL_WAITING || state == RS_CELL_RUNNING)
                return 0;
        settle(lane, i);
        if (state == RS_CELL_DONE)
                return done(lane, i);
        if (state == RS_CELL_DIED)
                return rs_map_failed(lane->map, lane->item[i], died(lane->map->w, c));
        return overwritten(lane, i, generation);
}

int rs_lane_collect(struct rs_lane *lane)
{
        struct rs_desk *d = lane->seat->desk;
        uint32_t generation = __atomic_load_n(&d->generation, __ATOMIC_ACQUIRE);
        uint32_t want_room = __atomic_load_n(&d->want_room, __ATOMIC_SEQ_CST);
        int rc = 0;

        for (unsigned i = 0; i < lane->count && rc == 0; i++)
                if (!lane->settled[i])
                        rc = collect_cell(lane, i, generation);
        lane->generation = generation;
        if (want_room && rc == 0) {
                lane->room = rs_sys_now();
                __atomic_store_n(&d->want_room, 0, __ATOMIC_SEQ_CST);
                (void)rs_sys_send(lane->seat->fd, "", 1);
        }
        return rc;
}

/* ---- time, and the end ---- */

/* When what runs, an item or init, will have taken too long. What has begun in times to come was overwritten, and is
 * over the time: *ret_wild, if anybody asks. */
static int64_t due(const struct rs_lane *lane, bool *ret_wild)
{
        int64_t began = __atomic_load_n(&lane->seat->desk->began, __ATOMIC_ACQUIRE), now = rs_sys_now();

        if (ret_wild)
                *ret_wild = began > now;
        return began > now ? 0 : rs_time_add(began > lane->room ? began : lane->room, lane->map->w->time);
}

int64_t rs_lane_deadline(const struct rs_lane *lane)
{
        const struct rs_desk *d = lane->seat->desk;
        int64_t time = lane->map->w->time;

        if (!time)
                return INT64_MAX;
        for (unsigned i = 0; i < lane->count; i++)
                if (!lane->settled[i] && rs_cell_state(&d->cells[i]) == RS_CELL_RUNNING)
                        return due(lane, NULL);
        if (__atomic_load_n(&d->init, __ATOMIC_ACQUIRE) == RS_CELL_RUNNING)
                return due(lane, NULL);
        return rs_time_add(rs_sys_now(), time); /* it has not begun yet: look again then */
}

/* The cell says of which worker it is: of one that was there meanwhile, unless that was overwritten. */
static bool kill_cell(struct rs_lane *lane, unsigned i)
{
        struct rs_desk *d = lane->seat->desk;
        struct rs_cell *c = &d->cells[i];
        uint32_t before = __atomic_load_n(&d->generation, __ATOMIC_ACQUIRE);

        if (!rs_cell_move(c, RS_CELL_RUNNING, RS_CELL_KILLED))
                return false;
        uint32_t said = c->generation, now = __atomic_load_n(&d->generation, __ATOMIC_ACQUIRE);
        rs_seat_kill(lane->map->w, lane->seat, said - before <= now - before ? said : now);
        return true;
}

/* An item fails of that when it has ended some workers, as with any init that ends them. */
static void overrun_init(const struct rs_lane *lane)
{
        struct rs_desk *d = lane->seat->desk;

        if (rs_sys_now() < due(lane, NULL) || !rs_state_move(&d->init, RS_CELL_RUNNING, RS_CELL_KILLED))
                return;
        rs_seat_kill(lane->map->w, lane->seat, __atomic_load_n(&d->generation, __ATOMIC_ACQUIRE));
}

/* What becomes of the one that has taken too long. */
static int overran(const struct rs_lane *lane, bool wild)
{
        if (wild)
                return resha_fail_at(RESHA_EPROCESS, NULL, OVERWRITTEN);
        return resha_fail_at(-ETIMEDOUT, NULL,
                             "worker process: the item took longer than %.3f s (time in the options), and was killed",
                             (double)lane->map->w->time / 1e9);
}

int rs_lane_overrun(struct rs_lane *lane)
{
        const struct rs_desk *d = lane->seat->desk;
        bool wild;

        if (__atomic_load_n(&d->want_room, __ATOMIC_SEQ_CST)) /* has run, and waits for this loop */
                return rs_lane_collect(lane);
        for (unsigned i = 0; i < lane->count; i++) {
                if (lane->settled[i] || rs_cell_state(&d->cells[i]) != RS_CELL_RUNNING)
                        continue;
                if (rs_sys_now() < due(lane, &wild) || !kill_cell(lane, i))
                        continue;
                settle(lane, i);
                return rs_map_failed(lane->map, lane->item[i], overran(lane, wild));
        }
        overrun_init(lane);
        return 0;
}

void rs_lane_drop(struct rs_lane *lane)
{
        struct rs_desk *d = lane->seat->desk;

        for (unsigned i = lane->count; i-- > 0;) /* from the end: what it is about to begin comes last */
                if (!lane->settled[i])
                        (void)rs_cell_move(&d->cells[i], RS_CELL_WAITING, RS_CELL_TAKEN);
        for (unsigned i = 0; i < lane->count; i++) {
                if (lane->settled[i] || kill_cell(lane, i))
                        continue;
                uint32_t state = rs_cell_state(&d->cells[i]);
                if (state == RS_CELL_DONE && d->cells[i].result >= 0)
                        (void)done(lane, i); /* what is done stays done */
                else if (state != RS_CELL_DONE && state != RS_CELL_DIED && state != RS_CELL_TAKEN)
                        rs_seat_kill(lane->map->w, lane->seat, d->generation); /* it has gone wild */
        }
        lane->count = lane->open = 0;
}

/* ---- filling ---- */

/* The next cell. 1; 0: the desk is full; negative: the item cannot be put there, and that ends the map. */
static int put(struct rs_lane *lane, size_t item, uint64_t *used)
{
        struct rs_map *m = lane->map;
        struct rs_desk *d = lane->seat->desk;
        const void *data = rs_map_item(m, item);
        size_t size = m->size;

        if (m->bytes) {
                const resha_bytes *b = data;
                data = b->data;
                size = b->size;
        }
        if (size > m->w->largest)
                return rs_map_failed(m, item,
                                     resha_fail_at(-EMSGSIZE, NULL,
                                                   "an argument of %zu bytes: at most %zu (largest in the options)",
                                                   size, m->w->largest)) < 0
                               ? -EMSGSIZE
                               : 1;
        if (lane->count >= RS_CELLS || *used + size > m->w->area)
                return 0;
        struct rs_cell *c = &d->cells[lane->count];
        if (size)
                memcpy(rs_desk_items(d) + *used, data, size);
        c->at = *used;
        c->size = size;
        *used += (size + 15) & ~(uint64_t)15;
        lane->seat->big |= *used > RS_DESK_BIG;
        lane->item[lane->count] = item;
        lane->settled[lane->count] = false;
        __atomic_store_n(&c->state, RS_CELL_WAITING, __ATOMIC_RELEASE);
        lane->count++;
        lane->open++;
        return 1;
}

static size_t chunk(const struct rs_map *m)
{
        size_t n = m->w->chunk ? m->w->chunk : (m->n - m->next) / (2 * m->lanes);

        return n < 1 ? 1 : n > RS_CELLS ? RS_CELLS : n;
}

static unsigned waiting(const struct rs_lane *lane)
{
        unsigned n = 0;

        for (unsigned i = 0; i < lane->count; i++)
                n += !lane->settled[i] && rs_cell_state(&lane->seat->desk->cells[i]) == RS_CELL_WAITING;
        return n;
}

/* Of the one with the most, which keeps at least one that is not settled: it would not be woken otherwise. */
static int take_from_another(struct rs_lane *lane, uint64_t *used)
{
        struct rs_lane *from = NULL;
        unsigned most = 0;
        int rc = 1;

        for (struct rs_node *n = lane->map->working.first; n; n = n->next) {
                struct rs_lane *other = RS_CONTAINER(n, struct rs_lane, node);
                unsigned has = other->open > 1 ? waiting(other) : 0;
                if (has > most) {
                        most = has;
                        from = other;
                }
        }
        most -= most / 2;
        for (unsigned i = from ? from->count : 0; i-- > 0 && most && rc > 0 && from->open > 1;) {
                if (from->settled[i] || !rs_cell_move(&from->seat->desk->cells[i], RS_CELL_WAITING, RS_CELL_TAKEN))
                        continue;
                settle(from, i);
                rc = put(lane, from->item[i], used);
                most--;
        }
        return rc;
}

int rs_lane_fill(struct rs_lane *lane)
{
        struct rs_map *m = lane->map;
        struct rs_desk *d = lane->seat->desk;
        uint64_t used = 0;
        int rc = 1;

        d->fn = m->fn;
        d->bytes = m->bytes;
        d->ret_used = 0;
        d->early = 0;
        lane->room = 0;
        lane->generation = __atomic_load_n(&d->generation, __ATOMIC_ACQUIRE);
        lane->count = lane->open = 0;
        do
                for (size_t n = m->next < m->n ? chunk(m) : 0; n > 0 && m->next < m->n && rc > 0; n--) {
                        rc = put(lane, m->next, &used);
                        m->next += rc != 0;
                }
        while (rc > 0 && !lane->count && m->next < m->n);
        if (!lane->count && rc > 0)
                rc = take_from_another(lane, &used);
        __atomic_store_n(&d->count, lane->count, __ATOMIC_RELEASE);
        return rc < 0 ? rc : lane->count > 0;
}
