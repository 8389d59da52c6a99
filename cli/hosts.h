/* SPDX-License-Identifier: MIT */
#ifndef CLI_HOSTS_H
#define CLI_HOSTS_H

/* What holds for one host (scheme, name, port): the rates of --rate, and a pause that it has asked for. */

#include <resha/base.h>
#include <resha/time.h>

#include "number.h"

struct hosts;

/* rates are copied; at most MAX_RATES (options.h). 0 or -ENOMEM. */
int hosts_new(const struct rate *rates, size_t n, struct hosts **ret_hosts);
void hosts_free(struct hosts *h);
void hosts_freep(struct hosts **h);

/* Whether url's host may be asked now: 1, and that is counted as a request. 0: not before *ret_turn, a moment that
 * nobody else is given; come again then, with `waited` set. -ENOMEM. Costs nothing where there is neither rate nor
 * pause. Never suspends. */
int hosts_ask(struct hosts *h, const char *url, bool waited, resha_instant *ret_turn);

/* Nobody asks url's host before t. */
void hosts_pause(struct hosts *h, const char *url, resha_instant t);

#endif
