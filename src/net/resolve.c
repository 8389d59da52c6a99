/* SPDX-License-Identifier: MIT */
/* Name look-ups: getaddrinfo() on threads of the process, because it blocks, and nothing else is what the machine's own
 * programs use.
 *
 * A look-up owns copies of what was asked. Who asks has an `asker`, on the heap too, so that a cancelled task can
 * leave at once: its asker leaves the look-up, or, if the answer is on its way already, is freed when that comes.
 * Equal questions at the same time share a look-up, also one that everybody has left but that still runs.
 *
 *     asker:  ATTACHED --answer--> POSTED --loop--> task takes the answer, frees it
 *             ATTACHED --cancel--> freed            POSTED --cancel--> ABANDONED --loop--> freed
 *
 * A look-up is freed by the last of: its thread, and its askers. Everything about both is under one lock, but for
 * asker.wait, which is of its loop's thread.
 *
 * Literals need no thread. In the simulated world there are literals, and localhost. */

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <resha/addr.h>
#include <resha/alloc.h>

#include "core/core.h"
#include "net/addr.h"
#include "net/resolve.h"
#include "os/delay.h"
#include "sys/sys.h"
#include "sys/workers.h"

enum {
        THREADS_MAX = 4,
        HOST_MAX = 253, /* RFC 1035, as text */
        PORT_MAX = 32,
        ANSWER_MAX = 64,
};

struct lookup {
        struct rs_work work;
        struct rs_node node;   /* in `lookups` until it is answered */
        struct rs_list askers; /* of asker.node, attached ones */
        size_t refs;           /* askers, attached or posted */
        bool answered;
        int eai, error; /* the answer: EAI code, errno; or */
        resha_addr *addrs;
        size_t n;
        char host[HOST_MAX + 1], port[PORT_MAX];
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

/* ---- look-ups; all with the lock ---- */

static void lookup_free(struct lookup *k)
{
        resha_free(k->addrs);
        resha_free(k);
}

static void asker_free(struct asker *a)
{
        struct lookup *k = a->lookup;

        rs_inbox_unref(a->inbox);
        resha_free(a);
        if (--k->refs > 0 || (!k->answered && !rs_workers_remove(&crew, &k->work)))
                return; /* others ask; or it runs, and its thread frees it */
        if (!k->answered)
                rs_list_remove(&lookups, &k->node);
        lookup_free(k);
}

static struct lookup *lookup_find(const char *host, const char *port)
{
        for (struct rs_node *n = lookups.first; n; n = n->next) {
                struct lookup *k = RS_CONTAINER(n, struct lookup, node);
                if (strcmp(k->host, host) == 0 && strcmp(k->port, port) == 0)
                        return k;
        }
        return NULL;
}

/* ---- on the threads ---- */

/* The list as addresses; k is not shared in what it writes. */
static int lookup_copy(struct lookup *k, const struct addrinfo *list)
{
        const struct addrinfo *i;
        size_t n = 0;

        for (i = list; i && n < ANSWER_MAX; i = i->ai_next)
                n++;
        k->addrs = resha_calloc(n ? n : 1, sizeof *k->addrs);
        if (!k->addrs)
                return EAI_MEMORY;
        for (i = list; i && k->n < n; i = i->ai_next) {
                struct rs_addr *a = rs_addr_of(&k->addrs[k->n]);
                if (i->ai_addrlen > sizeof a->sockaddr)
                        continue;
                memcpy(&a->sockaddr, i->ai_addr, i->ai_addrlen);
                a->size = i->ai_addrlen;
                k->n++;
        }
        return k->n ? 0 : EAI_NONAME;
}

static void lookup_ask(struct lookup *k)
{
        bool number = k->port[strspn(k->port, "0123456789")] == '\0';
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = number ? AI_NUMERICSERV : 0 };
        struct addrinfo *list = NULL;

        k->eai = rs_sys_getaddrinfo(k->host, k->port, &hints, &list, &k->error);
        if (k->eai)
                return;
        k->eai = lookup_copy(k, list);
        freeaddrinfo(list);
}

static void lookup_run(struct rs_work *work)
{
        struct lookup *k = RS_CONTAINER(work, struct lookup, work);

        lookup_ask(k);
        rs_lock(&lock);
        struct rs_list askers = k->askers;
        for (struct rs_node *n = askers.first; n; n = n->next)
                RS_CONTAINER(n, struct asker, node)->posted = true;
        k->answered = true;
        rs_list_remove(&lookups, &k->node);
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
};

static void question_cancel(struct rs_wait *w)
{
        struct asker *a = RS_CONTAINER(w, struct question, wait)->asker;

        rs_lock(&lock);
        if (a->posted) {
                a->wait = NULL;
        } else {
                rs_list_remove(&a->lookup->askers, &a->node);
                asker_free(a);
        }
        rs_unlock(&lock);
        rs_wake(w, -ECANCELED);
}

