/* SPDX-License-Identifier: MIT */

/* Time of day. Calendar arithmetic is done here on days since 1970 (the proleptic Gregorian calendar), so that neither
 * time zone nor locale plays a part. */

#include "clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const months[] = {
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
};

void clock_init(struct clock *c, int64_t unix_ms)
{
        if (unix_ms < 0) {
                struct timespec now;
                clock_gettime(CLOCK_REALTIME, &now);
                unix_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
        }
        *c = (struct clock){ .base_ms = unix_ms, .base = resha_now(), .second = INT64_MIN };
}

int64_t clock_ms(const struct clock *c, resha_instant t)
{
        return c->base_ms + resha_between(c->base, t).ns / 1000000;
}

void clock_format(struct clock *c, resha_instant t, char ret_text[CLOCK_TEXT])
{
        int64_t ms = clock_ms(c, t);
        int64_t second = ms / 1000 - (ms % 1000 < 0);
        if (second != c->second) {
                time_t s = (time_t)second;
                struct tm tm;
                gmtime_r(&s, &tm);
                strftime(c->text, sizeof c->text, "%Y-%m-%dT%H:%M:%S", &tm);
                c->second = second;
        }
        int part = (int)(ms - second * 1000);
        memcpy(ret_text, c->text, 19);
        ret_text[19] = '.';
        ret_text[20] = (char)('0' + part / 100);
        ret_text[21] = (char)('0' + part / 10 % 10);
        ret_text[22] = (char)('0' + part % 10);
        ret_text[23] = 'Z';
        ret_text[24] = '\0';
}

/* Days from 1970-01-01; years are counted from March, so that the leap day is the last of its year. */
static int64_t days_from_civil(int64_t year, unsigned month, unsigned day)
{
        year -= month <= 2;
        int64_t era = year / 400;
        unsigned of_era = (unsigned)(year - era * 400);
        unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
        return era * 146097 + (int64_t)(of_era * 365 + of_era / 4 - of_era / 100 + of_year) - 719468;
}

static unsigned month_number(const char *name)
{
        for (unsigned i = 0; i < 12; i++)
                if (strcasecmp(name, months[i]) == 0)
                        return i + 1;
        return 0;
}

int clock_parse_http_date(const char *s, int64_t *ret_ms)
{
        char month[4] = "";
        unsigned day, year, hour, minute, second;
        int end = 0;
        const char *comma = strchr(s, ',');
        if (comma &&
            sscanf(comma, ", %2u %3s %4u %2u:%2u:%2u GMT%n", &day, month, &year, &hour, &minute, &second, &end) == 6 &&
            end)
                s = comma + end;
        else if (comma &&
                 sscanf(comma, ", %2u-%3[A-Za-z]-%2u %2u:%2u:%2u GMT%n", &day, month, &year, &hour, &minute, &second,
                        &end) == 6 &&
                 end)
                s = comma + end, year += year < 70 ? 2000 : 1900;
        else if (sscanf(s, "%*3s %3s %2u %2u:%2u:%2u %4u%n", month, &day, &hour, &minute, &second, &year, &end) == 6 &&
                 end)
                s += end;
        else
                return -EINVAL;
        unsigned m = month_number(month);
        if (*s || !m || day < 1 || day > 31 || year < 1970 || hour > 23 || minute > 59 || second > 60)
                return -EINVAL;
        *ret_ms = ((days_from_civil(year, m, day) * 24 + hour) * 60 + minute) * 60000 + (int64_t)second * 1000;
        return 0;
}
