/* SPDX-License-Identifier: MIT */
/* C2: a semaphore with three permits and five tasks: at most three are inside, first come, first served. See it with
 * RESHA_TIMELINE=1. */
#include <stdio.h>

#include <resha/resha.h>

struct room {
        resha_semaphore seats;
        int inside, most;
};

struct guest {
        int number;
        struct room *room;
};

static int visit(void *arg)
{
        struct guest *g = arg;
        struct room *room = g->room;
        char name[16];

        snprintf(name, sizeof name, "guest %d", g->number);
        resha_task_set_name(name); /* for the picture */
        int rc = resha_semaphore_acquire(&room->seats);
        if (rc < 0)
                return rc; /* cancelled: none taken */
        room->inside++;
        room->most = room->inside > room->most ? room->inside : room->most;
        printf("%s comes in, %d inside\n", name, room->inside);
        rc = resha_sleep(RESHA_S(g->number));
        room->inside--;
        resha_semaphore_release(&room->seats);
        return rc;
}

static int program(void *arg)
{
        struct room room = { .inside = 0 };
        struct guest guests[5];
        resha_instant start = resha_now();

        (void)arg;
        resha_semaphore_init(&room.seats, 3);
        for (int i = 0; i < 5; i++)
                guests[i] = (struct guest){ i + 1, &room };
        int rc = resha_gather(visit, guests, 5, sizeof guests[0], NULL);
        printf("never more than %d; %.1f s in all\n", room.most, (double)resha_between(start, resha_now()).ns / 1e9);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
