/* SPDX-License-Identifier: MIT */
#ifndef RS_SIM_ADDR_H
#define RS_SIM_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include <resha/addr.h>

/* AF_INET, AF_INET6 or another one. The other functions take the first two only. */
int sim_addr_family(const resha_addr *a);

/* In host order. */
uint16_t sim_addr_port(const resha_addr *a);
void sim_addr_set_port(resha_addr *a, uint16_t port);

/* Whether a listener on `on` gets what goes to the host of `to`; ports aside. */
bool sim_addr_covers(const resha_addr *on, const resha_addr *to);

/* The address that answers at `to`. */
resha_addr sim_addr_reached(const resha_addr *to);

#endif
