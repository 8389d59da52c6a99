/* SPDX-License-Identifier: MIT */
/* The inspector: who may be looked at, and who looks.
 *
 * A thread of the process, "resha-inspect", waits at a door (sys/door.c) as long as there is a loop that can be looked
 * at. Who comes gets a thread of his own, for an answer may take long (a trace) and another one must not wait for it:
 * CLIENTS at a time. A client says one line, within REQUEST_MS, gets the answer, and is done.
 *
 * What a client wants to know of a loop is asked of that: a post in its inbox, which runs a slice of the answer on the
 * loop's own thread, where nothing can change meanwhile. The state of the question:
 *
 *     IDLE --ask()--> POSTED --the loop--> RUNS --> DONE --ask()--> IDLE     answered
 *                       |  \--ANSWER_MS--> LATE --the loop--> IDLE           not answered: the loop is blocked
 *                       \------------the end of the loop----> IDLE
 *
 * One question at a time for each loop: there is one post, and its memory is the run's. A loop that is blocked has it
 * still in its inbox when the next question comes; that takes it over, LATE --ask()--> POSTED.
 *
 * All of it stands under one lock, which is held for some instructions only; nobody waits for a loop, or for a client,
 * with it. The end of a run waits until nobody looks at its loop: who does so is told (`ends`). */

#include "inspect/inspector.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "inspect/answer.h"
#include "inspect/snapshot.h"
#include "sys/door.h"
#include "sys/observe.h"
#include "sys/spare.h"
#include "sys/sys.h"
#include "sys/thread.h"

enum { CLIENTS = 4, REQUEST_MS = 2000, ANSWER_MS = 200, ACCEPT_PAUSE_MS = 100, EXPANDED = 128 * 1024 };

_Static_assert(EXPANDED > RS_STACKS_DEPTH * (6 * RS_TEXTS_MAX + 128), "the text of any mark fits");

struct client {
        bool used, done; /* done: its thread is to be joined */
        bool spare;      /* its descriptor is of the reserve: the program has none left */
        int fd;
        struct rs_thread thread;
};

static struct {
        struct rs_lock lock;
        struct rs_cond change;
        struct rs_list all; /* of rs_inspected.node */
        struct rs_door door;
        int stop; /* an eventfd: set when the last loop ends */
        struct rs_thread thread;
        bool runs, ends;
        struct client clients[CLIENTS];
} inspector = { .lock = RS_LOCK_INIT, .change = RS_COND_INIT, .door = { .fd = -1, .folder = -1 }, .stop = -1 };

static int64_t ms_from_now(int ms)
{
        return rs_sys_now() + (int64_t)ms * 1000000;
}

/* ---- questions ---- */

static struct rs_inspected *of_post(struct rs_post *p)
{
        return RS_CONTAINER(p, struct rs_inspected, post);
}

/* On the loop's thread. */
static void question_comes(struct rs_post *p)
{
        struct rs_inspected *w = of_post(p);

        rs_lock(&inspector.lock);
        bool asked = w->ask == RS_ASK_POSTED;
        w->ask = asked ? RS_ASK_RUNS : RS_ASK_IDLE;
        rs_unlock(&inspector.lock);
        if (!asked)
                return;
        int64_t began = rs_sys_now(), began_cpu = rs_sys_thread_time();
        w->slice(w->loop, w->arg);
        int64_t took = rs_sys_now() - began, cpu = rs_sys_thread_time() - began_cpu;
        rs_lock(&inspector.lock);
        w->ask = RS_ASK_DONE;
        w->pause = took > w->pause ? took : w->pause;
        w->pause_cpu = cpu > w->pause_cpu ? cpu : w->pause_cpu;
        rs_cond_broadcast(&inspector.change);
        rs_unlock(&inspector.lock);
}

static void question_lost(struct rs_post *p)
{
        rs_lock(&inspector.lock);
        of_post(p)->ask = RS_ASK_IDLE;
        rs_cond_broadcast(&inspector.change);
        rs_unlock(&inspector.lock);
}

/* With the lock, which is given up meanwhile. */
static int await(struct rs_inspected *w)
{
        int64_t deadline = ms_from_now(ANSWER_MS);
        bool late = false;

        while (w->ask == RS_ASK_RUNS || (w->ask == RS_ASK_POSTED && !w->ends && !late))
                late = !rs_cond_wait(&inspector.change, &inspector.lock, w->ask == RS_ASK_RUNS ? INT64_MAX : deadline);
        if (w->ask == RS_ASK_DONE) {
                w->ask = RS_ASK_IDLE;
                return 1;
        }
        if (w->ask == RS_ASK_POSTED)
                w->ask = RS_ASK_LATE;
        return w->ends ? -ECANCELED : 0;
}

