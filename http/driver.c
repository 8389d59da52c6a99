/* SPDX-License-Identifier: MIT */
/* Driving libcurl's multi-socket interface without a task of its own.
 *
 * Of the tasks that wait for a transfer, one is the leader: it waits for libcurl's sockets and timer, feeds libcurl,
 * and wakes those whose transfers are done. When its own transfer is done, or it is cancelled, it calls the next one
 * directly. So there is no background task that somebody would have to own, and nothing runs between requests.
 *
 *     no leader --(a task waits)--> leader works <--(events, timer, tick)--> leader parked
 *         ^                              |                                         |
 *         +-----(nobody waits)-----------+--(own transfer done, cancelled)---------+
 *                                        +--> the next waiting task is called to lead
 *
 * Invariants
 *
 *   1. While a transfer is running (added, not done), there is a leader, or one has been called and is ready to run. A
 *      task that leaves while it is leader calls the next one, whatever the reason.
 *
 *   2. libcurl is entered by one task at a time: a task never suspends inside; where libcurl may call out of this
 *      file, a no-suspend region says so. Any task may enter: one that starts or stops a transfer does, and then sees
 *      to what libcurl asked for meanwhile (settle).
 *
 *   3. `kick` says that libcurl wants to be called now. Who works as leader looks at it before parking; while the
 *      leader is parked, whoever caused it settles.
 *
 *   4. libcurl's callbacks only note: sockets in `watches`, the timer in `timer`, results in the transfers.
 *
 * Sockets are watched in an epoll set of the driver's own, in level mode (libcurl needs that), and the loop waits for
 * the set. Registration is lazy: a socket that libcurl is not interested in for the moment, as a pooled connection,
 * stays registered as it is; most requests on a pooled connection make no epoll_ctl call. An event that nobody wants
 * ends the registration. Closing ends it too.
 *
 * Idle transfers (nothing sent or received for their time) are found by the leader, too: it looks at each at most once
 * in that time, whatever comes meanwhile, so that receiving costs a stamp and no timer.
 *
 * Libcurl has had bugs of not reporting sockets or timers: while a transfer runs, everything is looked at once a
 * second (tick), and after each timeout its timer is asked for again. If libcurl reports that its state is lost, all
 * transfers fail and it starts anew. */

#include "driver.h"

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/fd.h>
#include <resha/scope.h>
#include <resha/task.h>

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, TICK_S = 1 };

/* What libcurl wants of a descriptor, and what the epoll set has; EPOLLIN | EPOLLOUT. */
struct watch {
        uint8_t wanted, registered;
};

struct rs_http_driver {
        CURLM *multi;
        long keep;
        unsigned sockets; /* open */
        int epfd;
        struct watch *watches; /* by descriptor */
        size_t watch_count;
        bool broken; /* libcurl lost its state, or memory ran out inside a callback */

        rs_http_transfer *first, *last; /* running, oldest first */
        rs_http_transfer *leader;
        resha_scope *parked;        /* the leader's wait, while it is parked */
        resha_instant parked_until; /* its deadline */

        resha_instant timer; /* when libcurl wants to be called; RESHA_NEVER */
        bool kick;           /* now */
        resha_instant tick;  /* next look at everything */
        resha_instant idle;  /* next look at who has been idle for too long */
        resha_instant now;   /* of the batch that is being worked on */
};

/* ---- libcurl's callbacks ----------------------------------------------------------------------------------------- */

static struct watch *watch_of(rs_http_driver *d, curl_socket_t fd)
{
        size_t i = (size_t)fd;
        if (i >= d->watch_count) {
                size_t count = i + i / 2 + 16;
                struct watch *watches = resha_realloc(d->watches, count * sizeof *watches);
                if (!watches)
                        return NULL;
                memset(watches + d->watch_count, 0, (count - d->watch_count) * sizeof *watches);
                d->watches = watches;
                d->watch_count = count;
        }
        return &d->watches[i];
}

/* A descriptor may have been closed and its number used again without a word: whatever the set says, the other way is
 * tried. */
static int epoll_update(rs_http_driver *d, curl_socket_t fd, const struct watch *w)
{
        struct epoll_event e = { .events = w->wanted, .data.fd = fd };
        int op = w->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        if (epoll_ctl(d->epfd, op, fd, &e) == 0)
                return 0;
        if (errno != ENOENT && errno != EEXIST)
                return -errno;
        op = errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
        return epoll_ctl(d->epfd, op, fd, &e) == 0 ? 0 : -errno;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
        rs_http_driver *d = arg;
        struct watch *w = watch_of(d, fd);
        (void)easy;
        (void)unused;
        if (!w) {
                d->broken = true;
                return 0;
        }
        w->wanted = 0;
        if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                w->wanted |= EPOLLIN;
        if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
                w->wanted |= EPOLLOUT;
        if (w->wanted == 0 || w->wanted == w->registered)
                return 0;
        int rc = epoll_update(d, fd, w);
        if (rc < 0 && rc != -EBADF) /* EBADF: already closed; libcurl will see */
                d->broken = true;
        w->registered = rc < 0 ? 0 : w->wanted;
        return 0;
}

