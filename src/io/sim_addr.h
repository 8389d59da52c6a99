/* SPDX-License-Identifier: MIT */
#ifndef RS_SIM_ADDR_H
#define RS_SIM_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include <resha/addr.h>

/* AF_INET, AF_INET6, AF_UNIX or another one. */
int sim_addr_family(const resha_addr *a);

/* No name of this family: the wildcard and no port; unnamed. */
resha_addr sim_addr_none(int family);

/* The same host and port, or Unix name. */
bool sim_addr_same(const resha_addr *a, const resha_addr *b);

/* ---- AF_INET, AF_INET6 ---- */

/* In host order. */
uint16_t sim_addr_port(const resha_addr *a);
void sim_addr_set_port(resha_addr *a, uint16_t port);

/* The wildcard. */
bool sim_addr_is_any(const resha_addr *a);

/* 255.255.255.255. */
bool sim_addr_is_broadcast(const resha_addr *a);
resha_addr sim_addr_loopback(int family);

/* Whether a socket on `on` gets what goes to the host of `to`; ports aside. */
bool sim_addr_covers(const resha_addr *on, const resha_addr *to);

/* The address that answers at `to`. */
resha_addr sim_addr_reached(const resha_addr *to);

/* ---- AF_UNIX ---- */

bool sim_addr_is_unnamed(const resha_addr *a);
bool sim_addr_is_path(const resha_addr *a);
/* A name as the kernel makes one for who asks for any. */
resha_addr sim_addr_numbered(unsigned n);

#endif
