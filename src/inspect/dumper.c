/* SPDX-License-Identifier: MIT */
/* All loops of the process as text on stderr, when a signal says so: a thread waits for that, and writes.
 *
 * The signal's handler does nothing but tell the thread, which looks at the loops by itself (dump.c): so it works where
 * all of them are stuck. Signals are the process's: one that the program handles already is left alone, and this says
 * so; one that it takes later is its own from then on. It is written with the lock, so a run cannot end under it.
 *
 * The handler may still be on its way on some thread of the program when the last loop has gone: it says that it looks
 * at the descriptor, and that is closed when nobody does. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inspect/dump.h"
#include "sys/door.h"
#include "sys/observe.h"
#include "sys/print.h"
#include "sys/spare.h"
#include "sys/sys.h"
#include "sys/thread.h"

enum { SIGNALS = 65 };

static struct {
        struct rs_lock lock;
        struct rs_cond change;
        struct rs_list all; /* of rs_dumped.node */
        struct rs_thread thread;
        int asked, stop; /* eventfds; asked: atomic */
        unsigned inside; /* handlers that look at `asked`; atomic */
        bool runs, ends;
        unsigned leaving; /* runs that are about to end; atomic */
        int64_t until;    /* when a dump is given up for these; atomic */
        struct {
                unsigned users;
                struct sigaction before;
        } signals[SIGNALS];
} dumper = { .lock = RS_LOCK_INIT, .change = RS_COND_INIT, .asked = -1, .stop = -1, .until = INT64_MAX };

static void signal_comes(int sig, siginfo_t *info, void *context)
{
        (void)sig, (void)info, (void)context;
        __atomic_fetch_add(&dumper.inside, 1, __ATOMIC_SEQ_CST);
        int fd = __atomic_load_n(&dumper.asked, __ATOMIC_SEQ_CST);
        if (fd >= 0)
                rs_sys_eventfd_set(fd);
        __atomic_fetch_sub(&dumper.inside, 1, __ATOMIC_SEQ_CST);
}

/* ---- the thread ---- */

/* With the lock. */
static void dump_all(void)
{
        const int64_t *until = &dumper.until;
        int rc = 0;

        while (__atomic_load_n(&dumper.leaving, __ATOMIC_SEQ_CST))
                rs_cond_wait(&dumper.change, &dumper.lock, INT64_MAX);
        if (!rs_print_try())
                return;
        for (struct rs_node *n = dumper.all.first; n && rc != -ETIME; n = n->next) {
                const struct rs_dumped *w = RS_CONTAINER(n, struct rs_dumped, node);
                bool over = rs_sys_now() >= __atomic_load_n(until, __ATOMIC_SEQ_CST);
                rc = over ? -ETIME : rs_dump_loop(w->loop, w->tid, STDERR_FILENO, until);
        }
        if (rc == -ETIME)
                rs_print_dropped(); /* other failures: who should be told of them? */
}

static void *serve(void *arg)
{
        int asked = dumper.asked, stop = dumper.stop;

        while (rs_door_wait(asked, POLLIN, stop, INT64_MAX) == 1) {
                rs_sys_eventfd_clear(asked);
                rs_lock(&dumper.lock);
                dump_all();
                rs_unlock(&dumper.lock);
        }
        return arg;
}

static void close_events(void)
{
        int asked = __atomic_exchange_n(&dumper.asked, -1, __ATOMIC_SEQ_CST);

        for (unsigned n = 0; __atomic_load_n(&dumper.inside, __ATOMIC_SEQ_CST); n++)
                rs_sys_yield(n);
        if (asked >= 0)
                rs_sys_close(asked);
        if (dumper.stop >= 0)
                rs_sys_close(dumper.stop);
        dumper.stop = -1;
}

/* With the lock. */
static int start(void)
{
        dumper.asked = rs_sys_eventfd();
        dumper.stop = rs_sys_eventfd();
        int rc = dumper.asked < 0 ? dumper.asked : dumper.stop < 0 ? dumper.stop : 0;
        if (rc == 0)
                rc = rs_thread_start(&dumper.thread, "resha-dump", serve, NULL);
        if (rc < 0)
                close_events();
        dumper.runs = rc == 0;
        if (dumper.runs)
                rs_spare_begin();
        return rc;
}

/* ---- the signal ---- */

static const struct {
        const char *name;
        int number;
} names[] = {
        { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "QUIT", SIGQUIT }, { "HUP", SIGHUP }, { "URG", SIGURG },
};

/* A fault would come again for ever; some cannot be caught; and some are the library's own. */
static bool is_usable(int sig)
{
        static const int others[] = { SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                      SIGABRT, SIGPIPE, SIGINT,  SIGTERM, SIGCHLD };

        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                if (sig == others[i])
                        return false;
        return sig > 0 && sig < SIGNALS && (sig < 32 || (sig >= SIGRTMIN && sig < SIGRTMAX - 1));
}

