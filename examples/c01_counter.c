/* SPDX-License-Identifier: MIT */
/* C1: a hundred tasks add one to a counter, with a wait between reading and writing. Under a lock the sum is right. */
#include <stdio.h>

#include <resha/resha.h>

enum { TASKS = 100 };

struct counter {
        int value;
        resha_mutex lock; /* all zero: unlocked */
};

static int add_one(struct counter *c)
{
        int value = c->value;
        int rc = resha_sleep(RESHA_MS(1)); /* here the others run */

        if (rc >= 0)
                c->value = value + 1;
        return rc;
}

static int without_lock(void *arg)
{
        return add_one(*(struct counter **)arg);
}

static int with_lock(void *arg)
{
        struct counter *c = *(struct counter **)arg;
        int rc = resha_mutex_lock(&c->lock);

        if (rc < 0)
                return rc; /* cancelled: not taken */
        rc = add_one(c);
        resha_mutex_unlock(&c->lock);
        return rc;
}

static int count(const char *what, resha_fn *fn)
{
        struct counter c = { 0 };
        struct counter *items[TASKS];

        for (int i = 0; i < TASKS; i++)
                items[i] = &c;
        int rc = resha_gather(fn, items, TASKS, sizeof items[0], NULL);
        printf("%s: %d\n", what, c.value);
        return rc;
}

static int program(void *arg)
{
        (void)arg;
        int rc = count("without a lock", without_lock);
        return rc < 0 ? rc : count("under a lock  ", with_lock);
}

int main(void)
{
        return resha_main(program, NULL);
}
