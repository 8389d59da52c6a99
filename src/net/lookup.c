/* SPDX-License-Identifier: MIT */
/* Name look-ups: getaddrinfo() on threads of the process, because it blocks, and nothing else is what the machine's own
 * programs use.
 *
 * A look-up owns copies of what was asked. Who asks has an `asker`, on the heap too, so that a cancelled task can
 * leave at once: its asker leaves the look-up, or, if the answer is on its way already, is freed when that comes.
 * Equal questions at the same time share a look-up, also one that everybody has left but that still runs. Answers are
 * kept for a short while (resolve_cache.c); forgetting them makes those strangers too that are under way: their answer
 * is for who asked before.
 *
 *     asker:  ATTACHED --answer--> POSTED --loop--> task takes the answer, frees it
 *             ATTACHED --cancel--> freed            POSTED --cancel--> ABANDONED --loop--> freed
 *
 * A look-up is freed by the last of: its thread, and its askers. Everything about both is under one lock, but for
 * asker.wait, which is of its loop's thread.
 *
 * How many run at once: four. A getaddrinfo() that hangs cannot be ended, and takes one of them; four that hang would
 * be the end of all look-ups for as long as the system tries, 10 s and more. So one that everybody has left does not
 * count any more, and another thread may be started in its place, up to sixteen altogether. Who gives up a question
 * that never got its turn because all of them hang is reported. */

#include "net/lookup.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include <resha/alloc.h>

#include "core/core.h"
#include "core/waited.h"
#include "net/addr.h"
#include "net/resolve.h"
#include "sys/sys.h"
#include "sys/workers.h"

enum {
        THREADS_MAX = 4,
        SPARE_MAX = 12, /* in the place of those that hang */
        ANSWER_MAX = 64,
};

struct lookup {
        struct rs_work work;
        struct rs_node node;   /* in `lookups` until it is answered */
        struct rs_list askers; /* of asker.node, attached ones */
        size_t refs;           /* askers, attached or posted */
        bool answered;
        bool left;     /* runs, and nobody waits for it; counted in `left` */
        bool stale;    /* asked before the last time that all was forgotten */
        int64_t began; /* when a thread took it, CLOCK_MONOTONIC; 0: not yet */
        struct rs_answer answer;
        char host[RS_HOST_MAX + 1], service[RS_SERVICE_MAX + 1];
};

struct asker {
        struct rs_post post;
        struct rs_node node;
        struct lookup *lookup;
        struct rs_inbox *inbox;
        struct rs_wait *wait; /* NULL: abandoned */
        bool posted;
};

/* A loop that has asked: the threads rest when the last such loop ends. */
struct customer {
        struct rs_cleanup cleanup;
};

static struct rs_lock lock = RS_LOCK_INIT;
static struct rs_workers crew = RS_WORKERS_INIT(THREADS_MAX, "resha-names");
static struct rs_list lookups;
static size_t customers;
static unsigned left; /* look-ups that run for nobody */
static int64_t told;  /* when it was last reported that they hang */

int64_t rs_lookup_hang_ns = 1000000000;

/* ---- forks ---- */

/* The C library holds a lock while getaddrinfo() looks at resolv.conf, and does not give it up in a forked child, whose
 * own getaddrinfo() would wait for it for ever. So a fork comes between look-ups: none begins meanwhile, and those that
 * run are waited for, unless they have done so for long: such a one waits for a name server, without the lock. */
static struct {
        struct rs_lock lock;
        struct rs_cond change;
        unsigned running, forks;
        int64_t began; /* the last of those that run */
} gate = { .lock = RS_LOCK_INIT, .change = RS_COND_INIT };

int64_t rs_lookup_long_ns = 50000000;

static void gate_enter(void)
{
        rs_lock(&gate.lock);
        while (gate.forks)
                (void)rs_cond_wait(&gate.change, &gate.lock, INT64_MAX);
        gate.running++;
        gate.began = rs_sys_now();
        rs_unlock(&gate.lock);
}

