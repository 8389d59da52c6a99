/* SPDX-License-Identifier: MIT */
/* The connection is cut by somebody in the middle: at every record and at every byte of many, in either direction,
 * while hands are shaken, data goes, and both end; in TLS 1.2 and 1.3. Who waits for what was cut off always gets an
 * error, and a short text is never a success. A peer that falls silent anywhere is given up in time. */

#include "laws.h"

#include <stdlib.h>

/* ---- cut ---- */

/* Who was cut off knows it, and calls it by its name; what the other end says is its own affair, if it is true. */
static void check_cut(const struct talk *t)
{
        const struct end *victim = t->plan.way == TO_SERVER ? &t->server : &t->client;

        laws_hold(t);
        if (!t->done)
                return;
        if (t->plan.at >= t->seen[t->plan.way][t->plan.record].size && laws_last_record(t))
                return; /* behind the close_notify: nothing is missing */
        ASSERT_EQ(victim->rc, RESHA_TLS_ETRUNCATED);
        ASSERT_HAS(victim->text, " ended ");
}

/* Where a record is cut next: at its boundaries, at each byte of its head, and at some of the rest, or at all of
 * them. */
static size_t next_cut(size_t at, size_t size)
{
        size_t step = getenv("RESHA_TEST_LONG") || at < 6 ? 1 : size / 10 + 1;

        if (at >= size)
                return SIZE_MAX;
        return at + step < size ? at + step : at < size - 1 ? size - 1 : size;
}

static unsigned cut_everywhere(struct laws *l, enum act act, int way)
{
        unsigned cuts = 0;

        for (unsigned record = 0;; record++) {
                size_t size = 1;
                for (size_t at = 0; at <= size; at = next_cut(at, size)) {
                        struct talk *t = laws_talk(l, (struct plan){ act, way, record, at });
                        check_cut(t);
                        if (!t->done)
                                return cuts;
                        size = t->seen[way][record].size;
                        cuts++;
                }
        }
}

static int cuts(void *arg)
{
        struct laws *l = arg;
        unsigned n = 0;

        laws_begin(l);
        for (int way = 0; way < WAYS; way++) {
                n += cut_everywhere(l, CUT, way);
                n += cut_everywhere(l, CUT_ALL, way);
        }
        laws_end(l);
        printf("%u cuts\n", n);
        ASSERT_TRUE(n > 300);
        return 0;
}

LAWS(cut_at_every_record_in_tls13, cuts, .version = RESHA_TLS_1_3)
LAWS(cut_at_every_record_in_tls12, cuts, .version = RESHA_TLS_1_2)
LAWS(cut_at_every_record_of_resumed_tls13, cuts, .version = RESHA_TLS_1_3, .resumed = true)
LAWS(cut_at_every_record_of_resumed_tls12, cuts, .version = RESHA_TLS_1_2, .resumed = true)
LAWS(cut_at_every_record_with_both_certificates, cuts, .version = RESHA_TLS_1_3, .mutual = true)

/* ---- silent ---- */

/* Nobody waits for ever. A handshake by its own time; the end by that of finish; what a program reads by the
 * program's, here a minute. */
static void check_silence(const struct talk *t)
{
        laws_hold(t);
        for (int i = 0; i < 2; i++) {
                const struct end *e = i ? &t->server : &t->client;
                if (e->shake == -ETIMEDOUT) {
                        ASSERT_HAS(e->text, "handshake");
                        ASSERT_TRUE(e->took.ns >= RESHA_S(LAWS_HANDSHAKE).ns &&
                                    e->took.ns <= RESHA_S(LAWS_HANDSHAKE + 1).ns);
                }
                ASSERT_TRUE(e->took.ns <= RESHA_S(66).ns);
        }
        if (!t->done)
                return;
        const struct end *victim = t->plan.way == TO_SERVER ? &t->server : &t->client;
        ASSERT_TRUE(victim->rc == -ETIMEDOUT || victim->rc == -ETIME);
        ASSERT_TRUE(t->plan.record > 0 || victim->shake == -ETIMEDOUT);
}

static int silences(void *arg)
{
        struct laws *l = arg;

        laws_begin(l);
        for (int way = 0; way < WAYS; way++)
                for (unsigned record = 0;; record++) {
                        struct talk *t = laws_talk(l, (struct plan){ SILENT, way, record, 0 });
                        check_silence(t);
                        if (!t->done)
                                break;
                }
        laws_end(l);
        return 0;
}

LAWS(silent_from_every_record_on_in_tls13, silences, .version = RESHA_TLS_1_3)
LAWS(silent_from_every_record_on_in_tls12, silences, .version = RESHA_TLS_1_2)

/* ---- slow, and undisturbed ---- */

static int drips(void *arg)
{
        struct laws *l = arg;

        laws_begin(l);
        for (int way = 0; way < WAYS; way++)
                laws_succeed(laws_talk(l, (struct plan){ DRIP, way, RECORDS_MAX, 0 }));
        laws_end(l);
        return 0;
}

LAWS(a_byte_at_a_time_in_tls13, drips, .version = RESHA_TLS_1_3)
LAWS(a_byte_at_a_time_in_tls12, drips, .version = RESHA_TLS_1_2)
