/* SPDX-License-Identifier: MIT */
/* Somebody in the middle changes what goes: turns a bit of each record over, drops records, sends them twice or in
 * another order. Whatever it is, nobody is content with other bytes than those that were sent; and where TLS protects a
 * record, who receives it fails. */

#include "laws.h"

/* What TLS does not protect, and need not: the version in the head of a plaintext record is for nobody, and the
 * change_cipher_spec of TLS 1.3 is there for old boxes in between and is dropped. */
static bool harmless(const struct talk *t, enum resha_tls_version version)
{
        const struct record *r = &t->seen[t->plan.way][t->plan.record];
        const struct record *next = &t->seen[t->plan.way][t->plan.record + 1];
        bool change = r->type == 20 || (t->plan.act == SWAP && next->type == 20);

        if (t->plan.act == FLIP)
                return r->type != 23 && (t->plan.at == 1 || t->plan.at == 2);
        if (version == RESHA_TLS_1_3 && change)
                return true;
        /* What comes behind the end is not looked at, and behind the last record nothing comes to change places
         * with. */
        return (t->plan.act == REPEAT || t->plan.act == SWAP) && laws_last_record(t);
}

static void check_tampered(const struct laws *l)
{
        const struct talk *t = &l->talk;
        const struct end *victim = t->plan.way == TO_SERVER ? &t->server : &t->client;

        laws_hold(t);
        if (t->done && !harmless(t, l->version))
                ASSERT_TRUE(victim->rc < 0);
}

static size_t next_flip(size_t at, size_t size)
{
        return at < 6 ? at + 1 : at + size / 16 + 1;
}

static void flip_everything(struct laws *l, int way)
{
        for (unsigned record = 0;; record++) {
                size_t size = 1;
                for (size_t at = 0; at < size; at = next_flip(at, size)) {
                        const struct talk *t = laws_talk(l, (struct plan){ FLIP, way, record, at });
                        check_tampered(l);
                        if (!t->done)
                                return;
                        size = t->seen[way][record].size;
                }
        }
}

static void do_to_every_record(struct laws *l, enum act act, int way)
{
        for (unsigned record = 0;; record++) {
                const struct talk *t = laws_talk(l, (struct plan){ act, way, record, 0 });
                check_tampered(l);
                if (t->count[way] <= record)
                        return;
        }
}

static int tampers(void *arg)
{
        struct laws *l = arg;

        laws_begin(l);
        for (int way = 0; way < WAYS; way++) {
                flip_everything(l, way);
                do_to_every_record(l, DROP, way);
                do_to_every_record(l, REPEAT, way);
                do_to_every_record(l, SWAP, way);
        }
        laws_end(l);
        return 0;
}

LAWS(every_record_tampered_with_in_tls13, tampers, .version = RESHA_TLS_1_3)
LAWS(every_record_tampered_with_in_tls12, tampers, .version = RESHA_TLS_1_2)
LAWS(every_record_tampered_with_of_resumed_tls13, tampers, .version = RESHA_TLS_1_3, .resumed = true)
LAWS(every_record_tampered_with_of_resumed_tls12, tampers, .version = RESHA_TLS_1_2, .resumed = true)
