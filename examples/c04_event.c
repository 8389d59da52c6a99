/* SPDX-License-Identifier: MIT */
/* C4: an event. Two tasks wait for it until it is set; who comes later does not wait at all. */
#include <stdio.h>

#include <resha/resha.h>

struct gate {
        resha_event open; /* all zero: not set */
        resha_instant start;
};

static int wait_at(struct gate *gate, const char *who)
{
        printf("%s waits\n", who);
        int rc = resha_event_wait(&gate->open);
        if (rc >= 0)
                printf("%s goes through at %.1f s\n", who, (double)resha_between(gate->start, resha_now()).ns / 1e9);
        return rc;
}

static int first(void *arg)
{
        return wait_at(arg, "first");
}

static int second(void *arg)
{
        return wait_at(arg, "second");
}

static int open_gate(struct gate *gate)
{
        int rc = resha_sleep(RESHA_S(2));

        if (rc < 0)
                return rc;
        puts("the gate opens");
        resha_event_set(&gate->open);
        rc = resha_sleep(RESHA_S(1));
        return rc < 0 ? rc : wait_at(gate, "late");
}

static int program(void *arg)
{
        struct gate gate = { .start = resha_now() };

        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, first, &gate);
        resha_spawn(&g, second, &gate);
        return resha_group_end(&g, open_gate(&gate)); /* should it fail, nobody waits at the gate for ever */
}

int main(void)
{
        return resha_main(program, NULL);
}