/* With the lock, which is given up meanwhile. */
static int ask(struct rs_inspected *w, void (*fn)(struct rs_loop *l, void *arg), void *arg)
{
        while (!w->ends && w->ask != RS_ASK_IDLE && w->ask != RS_ASK_LATE)
                rs_cond_wait(&inspector.change, &inspector.lock, INT64_MAX);
        if (w->ends)
                return -ECANCELED;
        bool posted = w->ask == RS_ASK_LATE;
        w->slice = fn;
        w->arg = arg;
        w->ask = RS_ASK_POSTED;
        if (!posted) {
                w->post = (struct rs_post){ .fn = question_comes, .lost = question_lost, .quiet = true };
                rs_unlock(&inspector.lock);
                rs_inbox_post(w->loop->inbox, &w->post);
                rs_lock(&inspector.lock);
        }
        return await(w);
}

/* ---- loops ---- */

/* With the lock: the one with that number, or the next. */
static struct rs_inspected *find(uint32_t number)
{
        struct rs_inspected *next = NULL;

        for (struct rs_node *x = inspector.all.first; x; x = x->next) {
                struct rs_inspected *w = RS_CONTAINER(x, struct rs_inspected, node);
                if (w->number >= number && (!next || w->number < next->number))
                        next = w;
        }
        return next;
}

unsigned rs_view_count(bool *ret_debug)
{
        unsigned n = 0;

        *ret_debug = false;
        rs_lock(&inspector.lock);
        for (struct rs_node *x = inspector.all.first; x; x = x->next) {
                *ret_debug = *ret_debug || RS_CONTAINER(x, struct rs_inspected, node)->loop->debug;
                n++;
        }
        rs_unlock(&inspector.lock);
        return n;
}

static bool sleeps(const struct rs_inspected *w)
{
        bool steps = true;

        if (w->steps)
                (void)rs_observe_read(&steps, w->steps, sizeof steps);
        return !steps || rs_inbox_sleeps(w->loop->inbox);
}

bool rs_view_next(uint32_t after, struct rs_view *ret_view)
{
        rs_lock(&inspector.lock);
        const struct rs_inspected *w = find(after + 1);
        while (w && w->ends)
                w = find(w->number + 1);
        if (w)
                *ret_view = (struct rs_view){ w->number, w->loop, w->tid, sleeps(w), w->pause, w->pause_cpu };
        rs_unlock(&inspector.lock);
        return w != NULL;
}

bool rs_view_hold(uint32_t number)
{
        rs_lock(&inspector.lock);
        struct rs_inspected *w = find(number);
        bool there = w && w->number == number && !w->ends;
        if (there)
                w->users++;
        rs_unlock(&inspector.lock);
        return there;
}

void rs_view_release(uint32_t number)
{
        rs_lock(&inspector.lock);
        find(number)->users--; /* it is there until then */
        rs_cond_broadcast(&inspector.change);
        rs_unlock(&inspector.lock);
}

int rs_view_ask(uint32_t number, void (*fn)(struct rs_loop *l, void *arg), void *arg)
{
        int rc = -ECANCELED;

        rs_lock(&inspector.lock);
        struct rs_inspected *w = find(number);
        if (w && w->number == number) {
                w->users++;
                rc = ask(w, fn, arg);
                w->users--;
                rs_cond_broadcast(&inspector.change);
        }
        rs_unlock(&inspector.lock);
        return rc;
}

/* ---- answers ---- */

struct rs_answer_slow rs_answer_slow = { .ms = 10 * 1000, .mib_ms = 1000 };

/* Behind a part of a line, most likely, in a little more room than the answer had. */
static void give_up(struct rs_answer *a)
{
        char room[256], text[128];
        struct rs_json j;

        snprintf(text, sizeof text, "given up: %" PRIu64 " bytes of the answer were taken in %.1f s, which is too slow",
                 a->taken, (double)a->waited / 1e9);
        rs_json_init(&j, room, sizeof room);
        rs_snapshot_error(&j, text);
        rs_door_more_room(a->fd);
        if (rs_sys_send(a->fd, "\n", 1) == 1)
                (void)rs_sys_send(a->fd, room, (size_t)(j.at - room));
}

/* Until the client reads. False: it does not, or has taken too long by now. */
static bool await_client(struct rs_answer *a)
{
        int64_t most = rs_answer_slow.ms + (int64_t)(a->taken >> 20) * rs_answer_slow.mib_ms, began = rs_sys_now();
        int64_t left = most * 1000000 - a->waited, patience = (int64_t)RS_ANSWER_PATIENCE_MS * 1000000;
        int rc = rs_door_wait(a->fd, POLLOUT, a->stop, began + (left < patience ? left : patience));

        a->waited += rs_sys_now() - began;
        if (rc == 0)
                give_up(a);
        return rc == 1;
}

