/* SPDX-License-Identifier: MIT */
/* The books of channels: those of queues, but for that both ends are counted, and that what nobody received is dropped
 * when the last receiver closes. */

#include "books.h"

#include <string.h>

#include "sync/channel.h"

int64_t channel_inside(const struct entry *e)
{
        const struct rs_channel *c = e->at;

        return e->freed ? 0 : (int64_t)(c->tx.passed - c->rx.passed);
}

/* ---- made and closed ---- */

int audit_channel_new_opt(size_t item_size, size_t capacity, const resha_channel_opts *opts, resha_sender **ret_sender,
                          resha_receiver **ret_receiver)
{
        resha_channel_opts o = opts ? *opts : (resha_channel_opts){ 0 };

        o.drop = o.drop ? items_drop : NULL;
        int rc = resha_channel_new_opt(item_size, capacity, opts ? &o : NULL, ret_sender, ret_receiver);
        if (rc < 0)
                return rc;
        struct entry *e = books_fresh(*ret_sender, CHANNEL);
        e->item_size = item_size;
        e->drop = opts ? opts->drop : NULL;
        e->all = 2;
        return rc;
}

int audit_channel_new(size_t item_size, size_t capacity, resha_sender **ret_sender, resha_receiver **ret_receiver)
{
        return audit_channel_new_opt(item_size, capacity, NULL, ret_sender, ret_receiver);
}

static void count_ref(const void *end)
{
        struct entry *e = end ? books_find(end, CHANNEL) : NULL;

        if (e)
                e->all++;
}

resha_sender *audit_sender_ref(resha_sender *s)
{
        count_ref(s);
        return resha_sender_ref(s);
}

resha_receiver *audit_receiver_ref(resha_receiver *r)
{
        count_ref(r);
        return resha_receiver_ref(r);
}

/* Its memory may be another channel's, once the last one has closed. */
static void count_close(struct entry *e)
{
        if (e && --e->all == 0)
                e->freed = e->loose = true;
}

void audit_sender_close(resha_sender *s)
{
        struct entry *e = s ? books_find(s, CHANNEL) : NULL;

        if (e)
                items_check(e, 0);
        resha_sender_close(s);
        count_close(e);
}

void audit_receiver_close(resha_receiver *r)
{
        struct entry *e = r ? books_find(r, CHANNEL) : NULL;
        bool last = e && ((const struct rs_channel *)e->at)->rx.users == 1;
        int64_t left = e ? channel_inside(e) : 0, gone = e ? e->gone : 0;

        if (e)
                items_check(e, 0);
        items_dropping = e;
        resha_receiver_close(r);
        items_dropping = NULL;
        if (last && e->drop && e->gone - gone != left)
                audit_wrong("channel: closed with %lld items, %lld were dropped", (long long)left,
                            (long long)(e->gone - gone));
        if (last && !e->drop && left)
                e->loose = true; /* nobody tells which ones */
        count_close(e);
        if (last)
                items_check(e, 0);
}

void audit_sender_closep(resha_sender **s)
{
        audit_sender_close(*s);
        *s = NULL;
}

void audit_receiver_closep(resha_receiver **r)
{
        audit_receiver_close(*r);
        *r = NULL;
}

/* ---- sent and received ---- */

static int send_inside(struct entry *e, resha_sender *s, const void *item)
{
        size_t *inside __attribute__((cleanup(items_inside_end), unused)) = &e->givers;

        e->givers++;
        return resha_send(s, item);
}

int audit_send(resha_sender *s, const void *item)
{
        struct entry *e = books_find(s, CHANNEL);

        if (!e)
                return resha_send(s, item);
        uint64_t sum = items_sum(e, item);
        int rc = send_inside(e, s, item);
        if (rc == 1)
                items_put(e, sum);
        return items_check(e, rc);
}

static int recv_inside(struct entry *e, resha_receiver *r, void *ret_item)
{
        size_t *inside __attribute__((cleanup(items_inside_end), unused)) = &e->takers;

        e->takers++;
        return resha_recv(r, ret_item);
}

int audit_recv(resha_receiver *r, void *ret_item)
{
        struct entry *e = books_find(r, CHANNEL);

        if (!e)
                return resha_recv(r, ret_item);
        int rc = recv_inside(e, r, ret_item);
        if (rc == 1)
                items_got(e, ret_item);
        return items_check(e, rc);
}

int audit_try_send(resha_sender *s, const void *item)
{
        struct entry *e = books_find(s, CHANNEL);
        uint64_t sum = e ? items_sum(e, item) : 0;
        int rc = resha_try_send(s, item);

        if (e && rc == 1)
                items_put(e, sum);
        return e ? items_check(e, rc) : rc;
}

int audit_try_recv(resha_receiver *r, void *ret_item)
{
        struct entry *e = books_find(r, CHANNEL);
        int rc = resha_try_recv(r, ret_item);

        if (e && rc == 1)
                items_got(e, ret_item);
        return e ? items_check(e, rc) : rc;
}

/* ---- waiting for ever ---- */

void channel_check_waiter(const struct rs_wait *w, const char *task)
{
        const struct entry *e = w->object ? books_find(w->object, CHANNEL) : NULL;
        const struct rs_channel *c = w->object;

        if (!e || e->freed)
                return;
        if (strcmp(w->what, "item of channel") == 0 && (channel_inside(e) || c->tx.closed))
                audit_wrong("channel: has an item, or is closed, and task \"%s\" waits for one for ever", task);
        if (strcmp(w->what, "place in channel") == 0 && (channel_inside(e) < (int64_t)c->capacity || c->rx.closed))
                audit_wrong("channel: has a place, or is closed, and task \"%s\" waits for one for ever", task);
}
