/* SPDX-License-Identifier: MIT */

/* Numbers as people write them. Decimal digits are read by hand: strtod() follows the locale, strtoul() takes signs and
 * blanks. */

#include "number.h"

#include <string.h>

/* Reads digits, with a fraction if `scale` is above 1, as value * scale; *s moves behind them. */
static int read_scaled(const char **s, uint64_t scale, uint64_t *ret_v)
{
        const char *p = *s;
        uint64_t v = 0;
        if (*p < '0' || *p > '9')
                return -EINVAL;
        for (; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
                        return -ERANGE;
        if (__builtin_mul_overflow(v, scale, &v))
                return -ERANGE;
        if (*p == '.' && scale > 1) {
                uint64_t part = 0, whole = 1; /* nine digits of the fraction count */
                if (*++p < '0' || *p > '9')
                        return -EINVAL;
                for (; *p >= '0' && *p <= '9'; p++)
                        if (whole < UINT64_C(1000000000))
                                part = part * 10 + (uint64_t)(*p - '0'), whole *= 10;
                if (__builtin_add_overflow(v, (uint64_t)((unsigned __int128)scale * part / whole), &v))
                        return -ERANGE;
        }
        *s = p;
        *ret_v = v;
        return 0;
}

int number_count(const char *s, uint64_t min, uint64_t max, uint64_t *ret_n)
{
        uint64_t v;
        int rc = read_scaled(&s, 1, &v);
        if (rc == 0 && *s)
                rc = -EINVAL;
        if (rc == 0 && (v < min || v > max))
                rc = -ERANGE;
        if (rc == 0)
                *ret_n = v;
        return rc;
}

struct unit {
        char name[4];
        uint64_t scale;
};

/* The number at the start of s in the smallest unit, by the unit behind it. */
static int read_with_unit(const char *s, const struct unit *units, size_t n, uint64_t *ret_v)
{
        size_t digits = strspn(s, "0123456789.");
        for (size_t i = 0; i < n; i++) {
                if (strcmp(s + digits, units[i].name) != 0)
                        continue;
                const char *p = s;
                int rc = read_scaled(&p, units[i].scale, ret_v);
                return rc < 0 ? rc : p == s + digits ? 0 : -EINVAL;
        }
        return -EINVAL;
}

#define SECOND UINT64_C(1000000000)
#define DAY (86400 * SECOND)

int number_time(const char *s, resha_duration *ret_d)
{
        static const struct unit units[] = {
                { "", SECOND },       { "s", SECOND },        { "ms", SECOND / 1000 },
                { "m", 60 * SECOND }, { "h", 3600 * SECOND }, { "d", DAY },
        };
        uint64_t v;
        int rc = read_with_unit(s, units, sizeof units / sizeof units[0], &v);
        if (rc == 0 && (v == 0 || v > 365 * DAY))
                rc = -ERANGE;
        if (rc == 0)
                *ret_d = RESHA_NS(v);
        return rc;
}

int number_size(const char *s, uint64_t *ret_bytes)
{
        static const struct unit units[] = {
                { "", 1 },        { "B", 1 },        { "k", 1 << 10 }, { "K", 1 << 10 },  { "kB", 1 << 10 },
                { "M", 1 << 20 }, { "MB", 1 << 20 }, { "G", 1 << 30 }, { "GB", 1 << 30 },
        };
        uint64_t v;
        int rc = read_with_unit(s, units, sizeof units / sizeof units[0], &v);
        if (rc == 0 && (v == 0 || v > (uint64_t)INT64_MAX))
                rc = -ERANGE;
        if (rc == 0)
                *ret_bytes = v;
        return rc;
}

int number_rate(const char *s, struct rate *ret_rate)
{
        static const struct unit pers[] = {
                { "/s", SECOND }, { "/m", 60 * SECOND }, { "/h", 3600 * SECOND }, { "/d", DAY }
        };
        uint64_t count;
        int rc = read_scaled(&s, 1, &count);
        if (rc < 0)
                return rc;
        if (count < 1 || count > 1000000)
                return -ERANGE;
        for (size_t i = 0; i < sizeof pers / sizeof pers[0]; i++) {
                if (strcmp(s, pers[i].name) != 0)
                        continue;
                *ret_rate = (struct rate){ .count = (unsigned)count, .per = RESHA_NS(pers[i].scale) };
                return 0;
        }
        return -EINVAL;
}

int number_seconds(const char *s, resha_duration *ret_d)
{
        uint64_t v;
        int rc = read_scaled(&s, SECOND, &v);
        if (rc == 0 && *s)
                rc = -EINVAL;
        if (rc == 0 && v > (uint64_t)INT64_MAX)
                rc = -ERANGE;
        if (rc == 0)
                *ret_d = RESHA_NS(v);
        return rc;
}
