/* SPDX-License-Identifier: MIT */
/* A10: expenses in several currencies: the rates are fetched together, once each, then the totals are computed. */
#include <stdio.h>
#include <string.h>

#include <resha/resha.h>

struct expense {
        const char *what, *currency;
        double amount;
};

struct rate {
        const char *currency;
        double value;
};

static const struct expense expenses[] = {
        { "hotel", "EUR", 120 }, { "taxi", "EUR", 18.5 }, { "lunch", "CNY", 60 }, { "conference", "USD", 300 }
};

static int fetch_rate(void *arg)
{
        struct rate *r = arg;
        int rc = resha_sleep(RESHA_S(1));

        if (rc < 0)
                return rc;
        r->value = strcmp(r->currency, "USD") == 0 ? 92.5 : strcmp(r->currency, "EUR") == 0 ? 100.1 : 12.7;
        return 0;
}

static double total_in(const char *currency)
{
        double total = 0;

        for (size_t i = 0; i < sizeof expenses / sizeof expenses[0]; i++)
                if (strcmp(expenses[i].currency, currency) == 0)
                        total += expenses[i].amount;
        return total;
}

static int program(void *arg)
{
        struct rate rates[] = { { .currency = "USD" }, { .currency = "EUR" }, { .currency = "CNY" } };
        resha_instant start = resha_now();
        double total = 0;

        (void)arg;
        int rc = resha_gather(fetch_rate, rates, 3, sizeof rates[0], NULL);
        if (rc < 0)
                return rc;
        for (int i = 0; i < 3; i++) {
                double amount = total_in(rates[i].currency);
                printf("%s %7.2f at %5.1f = %9.2f INR\n", rates[i].currency, amount, rates[i].value,
                       amount * rates[i].value);
                total += amount * rates[i].value;
        }
        printf("total %28.2f INR, one wait of %.1f s\n", total, (double)resha_between(start, resha_now()).ns / 1e9);
        return 0;
}

int main(void)
{
        return resha_main(program, NULL);
}