static void forget(rs_http_driver *d, curl_socket_t fd, struct watch *w)
{
        if (w->registered)
                (void)epoll_ctl(d->epfd, EPOLL_CTL_DEL, fd, NULL);
        w->registered = 0;
}

void rs_http_driver_opened(rs_http_driver *d)
{
        d->sockets++;
}

unsigned rs_http_driver_sockets(const rs_http_driver *d)
{
        return d->sockets;
}

int rs_http_driver_close_socket(void *driver, curl_socket_t fd)
{
        rs_http_driver *d = driver;
        d->sockets--;
        if ((size_t)fd < d->watch_count) {
                forget(d, fd, &d->watches[fd]);
                d->watches[fd].wanted = 0;
        }
        return close(fd);
}

/* The leader must not stay parked for longer than until t. */
static void call_by(rs_http_driver *d, resha_instant t)
{
        if (!d->parked || t.ns >= d->parked_until.ns)
                return;
        d->parked_until = t;
        (void)resha_scope_reschedule(d->parked, t); /* fails if it has expired already: so much the better */
}

static void set_timer(rs_http_driver *d, long ms)
{
        d->timer = RESHA_NEVER;
        if (ms == 0)
                d->kick = true;
        else if (ms > 0)
                d->timer = resha_after(RESHA_MS(ms));
        call_by(d, d->timer);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
        (void)multi;
        set_timer(arg, ms);
        return 0;
}

/* ---- entering libcurl -------------------------------------------------------------------------------------------- */

static void list_remove(rs_http_driver *d, rs_http_transfer *x)
{
        if (x->prev)
                x->prev->next = x->next;
        else
                d->first = x->next;
        if (x->next)
                x->next->prev = x->prev;
        else
                d->last = x->prev;
        x->prev = x->next = NULL;
}

static void finish(rs_http_driver *d, rs_http_transfer *x, CURLcode result)
{
        list_remove(d, x);
        x->result = result;
        x->done = true;
        resha_event_set(&x->wake);
        if (x == d->leader)
                call_by(d, (resha_instant){ 0 }); /* parked, it does not wait for its event */
}

static int multi_open(rs_http_driver *d)
{
        CURLM *m = curl_multi_init();
        if (!m)
                return -ENOMEM;
        CURLMcode e = curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, on_socket);
        e = e ? e : curl_multi_setopt(m, CURLMOPT_SOCKETDATA, d);
        e = e ? e : curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, on_timer);
        e = e ? e : curl_multi_setopt(m, CURLMOPT_TIMERDATA, d);
        e = e ? e : curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, d->keep);
        if (e != CURLM_OK) {
                curl_multi_cleanup(m);
                return -ENOMEM;
        }
        d->multi = m;
        d->timer = RESHA_NEVER;
        d->kick = false;
        return 0;
}

/* The state of all transfers is uncertain: they fail, their handles go, and there is a new multi handle, or none for
 * now. */
static void give_up(rs_http_driver *d)
{
        while (d->first) {
                rs_http_transfer *x = d->first;
                (void)curl_multi_remove_handle(d->multi, x->easy);
                curl_easy_cleanup(x->easy);
                x->easy = NULL;
                x->added = false;
                finish(d, x, CURLE_FAILED_INIT);
        }
        (void)curl_multi_cleanup(d->multi);
        d->multi = NULL;
        d->broken = false;
        (void)multi_open(d); /* else the next start tries again */
}

/* Notes which transfers are done; true if there were any. */
static bool collect(rs_http_driver *d)
{
        CURLMsg *m;
        int left;
        bool any = false;
        while (d->multi && (m = curl_multi_info_read(d->multi, &left))) {
                char *x = NULL;
                if (m->msg != CURLMSG_DONE || curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x) != CURLE_OK)
                        continue;
                finish(d, (rs_http_transfer *)(void *)x, m->data.result);
                any = true;
        }
        return any;
}

static void check(rs_http_driver *d, CURLMcode e)
{
        if (e != CURLM_OK || d->broken)
                give_up(d);
}

static void enter(resha_scope *s)
{
        resha_nosuspend_begin(s, "inside libcurl");
}

static void leave(resha_scope *s)
{
        int rc = resha_scope_end(s, 0); /* 0 whatever is cancelled: nothing in here waits */
        (void)rc;
}

