/* SPDX-License-Identifier: MIT */
/* The library optimised together with the program: calls must not move into the frame that their scope lies in, or the
 * check for a frame that has returned sees one. Built with all sources of the library, by -flto. */

#include "test.h"

static int body(__attribute__((unused)) void *arg)
{
        RESHA_SCOPE(s);
        RESHA_GROUP(g);

        resha_timeout_begin(&s, RESHA_S(5));
        resha_group_begin(&g, NULL);
        int rc = resha_sleep(RESHA_MS(1));
        if (rc == 0)
                rc = resha_yield();
        if (rc == 0)
                rc = resha_checkpoint();
        rc = resha_group_end(&g, rc);
        return resha_scope_end(&s, rc);
}

TASK(calls_keep_their_own_frame)
{
        ASSERT_OK(body(NULL));
        return 0;
}