int rs_dumper_signal(const char *name)
{
        const char *word = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;
        char *end;
        long n = strtol(name, &end, 10);

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (strcmp(word, names[i].name) == 0)
                        return names[i].number;
        return *name >= '0' && *name <= '9' && !*end && n < SIGNALS && is_usable((int)n) ? (int)n : -EINVAL;
}

/* With the lock. */
static int take_signal(int sig, char *why, size_t size)
{
        struct sigaction now;

        if (!is_usable(sig)) {
                snprintf(why, size, "signal %d cannot be taken for that: SIGUSR1, SIGUSR2, SIGQUIT can", sig);
                return -EINVAL;
        }
        if (dumper.signals[sig].users++ > 0)
                return 0;
        int rc = rs_sys_signal_get(sig, &now);
        if (rc == 0 && now.sa_handler != SIG_DFL) {
                snprintf(why, size, "signal %d is taken: the program handles or ignores it already", sig);
                rc = -EBUSY;
        } else {
                rc = rs_sys_signal_watch(sig, signal_comes, &dumper.signals[sig].before);
                if (rc < 0)
                        snprintf(why, size, "%s", resha_strerror(rc));
        }
        if (rc < 0)
                dumper.signals[sig].users--;
        return rc;
}

/* Unless the program has taken it meanwhile. */
static void give_signal(int sig)
{
        if (--dumper.signals[sig].users == 0 && rs_sys_signal_is(sig, signal_comes))
                rs_sys_signal_put(sig, &dumper.signals[sig].before);
}

/* ---- loops ---- */

/* With the lock. */
static int add(struct rs_dumped *w, char *why, size_t size)
{
        int rc = 0;

        if (!dumper.runs && (rc = start()) < 0) {
                snprintf(why, size, "%s", resha_strerror(rc));
                return rc;
        }
        rc = take_signal(w->signal, why, size);
        if (rc == 0)
                rs_list_push(&dumper.all, &w->node);
        return rc;
}

/* With the lock, which it gives up: the thread ends with the last loop. */
static void end_thread_unlock(void)
{
        bool last = rs_list_empty(&dumper.all) && dumper.runs && !dumper.ends;
        struct rs_thread thread = dumper.thread;

        if (last) {
                dumper.ends = true;
                rs_sys_eventfd_set(dumper.stop);
        }
        rs_unlock(&dumper.lock);
        if (!last)
                return;
        rs_thread_join(thread);
        rs_spare_end();
        rs_lock(&dumper.lock);
        close_events();
        dumper.runs = dumper.ends = false;
        rs_cond_broadcast(&dumper.change);
        rs_unlock(&dumper.lock);
}

int rs_dumper_add(struct rs_dumped *w, const struct rs_loop *l, int sig, char *ret_why, size_t size)
{
        if (l->simulated || sig == 0)
                return 0;
        *w = (struct rs_dumped){ .loop = l, .forks = rs_forks, .tid = rs_observe_self(), .signal = sig };
        rs_observe_allow();
        rs_lock(&dumper.lock);
        while (dumper.ends) /* the thread of those before */
                rs_cond_wait(&dumper.change, &dumper.lock, INT64_MAX);
        int rc = add(w, ret_why, size);
        if (rc < 0)
                w->loop = NULL;
        end_thread_unlock();
        return rc;
}

static void lock_to_leave(void)
{
        int64_t none = INT64_MAX, until = rs_sys_now() + (int64_t)RS_DUMP_PATIENCE_MS * 1000000;

        __atomic_fetch_add(&dumper.leaving, 1, __ATOMIC_SEQ_CST);
        (void)__atomic_compare_exchange_n(&dumper.until, &none, until, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        rs_lock(&dumper.lock);
        if (__atomic_sub_fetch(&dumper.leaving, 1, __ATOMIC_SEQ_CST) == 0) {
                __atomic_store_n(&dumper.until, INT64_MAX, __ATOMIC_SEQ_CST);
                rs_cond_broadcast(&dumper.change);
        }
}

void rs_dumper_remove(struct rs_dumped *w)
{
        bool ours = w->loop && w->forks == rs_forks; /* rs_dumper_forked() has forgotten the parent's */

        if (!ours)
                return;
        lock_to_leave();
        rs_list_remove(&dumper.all, &w->node);
        give_signal(w->signal);
        w->loop = NULL;
        end_thread_unlock();
}

void rs_dumper_forked(void)
{
        dumper.lock = (struct rs_lock)RS_LOCK_INIT;
        dumper.change = (struct rs_cond)RS_COND_INIT;
        dumper.all = (struct rs_list){ 0 };
        dumper.runs = dumper.ends = false;
        dumper.leaving = 0;
        dumper.until = INT64_MAX;
        for (int sig = 1; sig < SIGNALS; sig++)
                if (dumper.signals[sig].users) {
                        dumper.signals[sig].users = 1;
                        give_signal(sig);
                }
        dumper.inside = 0; /* of the parent's threads */
        close_events();
}