/* libcurl's time has come. */
static bool run_timers(rs_http_driver *d)
{
        RESHA_SCOPE(s);
        int running;
        long ms = -1;
        d->kick = false;
        d->timer = RESHA_NEVER;
        d->now = resha_now();
        enter(&s);
        CURLMcode e = curl_multi_socket_action(d->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        if (e == CURLM_OK && curl_multi_timeout(d->multi, &ms) == CURLM_OK)
                set_timer(d, ms);
        bool any = collect(d);
        check(d, e);
        leave(&s);
        return any;
}

/* Once a second: everything, in case something was missed. */
static bool run_tick(rs_http_driver *d)
{
        RESHA_SCOPE(s);
        int running;
        d->now = resha_now();
        d->tick = resha_after(RESHA_S(TICK_S));
        for (rs_http_transfer *x = d->first; x; x = x->next)
                x->tick(x);
        enter(&s);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        CURLMcode e = curl_multi_socket_all(d->multi, &running); /* its replacements do not look at the sockets */
#pragma GCC diagnostic pop
        bool any = collect(d);
        check(d, e);
        leave(&s);
        return any;
}

static CURLMcode feed(rs_http_driver *d, const struct epoll_event *e)
{
        int fd = e->data.fd, running, mask = 0;
        struct watch *w = watch_of(d, fd);
        if (!w || !w->wanted) {
                if (w)
                        forget(d, fd, w); /* a pooled connection that the server closed, or old news */
                return CURLM_OK;
        }
        if (e->events & EPOLLIN)
                mask |= CURL_CSELECT_IN;
        if (e->events & EPOLLOUT)
                mask |= CURL_CSELECT_OUT;
        if (e->events & (EPOLLERR | EPOLLHUP))
                mask |= CURL_CSELECT_ERR;
        return curl_multi_socket_action(d->multi, fd, mask, &running);
}

static bool run_events(rs_http_driver *d, const struct epoll_event *events, int n)
{
        RESHA_SCOPE(s);
        CURLMcode e = CURLM_OK;
        d->now = resha_now();
        enter(&s);
        for (int i = 0; i < n && e == CURLM_OK && !d->broken; i++)
                e = feed(d, &events[i]);
        bool any = collect(d);
        check(d, e);
        leave(&s);
        return any;
}

/* After libcurl was entered by a task that does not lead: a parked leader does not look at the kick. */
static void settle(rs_http_driver *d)
{
        for (unsigned i = 0; i < 8 && d->kick && d->parked; i++)
                (void)run_timers(d);
        if (d->kick)
                call_by(d, (resha_instant){ 0 });
}

/* ---- leading and following --------------------------------------------------------------------------------------- */

/* x leaves: calls the next one to lead, if anybody waits. */
static void hand_over(rs_http_driver *d, const rs_http_transfer *x)
{
        d->leader = d->first == x ? x->next : d->first;
        if (d->leader)
                resha_event_set(&d->leader->wake);
}

static resha_instant earlier(resha_instant a, resha_instant b)
{
        return a.ns < b.ns ? a : b;
}

/* The leader waits. 0, also if it is time for something; or negative. */
static int park(rs_http_driver *d)
{
        RESHA_SCOPE(s);
        d->parked_until = earlier(earlier(d->timer, d->tick), d->idle);
        resha_deadline_begin(&s, d->parked_until);
        d->parked = &s;
        int rc = resha_fd_wait(d->epfd, POLLIN);
        d->parked = NULL;
        rc = resha_scope_end(&s, rc < 0 ? rc : 0);
        return rc == -ETIME ? 0 : rc;
}

/* Whether nothing has been sent or received for too long; else when to look again. */
static bool is_idle(rs_http_transfer *x, resha_instant now)
{
        curl_off_t connected = 0, sent = 0;
        resha_instant last = x->heard;
        (void)curl_easy_getinfo(x->easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
        (void)curl_easy_getinfo(x->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
        int64_t ready = x->started.ns + connected * 1000;
        if (connected == 0 || sent != x->sent)
                last = now; /* not connected yet, which has a limit of its own; or sending goes on */
        else if (last.ns < ready)
                last.ns = ready;
        x->sent = sent;
        x->idle.ns = last.ns + x->read.ns;
        return x->idle.ns <= now.ns;
}

/* Looks at those whose time has come: one look for each time of idleness, however much is received meanwhile. */
static void run_idle(rs_http_driver *d, resha_instant now)
{
        d->idle = RESHA_NEVER;
        for (rs_http_transfer *x = d->first; x; x = x->next) {
                if (x->idle.ns <= now.ns && is_idle(x, now)) {
                        x->idled = true;
                        x->idle = RESHA_NEVER;
                        resha_event_set(&x->wake);
                }
                d->idle = earlier(d->idle, x->idle);
        }
}

/* What the time asks for. True if transfers are done. */
static bool run_clock(rs_http_driver *d, resha_instant now)
{
        bool any = false;
        if (now.ns >= d->timer.ns)
                d->kick = true;
        if (now.ns >= d->tick.ns && d->multi)
                any = run_tick(d);
        if (now.ns >= d->idle.ns)
                run_idle(d, now);
        return any;
}

/* One round of the leader: something happens, or it is time for something. */
static int lead(rs_http_driver *d, const rs_http_transfer *x)
{
        struct epoll_event events[EVENTS_MAX];
        bool any = false;
        int rc = 0;
        if (d->kick)
                any = run_timers(d);
        int n = d->multi ? epoll_wait(d->epfd, events, EVENTS_MAX, 0) : 0;
        if (n > 0) {
                any |= run_events(d, events, n);
                any |= run_clock(d, d->now);
        } else if (!any && !d->kick && !x->done) {
                rc = park(d);
                any = rc >= 0 && run_clock(d, resha_now());
        }
        /* Those that are done go on, and start what comes next, before the leader looks again. */
        if (rc >= 0 && (any || d->kick) && !x->done)
                rc = resha_yield();
        return rc;
}

static int follow(rs_http_transfer *x)
{
        int rc = resha_event_wait(&x->wake);
        resha_event_clear(&x->wake);
        return rc;
}

int rs_http_driver_wait(rs_http_driver *d, rs_http_transfer *x)
{
        int rc = 0;
        while (rc >= 0 && !x->done) {
                if (!d->leader) {
                        d->leader = x;
                        d->tick = resha_after(RESHA_S(TICK_S));
                        /* others that are ready start theirs first: libcurl is entered once for all */
                        rc = resha_yield();
                } else {
                        rc = d->leader == x ? lead(d, x) : follow(x);
                }
                if (rc >= 0 && x->idled && !x->done)
                        rc = RESHA_HTTP_EREAD_TIMEOUT;
        }
        if (d->leader == x)
                hand_over(d, x);
        return x->done ? 0 : rc;
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

/* Before now + read nobody needs to look at x; a leader who is parked for longer is called then. */
static void watch_idle(rs_http_driver *d, rs_http_transfer *x)
{
        x->idle = RESHA_NEVER;
        if (x->read.ns < INT64_MAX - x->started.ns)
                x->idle.ns = x->started.ns + x->read.ns;
        d->idle = d->first == x ? x->idle : earlier(d->idle, x->idle);
        call_by(d, d->idle);
}

int rs_http_driver_start(rs_http_driver *d, rs_http_transfer *x)
{
        int rc = d->multi ? 0 : multi_open(d);
        if (rc < 0)
                return rc;
        x->done = x->idled = false;
        x->sent = 0;
        x->started = x->heard = resha_now();
        resha_event_clear(&x->wake);
        x->prev = d->last;
        x->next = NULL;
        CURLMcode e = curl_multi_add_handle(d->multi, x->easy); /* calls on_timer() at most */
        if (e != CURLM_OK)
                return e == CURLM_OUT_OF_MEMORY ? -ENOMEM : -EIO;
        x->added = true;
        if (d->last)
                d->last->next = x;
        else
                d->first = x;
        d->last = x;
        watch_idle(d, x);
        settle(d);
        return 0;
}

void rs_http_driver_stop(rs_http_driver *d, rs_http_transfer *x)
{
        if (!x->done)
                list_remove(d, x);
        if (!x->added)
                return;
        x->added = false;
        check(d, curl_multi_remove_handle(d->multi, x->easy)); /* calls the callbacks of this file at most */
        settle(d);
}

resha_instant rs_http_driver_now(const rs_http_driver *d)
{
        return d->now;
}

int rs_http_driver_new(long keep, rs_http_driver **ret_driver)
{
        rs_http_driver *d = resha_calloc(1, sizeof *d);
        if (!d)
                return -ENOMEM;
        d->keep = keep;
        d->epfd = epoll_create1(EPOLL_CLOEXEC);
        int rc = d->epfd < 0 ? -errno : multi_open(d);
        if (rc < 0)
                rs_http_driver_free(d);
        else
                *ret_driver = d;
        return rc;
}

void rs_http_driver_free(rs_http_driver *d)
{
        if (!d)
                return;
        if (d->multi)
                (void)curl_multi_cleanup(d->multi);
        if (d->epfd >= 0)
                close(d->epfd);
        resha_free(d->watches);
        resha_free(d);
}