static void gate_leave(void)
{
        rs_lock(&gate.lock);
        gate.running--;
        if (gate.forks)
                rs_cond_broadcast(&gate.change);
        rs_unlock(&gate.lock);
}

void rs_resolve_before_fork(void)
{
        rs_lock(&gate.lock);
        gate.forks++;
        bool wait = true;
        while (wait && gate.running)
                wait = rs_cond_wait(&gate.change, &gate.lock, gate.began + rs_lookup_long_ns);
        rs_unlock(&gate.lock);
}

void rs_resolve_after_fork(void)
{
        rs_lock(&gate.lock);
        gate.forks--;
        rs_cond_broadcast(&gate.change);
        rs_unlock(&gate.lock);
}

/* ---- look-ups; all with the lock ---- */

static void lookup_free(struct lookup *k)
{
        resha_free(k->answer.addrs);
        resha_free(k);
}

/* It runs; whether anybody waits for it. */
static void set_left(struct lookup *k, bool is_left)
{
        if (k->left == is_left)
                return;
        k->left = is_left;
        left = is_left ? left + 1 : left - 1;
        rs_workers_allow(&crew, THREADS_MAX + (left < SPARE_MAX ? left : SPARE_MAX));
}

static void attach(struct asker *a, struct lookup *k)
{
        a->lookup = k;
        k->refs++;
        rs_list_push(&k->askers, &a->node);
        set_left(k, false);
}

/* True: its look-up had not begun, and never will. */
static bool asker_free(struct asker *a)
{
        struct lookup *k = a->lookup;

        rs_inbox_unref(a->inbox);
        resha_free(a);
        if (--k->refs > 0)
                return false;
        if (k->answered) {
                lookup_free(k);
                return false;
        }
        if (!rs_workers_remove(&crew, &k->work)) {
                set_left(k, true); /* its thread frees it */
                return false;
        }
        rs_list_remove(&lookups, &k->node);
        lookup_free(k);
        return true;
}

static struct lookup *lookup_find(const char *host, const char *service)
{
        for (struct rs_node *n = lookups.first; n; n = n->next) {
                struct lookup *k = RS_CONTAINER(n, struct lookup, node);
                if (!k->stale && strcasecmp(k->host, host) == 0 && strcmp(k->service, service) == 0)
                        return k;
        }
        return NULL;
}

/* The one that runs for the longest time, if all that run have done so for long; and how many run. */
static const struct lookup *all_hang(int64_t now, unsigned *ret_running)
{
        const struct lookup *longest = NULL;

        *ret_running = 0;
        for (struct rs_node *n = lookups.first; n; n = n->next) {
                const struct lookup *k = RS_CONTAINER(n, struct lookup, node);
                if (!k->began)
                        continue;
                if (now - k->began < rs_lookup_hang_ns)
                        return NULL;
                if (!longest || k->began < longest->began)
                        longest = k;
                ++*ret_running;
        }
        return longest;
}

/* ---- on the threads ---- */

/* The list as addresses; k is not shared in what it writes. */
static int lookup_copy(struct lookup *k, const struct addrinfo *list)
{
        const struct addrinfo *i;
        struct rs_answer *answer = &k->answer;
        size_t n = 0;

        for (i = list; i && n < ANSWER_MAX; i = i->ai_next)
                n++;
        answer->addrs = resha_calloc(n ? n : 1, sizeof *answer->addrs);
        if (!answer->addrs)
                return EAI_MEMORY;
        for (i = list; i && answer->n < n; i = i->ai_next)
                if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
                        rs_addr_set(&answer->addrs[answer->n++], i->ai_addr, i->ai_addrlen);
        return answer->n ? 0 : EAI_NONAME;
}

static void lookup_ask(struct lookup *k)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *list = NULL;
        struct rs_answer *a = &k->answer;

        gate_enter();
        a->eai = rs_sys_getaddrinfo(k->host, k->service[0] ? k->service : NULL, &hints, &list, &a->error);
        gate_leave();
        if (a->eai)
                return;
        a->eai = lookup_copy(k, list);
        freeaddrinfo(list);
}

