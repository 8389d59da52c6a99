/* SPDX-License-Identifier: MIT */
#ifndef RS_SIM_HOSTS_H
#define RS_SIM_HOSTS_H

/* Names of hosts in a simulated world; b is one. */

#include <stddef.h>
#include <stdint.h>

#include <resha/addr.h>

struct rs_backend;
struct sim;

/* The name has these addresses of IPv4 and IPv6, in this order, from now on; n = 0: there is no such name. 0,
 * -ENOMEM. */
int rs_sim_name(struct rs_backend *b, const char *host, const resha_addr *addrs, size_t n);

/* How many addresses the name has, at most max (at least 1); 0: there is no such name. */
size_t rs_sim_resolve(struct rs_backend *b, const char *host, uint16_t port, resha_addr *ret_addrs, size_t max);

/* Frees all of it. */
void sim_hosts_done(struct sim *s);

#endif
