/* SPDX-License-Identifier: MIT */
/* A9: exchange rates, a second each: one by one, then together; an unknown currency is an error that names it. */
#include <stdio.h>
#include <string.h>

#include <resha/resha.h>

struct rate {
        const char *currency;
        double value;
};

static const struct rate known[] = { { "USD", 92.5 }, { "EUR", 100.1 }, { "CNY", 12.7 } };

static int fetch_rate(void *arg)
{
        struct rate *r = arg;
        int rc = resha_sleep(RESHA_S(1));

        if (rc < 0)
                return rc;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
                if (strcmp(known[i].currency, r->currency) == 0) {
                        r->value = known[i].value;
                        return 0;
                }
        return resha_fail(-ENOENT, "no rate for %s", r->currency);
}

static void print(const struct rate *r, size_t n, resha_instant start)
{
        for (size_t i = 0; i < n; i++)
                printf("%s %.1f  ", r[i].currency, r[i].value);
        printf("after %.1f s\n", (double)resha_between(start, resha_now()).ns / 1e9);
}

static int program(void *arg)
{
        struct rate r[] = { { .currency = "USD" }, { .currency = "EUR" }, { .currency = "CNY" } };
        resha_instant start = resha_now();
        int rc = 0;

        (void)arg;
        for (int i = 0; i < 3 && rc >= 0; i++)
                rc = fetch_rate(&r[i]);
        print(r, 3, start);

        start = resha_now();
        if (rc >= 0)
                rc = resha_gather(fetch_rate, r, 3, sizeof r[0], NULL);
        print(r, 3, start);
        if (rc < 0)
                return rc;

        r[1].currency = "XXX";
        rc = resha_gather(fetch_rate, r, 3, sizeof r[0], NULL);
        if (rc != -ENOENT)
                return rc;
        printf("error: %s\n", resha_error_of(rc)->text);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