static void lookup_run(struct rs_work *work)
{
        struct lookup *k = RS_CONTAINER(work, struct lookup, work);

        rs_lock(&lock);
        k->began = rs_sys_now();
        rs_unlock(&lock);
        lookup_ask(k);
        rs_lock(&lock);
        struct rs_list askers = k->askers;
        for (struct rs_node *n = askers.first; n; n = n->next)
                RS_CONTAINER(n, struct asker, node)->posted = true;
        k->answered = true;
        set_left(k, false);
        rs_list_remove(&lookups, &k->node);
        if (customers > 0 && !k->stale)
                rs_cache_add(k->host, k->service, rs_sys_now(), &k->answer);
        if (!k->refs)
                lookup_free(k);
        rs_unlock(&lock);
        /* From here on k is the askers', and each of them stays until its post has come. */
        for (struct rs_node *n; (n = rs_list_pop(&askers));) {
                struct asker *a = RS_CONTAINER(n, struct asker, node);
                struct rs_inbox *inbox = rs_inbox_ref(a->inbox);
                rs_inbox_post(inbox, &a->post);
                rs_inbox_unref(inbox);
        }
}

/* ---- on the loop ---- */

static void asker_answered(struct rs_post *post)
{
        struct asker *a = RS_CONTAINER(post, struct asker, post);

        if (a->wait) {
                rs_wake(a->wait, 0);
                return;
        }
        rs_lock(&lock);
        asker_free(a);
        rs_unlock(&lock);
}

/* The loop has ended; also called on the thread. */
static void asker_lost(struct rs_post *post)
{
        rs_lock(&lock);
        asker_free(RS_CONTAINER(post, struct asker, post));
        rs_unlock(&lock);
}

struct question {
        struct rs_wait wait;
        struct asker *asker;
        bool in_vain; /* given up before its look-up began */
};

static void question_cancel(struct rs_wait *w)
{
        struct question *q = RS_CONTAINER(w, struct question, wait);
        struct asker *a = q->asker;

        rs_lock(&lock);
        if (a->posted) {
                a->wait = NULL;
        } else {
                rs_list_remove(&a->lookup->askers, &a->node);
                q->in_vain = asker_free(a);
        }
        rs_unlock(&lock);
        rs_wake(w, -ECANCELED);
}

/* A look-up for this question: one that runs, or a new one. With the lock. */
static int lookup_get(const char *host, const char *service, struct lookup **ret_lookup)
{
        struct lookup *k = lookup_find(host, service);

        if (!k) {
                k = resha_calloc(1, sizeof *k);
                if (!k)
                        return -ENOMEM;
                memcpy(k->host, host, strlen(host) + 1);
                memcpy(k->service, service, strlen(service) + 1);
                k->work.run = lookup_run;
                int rc = rs_workers_add(&crew, &k->work);
                if (rc < 0) {
                        lookup_free(k);
                        return rc;
                }
                rs_list_push(&lookups, &k->node);
        }
        *ret_lookup = k;
        return 0;
}

static int ask(struct rs_loop *l, const char *host, const char *service, struct rs_wait *w, struct asker **ret_asker)
{
        struct asker *a = resha_calloc(1, sizeof *a);
        struct lookup *k;

        if (!a)
                return -ENOMEM;
        rs_lock(&lock);
        int rc = lookup_get(host, service, &k);
        if (rc == 0) {
                a->post = (struct rs_post){ .fn = asker_answered, .lost = asker_lost };
                a->wait = w;
                a->inbox = rs_inbox_ref(l->inbox);
                attach(a, k);
        }
        rs_unlock(&lock);
        if (rc < 0) {
                resha_free(a);
                return rc;
        }
        *ret_asker = a;
        return 0;
}

static void customer_gone(struct rs_cleanup *c)
{
        resha_free(RS_CONTAINER(c, struct customer, cleanup));
        rs_lock(&lock);
        bool last = --customers == 0, idle = rs_list_empty(&lookups);
        if (last)
                rs_cache_clear();
        rs_unlock(&lock);
        if (last)
                rs_workers_rest(&crew, idle);
}