bool rs_answer_send(struct rs_answer *a, const char *bytes, size_t n)
{
        while (n > 0 && !a->broken) {
                ssize_t sent = rs_sys_send(a->fd, bytes, n);
                if (sent == -EAGAIN) {
                        a->broken = !await_client(a);
                } else if (sent < 0) {
                        a->broken = true;
                } else {
                        bytes += sent;
                        n -= (size_t)sent;
                        a->taken += (uint64_t)sent;
                }
        }
        return !a->broken;
}

/* Marks are replaced on the way, in pieces for which there is room beside. */
static void send_marked(struct rs_answer *a, const char *from, const char *end)
{
        char room[EXPANDED];
        struct rs_json j;

        while (from < end && !a->broken) {
                const char *mark = memchr(from, RS_MARK, (size_t)(end - from));
                rs_answer_send(a, from, (size_t)((mark ? mark : end) - from));
                from = mark ? mark : end;
                rs_json_init(&j, room, sizeof room);
                for (size_t n; from < end && *from == RS_MARK; from += n) {
                        n = rs_snapshot_text(from, a->texts, &j);
                        if (n)
                                continue;
                        rs_answer_send(a, room, (size_t)(j.at - room));
                        rs_json_init(&j, room, sizeof room);
                }
                rs_answer_send(a, room, (size_t)(j.at - room));
        }
}

bool rs_answer_flush(struct rs_answer *a)
{
        send_marked(a, a->room, a->json.at);
        rs_json_init(&a->json, a->room, RS_ANSWER_ROOM);
        return !a->broken;
}

bool rs_answer_pause(struct rs_answer *a, int64_t until)
{
        if (!a->broken && rs_door_wait(a->fd, 0, a->stop, until) != 0)
                a->broken = true;
        return !a->broken;
}

static void answer(struct rs_answer *a, const char *line, size_t n)
{
        struct rs_request r;
        const char *wrong = rs_request_parse(line, n, &r);

        if (wrong)
                rs_snapshot_error(&a->json, wrong);
        else if (r.kind == RS_REQUEST_STATS)
                rs_answer_stats(a);
        else if (r.kind == RS_REQUEST_SAMPLE)
                rs_answer_sample(a, &r);
        else if (r.kind == RS_REQUEST_SNAPSHOT)
                rs_answer_snapshot(a, &r);
        else
                rs_answer_trace(a, &r);
        rs_answer_flush(a);
}

/* The bytes before the first end of line, at most size; -1: there is none in time, or it is too long. */
static ssize_t read_line(struct rs_answer *a, char *line, size_t size)
{
        int64_t deadline = ms_from_now(REQUEST_MS);
        size_t n = 0;

        while (n < size && rs_door_wait(a->fd, POLLIN, a->stop, deadline) == 1) {
                ssize_t got = rs_sys_recv(a->fd, line + n, size - n);
                if (got == -EAGAIN)
                        continue;
                if (got <= 0)
                        return -1;
                const char *line_end = memchr(line + n, '\n', (size_t)got);
                if (line_end)
                        return line_end - line;
                n += (size_t)got;
        }
        if (n == size)
                rs_snapshot_error(&a->json, "a request is one line of at most 256 bytes");
        rs_answer_flush(a);
        return -1;
}

static void *talk(void *arg)
{
        struct client *c = arg;
        char line[RS_REQUEST_MAX + 1];
        struct rs_answer a = {
                .fd = c->fd, .stop = inspector.stop, .spare = c->spare, .room = resha_malloc(RS_ANSWER_ROOM)
        };

        if (a.room) {
                rs_json_init(&a.json, a.room, RS_ANSWER_ROOM);
                ssize_t n = read_line(&a, line, sizeof line);
                if (n >= 0)
                        answer(&a, line, (size_t)n);
        }
        resha_free(a.room);
        rs_lock(&inspector.lock);
        c->fd = -1; /* before it is closed: a forked child must not close what has the number then */
        c->done = true;
        rs_unlock(&inspector.lock);
        rs_spare_close(a.fd);
        return NULL;
}

/* ---- the door ---- */

/* Those who are done; all: waits for the others. */
static void join(bool all)
{
        for (size_t i = 0; i < CLIENTS; i++) {
                struct client *c = &inspector.clients[i];
                rs_lock(&inspector.lock);
                bool ready = c->used && (all || c->done);
                rs_unlock(&inspector.lock);
                if (!ready)
                        continue;
                rs_thread_join(c->thread);
                c->used = false;
        }
}

static struct client *free_place(void)
{
        join(false);
        for (size_t i = 0; i < CLIENTS; i++)
                if (!inspector.clients[i].used)
                        return &inspector.clients[i];
        return NULL;
}

