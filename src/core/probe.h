/* SPDX-License-Identifier: MIT */
#ifndef RS_PROBE_H
#define RS_PROBE_H

/* Static probes (USDT), for bpftrace, perf and SystemTap: places that a tracer of the kernel can stop at, each a `nop`
 * and a note in the library. Only in builds that ask for them (-Dusdt=enabled): even a nop is an instruction on the way
 * of each switch, and the arguments have to be where the note says. Provider `resha`; ids are those of `resha ps`, 0
 * being the loop itself, names are strings of C. */

#ifdef RS_USDT
#include <sys/sdt.h>

#define RS_PROBE_ID(t) ((t) ? (t)->id : 0)
#define RS_PROBE_SPAWN(l, t) DTRACE_PROBE4(resha, spawn, (t)->id, (t)->name, (t)->site, RS_PROBE_ID((l)->current))
#define RS_PROBE_SWITCH(l, to) DTRACE_PROBE2(resha, switch, RS_PROBE_ID((l)->current), RS_PROBE_ID(to))
#define RS_PROBE_PARK(t, w) DTRACE_PROBE3(resha, park, (t)->id, (w)->what, (w)->object)
#define RS_PROBE_WAKE(l, t) DTRACE_PROBE2(resha, wake, (t)->id, RS_PROBE_ID((l)->current))
#define RS_PROBE_CANCEL(l, t) DTRACE_PROBE2(resha, cancel, (t)->id, RS_PROBE_ID((l)->current))
#define RS_PROBE_END(t, rc) DTRACE_PROBE2(resha, end, (t)->id, (rc))
#else
#define RS_PROBE_SPAWN(l, t) ((void)0)
#define RS_PROBE_SWITCH(l, to) ((void)0)
#define RS_PROBE_PARK(t, w) ((void)0)
#define RS_PROBE_WAKE(l, t) ((void)0)
#define RS_PROBE_CANCEL(l, t) ((void)0)
#define RS_PROBE_END(t, rc) ((void)0)
#endif

#endif