/* The loop's first question. */
static int become_customer(struct rs_loop *l)
{
        if (l->net)
                return 0;
        struct customer *c = resha_calloc(1, sizeof *c);
        if (!c)
                return -ENOMEM;
        c->cleanup.fn = customer_gone;
        l->net = c;
        rs_cleanup_add(l, &c->cleanup);
        rs_lock(&lock);
        customers++;
        rs_unlock(&lock);
        return 0;
}

void rs_resolve_forked(void)
{
        lock = gate.lock = (struct rs_lock)RS_LOCK_INIT;
        gate.change = (struct rs_cond)RS_COND_INIT;
        gate.running = gate.forks = 0;
        crew = (struct rs_workers)RS_WORKERS_INIT(THREADS_MAX, "resha-names");
        lookups = (struct rs_list){ 0 };
        customers = 0;
        left = 0;
        rs_cache_forked();
}

/* Says it if a question never got its turn because all look-ups hang; once a second at most. */
static void tell_if_all_hang(struct rs_loop *l, const char *host)
{
        char longest[RS_HOST_MAX + 1];
        int64_t now = rs_sys_now(), seconds = 0;
        unsigned running;

        rs_lock(&lock);
        const struct lookup *k = told && now - told < rs_lookup_hang_ns ? NULL : all_hang(now, &running);
        if (k) {
                told = now;
                seconds = (now - k->began) / 1000000000;
                memcpy(longest, k->host, sizeof longest);
        }
        rs_unlock(&lock);
        if (k)
                rs_report(l, RESHA_REPORT_SHORTAGE, -EAGAIN, l->current,
                          "the look-up of %s was given up before it began: %u others hang, that of %s for %lld s; the "
                          "name service of this machine does not answer",
                          host, running, longest, (long long)seconds);
}

static bool lookup_kept(struct rs_loop *l, const char *host, const char *service, struct rs_answer *ret)
{
        rs_lock(&lock);
        bool found = rs_cache_find(host, service, rs_now(l), ret);
        rs_unlock(&lock);
        return found;
}

int rs_lookup(struct rs_loop *l, const char *host, const char *service, struct rs_answer *ret)
{
        struct question q = { .wait = { .cancel = question_cancel, .what = "look-up" } };

        if (lookup_kept(l, host, service, ret))
                return 1;
        int rc = become_customer(l);
        if (rc == 0)
                rc = ask(l, host, service, &q.wait, &q.asker);
        if (rc < 0)
                return rc;
        l->jobs++;
        rc = (int)rs_wait(l, &q.wait);
        l->jobs--;
        if (rc < 0) {
                if (q.in_vain)
                        tell_if_all_hang(l, host);
                return rc;
        }
        const struct rs_answer *a = &q.asker->lookup->answer;
        ret->eai = a->eai;
        ret->error = a->error;
        ret->n = a->n < ret->max ? a->n : ret->max;
        if (ret->n)
                memcpy(ret->addrs, a->addrs, ret->n * sizeof *ret->addrs);
        rs_lock(&lock);
        asker_free(q.asker);
        rs_unlock(&lock);
        return 0;
}

void rs_lookup_keep(int64_t ns)
{
        rs_lock(&lock);
        rs_cache_keep(ns);
        rs_unlock(&lock);
}

void rs_lookup_forget(void)
{
        rs_lock(&lock);
        rs_cache_clear();
        for (struct rs_node *n = lookups.first; n; n = n->next)
                RS_CONTAINER(n, struct lookup, node)->stale = true;
        rs_unlock(&lock);
}

/* ---- for who looks from outside ---- */

static void question_see(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                         struct rs_waited *ret)
{
        struct question q;
        struct asker a;

        (void)w;
        if (r->read(&q, at, sizeof q) && r->read(&a, q.asker, sizeof a) && a.lookup &&
            !r->text(a.lookup->host, ret->detail, sizeof ret->detail))
                ret->detail[0] = '\0';
}

const struct rs_waits rs_question_waits = { .cancel = question_cancel, .shared = true, .see = question_see };
