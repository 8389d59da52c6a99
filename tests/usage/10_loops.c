/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <resha/resha.h>

struct side { resha_sender *tx; resha_receiver *rx; };

static int side(void *arg)               /* whichever side ends first, well or badly, releases the other */
{
        struct side *s = arg;
        resha_sender *tx RESHA_CLEANUP(resha_sender_closep) = s->tx;
        resha_receiver *rx RESHA_CLEANUP(resha_receiver_closep) = s->rx;
        int v, rc = 0;
        if (tx)
                for (v = 0; v < 1000000 && rc >= 0; v++)
                        rc = resha_send(tx, &v);
        else
                while ((rc = resha_recv(rx, &v)) > 0)
                        if (v == 500000)
                                return resha_fail(-EIO, "bad item %d", v);
        return rc;
}

int main(void)
{
        struct side s[2] = { 0 };
        if (resha_channel_new(sizeof(int), 1024, &s[0].tx, &s[1].rx) < 0)
                return 1;
        return resha_run_loops(side, s, 2, sizeof s[0], NULL) < 0;
}