/* A look-up for this question: one that runs, or a new one. With the lock. */
static int lookup_get(const char *host, const char *port, struct lookup **ret_lookup)
{
        struct lookup *k = lookup_find(host, port);

        if (!k) {
                k = resha_calloc(1, sizeof *k);
                if (!k)
                        return -ENOMEM;
                memcpy(k->host, host, strlen(host) + 1);
                memcpy(k->port, port, strlen(port) + 1);
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

static int ask(struct rs_loop *l, const char *host, const char *port, struct rs_wait *w, struct asker **ret_asker)
{
        struct asker *a = resha_calloc(1, sizeof *a);

        if (!a)
                return -ENOMEM;
        rs_lock(&lock);
        int rc = lookup_get(host, port, &a->lookup);
        if (rc == 0) {
                a->post = (struct rs_post){ .fn = asker_answered, .lost = asker_lost };
                a->wait = w;
                a->inbox = rs_inbox_ref(l->inbox);
                a->lookup->refs++;
                rs_list_push(&a->lookup->askers, &a->node);
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
        lock = (struct rs_lock)RS_LOCK_INIT;
        crew = (struct rs_workers)RS_WORKERS_INIT(THREADS_MAX, "resha-names");
        lookups = (struct rs_list){ 0 };
        customers = 0;
}

/* ---- answers ---- */

static int code_of(int eai, int error)
{
        switch (eai) {
        case 0: return 0;
        case EAI_AGAIN: return -EAGAIN;
        case EAI_SERVICE: return -EINVAL;
        case EAI_MEMORY: return -ENOMEM;
        case EAI_SYSTEM: return error > 0 ? -error : -EIO;
        default: return -ENOENT; /* of no name, no address, a refusal */
        }
}

static int no_answer(int code, const char *host, const char *why)
{
        return resha_fail_at(code, NULL, "look-up of %s: %s", host, why);
}

static int resolve_real(struct rs_loop *l, const char *host, const char *port, resha_addr *ret_addrs, size_t max,
                        size_t *ret_n)
{
        struct question q = { .wait = { .cancel = question_cancel, .what = "look-up" } };
        int rc = become_customer(l);

        if (rc == 0)
                rc = ask(l, host, port, &q.wait, &q.asker);
        if (rc < 0)
                return no_answer(rc, host, resha_strerror(rc));
        l->jobs++;
        rc = (int)rs_wait(l, &q.wait);
        l->jobs--;
        if (rc < 0)
                return rc;
        const struct lookup *k = q.asker->lookup;
        rc = code_of(k->eai, k->error);
        if (rc == 0) {
                *ret_n = k->n < max ? k->n : max;
                memcpy(ret_addrs, k->addrs, *ret_n * sizeof *ret_addrs);
        } else {
                no_answer(rc, host, k->eai == EAI_SYSTEM ? resha_strerror(rc) : gai_strerror(k->eai));
        }
        rs_lock(&lock);
        asker_free(q.asker);
        rs_unlock(&lock);
        return rc;
}

static int resolve_simulated(struct rs_loop *l, const char *host, int port, resha_addr *ret_addrs, size_t *ret_n)
{
        int rc = rs_delay(l, "look-up");

        if (rc < 0)
                return rc;
        if (strcasecmp(host, "localhost") != 0)
                return no_answer(-ENOENT, host, "the simulated world knows localhost and literals only");
        if (port < 0)
                return no_answer(-EINVAL, host, "the simulated world knows no services");
        *ret_n = 1;
        return resha_addr_parse("127.0.0.1", (uint16_t)port, ret_addrs);
}

/* The number; -1: a name. -EINVAL. */
static int port_number(const char *port)
{
        size_t digits = strspn(port, "0123456789");

        if (port[digits])
                return strlen(port) < PORT_MAX ? -1 : -EINVAL;
        long n = digits ? strtol(port, NULL, 10) : -1;
        return digits && digits < PORT_MAX && n <= UINT16_MAX ? (int)n : -EINVAL;
}

int resha_resolve(const char *host, const char *port, resha_addr *ret_addrs, size_t max, size_t *ret_n)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0)
                return rc;
        if (!host || !*host || !max)
                return resha_fail_at(-EINVAL, NULL, "look-up without a name, or without room for an answer");
        if (strlen(host) > HOST_MAX)
                return resha_fail_at(-EMSGSIZE, NULL, "look-up of a name of %zu bytes; at most %d", strlen(host),
                                     HOST_MAX);
        int number = port_number(port ? port : "0");
        if (number == -EINVAL)
                return no_answer(-EINVAL, host, "bad port or service");
        if (number >= 0 && rs_addr_parse(host, (uint16_t)number, ret_addrs) == 0) {
                *ret_n = 1;
                return rs_complete(l, 0);
        }
        if (l->simulated)
                return resolve_simulated(l, host, number, ret_addrs, ret_n);
        return resolve_real(l, host, port ? port : "0", ret_addrs, max, ret_n);
}
