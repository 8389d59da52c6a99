/* SPDX-License-Identifier: MIT */
/* Channels of the stress: one for all loops and threads of a round, small, so that somebody always waits. Tasks send
 * and receive, most under a timeout, and so do threads.
 *
 * The books: an item that was sent is received once, or dropped once when the last receiver closes; one that was not
 * sent is neither. */

#include "stress.h"

#include <errno.h>

#include <resha/alloc.h>
#include <resha/channel.h>

enum { SENT_MOST = 20000 };

static struct {
        resha_sender *tx;
        resha_receiver *rx;
        atomic_uint numbers, lied;
        atomic_uchar *sent, *got; /* by number */
} channel;

static void got(unsigned number)
{
        ASSERT_TRUE(number < SENT_MOST);
        if (stress_plant != PLANT_RECV_LOSES || number % 64 != 63)
                ASSERT_EQ(atomic_fetch_add(&channel.got[number], 1), 0);
}

static void dropped(void *item)
{
        stress_saw(SEEN_CHANNEL_DROP);
        got(*(unsigned *)item);
}

void stress_channel_begin(const struct stress_round *r)
{
        channel.sent = resha_calloc(SENT_MOST, 1);
        channel.got = resha_calloc(SENT_MOST, 1);
        ASSERT_TRUE(channel.sent && channel.got);
        atomic_store(&channel.numbers, 0);
        ASSERT_OK(resha_channel_new_opt(sizeof(unsigned), 1 + r->seed % 5, &(resha_channel_opts){ .drop = dropped },
                                        &channel.tx, &channel.rx));
}

static void sent(unsigned number, int rc)
{
        if (stress_plant == PLANT_SEND_LIES && rc != 1 && number % 4 == 0)
                rc = 1;
        ASSERT_TRUE(rc == 1 || rc == -ECANCELED || rc == -EAGAIN || rc == -ETIME);
        atomic_store(&channel.sent[number], rc == 1);
        stress_saw(rc == 1 ? SEEN_SENT : SEEN_NOT_SENT);
}

static unsigned next_number(void)
{
        unsigned number = atomic_fetch_add(&channel.numbers, 1);

        ASSERT_TRUE(number < SENT_MOST);
        return number;
}

static int send_one(__attribute__((unused)) void *arg)
{
        unsigned number = next_number();
        int rc = resha_send(channel.tx, &number);

        sent(number, rc);
        return rc < 0 ? rc : 0;
}

static int receive_one(__attribute__((unused)) void *arg)
{
        unsigned number;
        int rc = resha_recv(channel.rx, &number);

        if (rc == 1)
                got(number);
        else
                ASSERT_EQ(rc, -ECANCELED);
        return rc < 0 ? rc : 0;
}

/* Under a timeout, as there may be nobody at the other end. */
int stress_channel_use(__attribute__((unused)) struct stress_loop *l, struct luck *luck)
{
        int rc = 0;

        for (unsigned i = roll(luck, 6); i > 0 && rc == 0; i--) {
                rc = resha_timeout(stress_moment(luck), roll(luck, 2) ? send_one : receive_one, NULL);
                rc = rc == -ETIME ? 0 : rc;
        }
        return rc;
}

void stress_channel_thread(struct luck *luck)
{
        resha_duration at_most = RESHA_US(roll(luck, 300));
        unsigned number = 0;
        int rc;

        if (roll(luck, 2)) {
                number = next_number();
                rc = roll(luck, 2) ? resha_try_send(channel.tx, &number)
                                   : resha_send_blocking(channel.tx, &number, at_most);
                sent(number, rc);
                return;
        }
        rc = roll(luck, 2) ? resha_try_recv(channel.rx, &number) : resha_recv_blocking(channel.rx, &number, at_most);
        ASSERT_TRUE(rc == 1 || rc == -EAGAIN || rc == -ETIME);
        if (rc == 1)
                got(number);
}

/* Once the loops and threads are no more: what is left is dropped. */
void stress_channel_check(void)
{
        resha_sender_close(channel.tx);
        resha_receiver_close(channel.rx);
        for (unsigned i = 0; i < atomic_load(&channel.numbers); i++)
                ASSERT_EQ(atomic_load(&channel.got[i]), atomic_load(&channel.sent[i]));
        resha_free((void *)channel.sent);
        resha_free((void *)channel.got);
}