static void turn_away(int fd, const char *text)
{
        char room[256];
        struct rs_json j;

        rs_json_init(&j, room, sizeof room);
        rs_snapshot_error(&j, text);
        (void)rs_sys_send(fd, room, (size_t)(j.at - room));
        rs_spare_close(fd);
}

static void admit(int fd, bool is_spare)
{
        struct client *c = free_place();

        if (!rs_door_admits(fd)) {
                rs_spare_close(fd);
                return;
        }
        if (!c) {
                turn_away(fd, "too many at a time look at this process already: 4");
                return;
        }
        *c = (struct client){ .used = true, .spare = is_spare, .fd = fd };
        if (rs_thread_start(&c->thread, "resha-inspect-c", talk, c) < 0) {
                c->used = false;
                turn_away(fd, "this process cannot start a thread for an answer");
        }
}

static void *serve(void *arg)
{
        const struct rs_door *d = &inspector.door;
        int stop = inspector.stop;

        while (rs_door_wait(d->fd, POLLIN, stop, INT64_MAX) == 1) {
                bool is_spare;
                int fd = rs_door_accept(d, &is_spare);
                if (fd >= 0)
                        admit(fd, is_spare);
                else if (fd != -EAGAIN) /* without a free descriptor it would turn in a circle */
                        (void)rs_door_wait(-1, 0, stop, ms_from_now(ACCEPT_PAUSE_MS));
        }
        join(true);
        return arg;
}

static void close_stop(void)
{
        int fd = inspector.stop;

        inspector.stop = -1;
        if (fd >= 0)
                rs_sys_close(fd);
}

/* With the lock. */
static int start(char *why, size_t size)
{
        int rc = rs_door_open(&inspector.door, why, size);

        if (rc < 0)
                return rc;
        rc = inspector.stop = rs_sys_eventfd();
        if (rc >= 0)
                rc = rs_thread_start(&inspector.thread, "resha-inspect", serve, NULL);
        if (rc < 0) {
                close_stop();
                rs_door_close(&inspector.door);
                snprintf(why, size, "%s", resha_strerror(rc));
        }
        inspector.runs = rc >= 0;
        if (inspector.runs)
                rs_spare_begin();
        return rc;
}

int rs_inspector_add(struct rs_inspected *w, struct rs_loop *l, const bool *steps, char *ret_why, size_t size)
{
        int rc = 0;

        if (l->simulated)
                return 0;
        *w = (struct rs_inspected){ .loop = l,
                                    .steps = steps,
                                    .forks = rs_forks,
                                    .tid = rs_observe_self(),
                                    .number = (uint32_t)(l->last_mark >> RS_MARK_RUN) };
        rs_observe_allow();
        rs_lock(&inspector.lock);
        while (inspector.ends) /* the thread of those before */
                rs_cond_wait(&inspector.change, &inspector.lock, INT64_MAX);
        if (!inspector.runs)
                rc = start(ret_why, size);
        if (rc >= 0)
                rs_list_push(&inspector.all, &w->node);
        else
                w->loop = NULL;
        rs_unlock(&inspector.lock);
        return rc < 0 ? rc : 0;
}

void rs_inspector_remove(struct rs_inspected *w)
{
        bool ours = w->loop && w->forks == rs_forks; /* rs_inspector_forked() has forgotten the parent's */

        if (!ours)
                return;
        rs_lock(&inspector.lock);
        w->ends = true;
        rs_cond_broadcast(&inspector.change);
        while (w->users)
                rs_cond_wait(&inspector.change, &inspector.lock, INT64_MAX);
        rs_list_remove(&inspector.all, &w->node);
        bool last = rs_list_empty(&inspector.all);
        struct rs_thread thread = inspector.thread;
        if (last) {
                inspector.ends = true;
                rs_sys_eventfd_set(inspector.stop);
        }
        rs_unlock(&inspector.lock);
        if (!last)
                return;
        rs_thread_join(thread);
        rs_door_close(&inspector.door);
        rs_spare_end();
        rs_lock(&inspector.lock);
        close_stop();
        inspector.runs = inspector.ends = false;
        rs_cond_broadcast(&inspector.change);
        rs_unlock(&inspector.lock);
}

void rs_inspector_forked(void)
{
        inspector.lock = (struct rs_lock)RS_LOCK_INIT;
        inspector.change = (struct rs_cond)RS_COND_INIT;
        inspector.all = (struct rs_list){ 0 };
        rs_door_forget(&inspector.door);
        close_stop();
        for (size_t i = 0; i < CLIENTS; i++) {
                if (inspector.clients[i].used && inspector.clients[i].fd >= 0)
                        rs_sys_close(inspector.clients[i].fd);
                inspector.clients[i] = (struct client){ .fd = -1 };
        }
        inspector.runs = inspector.ends = false;
        rs_answer_trace_forked();
}
