/* SPDX-License-Identifier: MIT */
/* C6: ten requests a second. A limiter counts starts, a semaphore counts those that run: with quick answers ten
 * permits let through far more than ten in a second. */
#include <stdio.h>

#include <resha/resha.h>

enum { REQUESTS = 35 };

struct client {
        resha_limiter limiter;
        resha_semaphore permits;
        resha_instant start, started[REQUESTS];
        int count;
};

/* A request, answered after 20 ms. */
static int ask(struct client *c)
{
        c->started[c->count++] = resha_now();
        return resha_sleep(RESHA_MS(20));
}

static int by_limiter(void *arg)
{
        struct client *c = *(struct client **)arg;
        int rc = resha_limiter_acquire(&c->limiter);

        return rc < 0 ? rc : ask(c);
}

static int by_semaphore(void *arg)
{
        struct client *c = *(struct client **)arg;
        int rc = resha_semaphore_acquire(&c->permits);

        if (rc < 0)
                return rc;
        rc = ask(c);
        resha_semaphore_release(&c->permits);
        return rc;
}

/* The most that started in any one second. */
static int busiest_second(const struct client *c)
{
        int most = 0;

        for (int from = 0, to = 0; to < c->count; to++) {
                while (resha_between(c->started[from], c->started[to]).ns >= RESHA_S(1).ns)
                        from++;
                most = to - from + 1 > most ? to - from + 1 : most;
        }
        return most;
}

static int run(const char *what, resha_fn *fn)
{
        struct client c = { .start = resha_now() }, *items[REQUESTS];

        resha_semaphore_init(&c.permits, 10);
        int rc = resha_limiter_init(&c.limiter, 10, RESHA_S(1), 1);
        for (int i = 0; i < REQUESTS; i++)
                items[i] = &c;
        if (rc >= 0)
                rc = resha_gather(fn, items, REQUESTS, sizeof items[0], NULL);
        printf("%s: %d requests in %.1f s, at most %d in a second\n", what, c.count,
               (double)resha_between(c.start, resha_now()).ns / 1e9, busiest_second(&c));
        return rc;
}

static int program(void *arg)
{
        (void)arg;
        int rc = run("10 permits  ", by_semaphore);
        return rc < 0 ? rc : run("10 a second ", by_limiter);
}

int main(void)
{
        return resha_main(program, NULL);
}
