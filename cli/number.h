/* SPDX-License-Identifier: MIT */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

/* Numbers as people write them in options. All: 0, or -EINVAL, -ERANGE. */

#include <resha/base.h>
#include <resha/time.h>

/* A whole number, "1,000" and signs refused. */
int number_count(const char *s, uint64_t min, uint64_t max, uint64_t *ret_n);

/* "30s", "500ms", "1.5s", "5m", "2h", "1d"; without a unit seconds. Above 0 and at most 365 days. */
int number_time(const char *s, resha_duration *ret_d);

/* "16M", "500k", "1G", "1.5M": powers of 1024; without a unit bytes. At least 1. */
int number_size(const char *s, uint64_t *ret_bytes);

struct rate {
        unsigned count;     /* 1..1000000 starts ... */
        resha_duration per; /* ... in each of these */
};

/* "10/s", "100/m", "5000/h", "1000/d". */
int number_rate(const char *s, struct rate *ret_rate);

/* Seconds with an optional fraction and nothing else, 0 allowed: what Retry-After carries. */
int number_seconds(const char *s, resha_duration *ret_d);

#endif
