/* SPDX-License-Identifier: MIT */
#ifndef REAL_HOST_H
#define REAL_HOST_H

/* For tests of embedded runs: a host that polls. */

#include "common.h"

enum { HOST_LONG_MS = 20000, HOST_SLEEPS = 20 };

/* On the backend under test. */
resha_embed *host_begin(resha_fn *fn, void *arg, const resha_run_opts *opts);

/* Whether it becomes readable within ms. */
bool host_readable(resha_embed *e, int ms);

/* Steps whenever the descriptor says so, until the run has ended: how many that were. A host that is left alone for
 * HOST_LONG_MS fails. */
unsigned host_drive(resha_embed *e, resha_duration at_most);

/* A task that sleeps HOST_SLEEPS times for 2 ms, and counts in an unsigned. */
int host_sleeps(void *arg);

#endif
