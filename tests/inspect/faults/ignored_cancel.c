/* SPDX-License-Identifier: MIT */
/* The fault: a task that tries until it works, and takes the end of its time for one more failure. */
#include <resha/resha.h>

static int ask_somebody(void)
{
        int rc = resha_sleep(RESHA_MS(20));
        return rc < 0 ? rc : -EAGAIN; /* not yet */
}

static int stubborn(void *arg)
{
        int rc;
        (void)arg;
        do
                rc = ask_somebody();
        while (rc < 0); /* also when it is -ECANCELED */
        return rc;
}

static int program(void *arg)
{
        (void)arg;
        RESHA_SCOPE(patience);
        resha_timeout_begin(&patience, RESHA_MS(100));
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, stubborn, NULL);
        int rc = resha_group_end(&g, 0);
        return resha_scope_end(&patience, rc);
}

int main(void)
{
        return resha_main(program, NULL);
}
