/* SPDX-License-Identifier: MIT */
#ifndef CLI_HOSTS_H
#define CLI_HOSTS_H

/* What holds for one host (scheme, name, port): the rates of --rate, and a pause that it has asked for. */

#include <resha/base.h>
#include <resha/limiter.h>
#include <resha/time.h>

#include "number.h"

struct hosts;

/* rates are copied. 0 or -ENOMEM. */
int hosts_new(const struct rate *rates, size_t n, struct hosts **ret_hosts);
void hosts_free(struct hosts *h);
void hosts_freep(struct hosts **h);

/* Waits until url's host may be asked. 0, -ECANCELED, -ENOMEM. Costs nothing where there is neither rate nor pause.
 * [task] cancellation point */
int hosts_acquire(struct hosts *h, const char *url);

/* Nobody asks url's host before t. */
void hosts_pause(struct hosts *h, const char *url, resha_instant t);

#endif
