/* SPDX-License-Identifier: MIT */
/* The simulated world, as tests that are made by hand steer it: the public form of io/sim.h. */

#include <signal.h>
#include <sys/socket.h>

#include <resha/test.h>

#include "core/core.h"
#include "io/sim.h"
#include "io/sim_hosts.h"
#include "os/signals.h"
#include "sys/sys.h"

_Static_assert((int)RESHA_TEST_LATENCY == (int)RS_FAULT_LATENCY && (int)RESHA_TEST_STALL == (int)RS_FAULT_STALL &&
                       (int)RESHA_TEST_SHORT_READ == (int)RS_FAULT_SHORT_READ &&
                       (int)RESHA_TEST_SHORT_WRITE == (int)RS_FAULT_SHORT_WRITE &&
                       (int)RESHA_TEST_SMALL_BUFFER == (int)RS_FAULT_SMALL_BUFFER &&
                       (int)RESHA_TEST_RESET == (int)RS_FAULT_RESET &&
                       (int)RESHA_TEST_REFUSED == (int)RS_FAULT_REFUSED &&
                       (int)RESHA_TEST_ACCEPT == (int)RS_FAULT_ACCEPT && (int)RESHA_TEST_LOSS == (int)RS_FAULT_LOSS &&
                       (int)RESHA_TEST_DUPLICATE == (int)RS_FAULT_DUPLICATE &&
                       (int)RESHA_TEST_REORDER == (int)RS_FAULT_REORDER && (int)RESHA_TEST_FAULTS == (int)RS_FAULT_NTH,
               "the public names of faults");

enum { NAME_ADDRS_MAX = 1000 };

/* NULL: this thread runs no simulated world. */
static struct rs_sim_plan *plan_here(void)
{
        return rs_loop_current ? rs_sim_plan(rs_loop_current->backend) : NULL;
}

uint64_t resha_test_seed(void)
{
        const struct rs_sim_plan *plan = plan_here();

        return plan ? plan->seed : 0;
}

uint64_t resha_test_random(void)
{
        struct rs_loop *l = rs_loop_current;

        return plan_here() ? l->backend->ops->random(l->backend) : 0;
}

int resha_test_fault(enum resha_test_fault kind, unsigned per_mille)
{
        struct rs_sim_plan *plan = plan_here();

        if (!plan)
                return resha_fail_at(-EPERM, NULL, "faults are of the simulated world: RESHA_BACKEND=sim:SEED");
        if ((unsigned)kind >= RESHA_TEST_FAULTS || per_mille > 1000)
                return resha_fail_at(-EINVAL, NULL, "fault %d at %u per mille: 0 to %d, at most 1000", (int)kind,
                                     per_mille, RESHA_TEST_FAULTS - 1);
        plan->per_mille[kind] = per_mille;
        return 0;
}

int resha_test_latency(resha_duration at_most)
{
        struct rs_sim_plan *plan = plan_here();

        if (!plan)
                return resha_fail_at(-EPERM, NULL, "latency is of the simulated world: RESHA_BACKEND=sim:SEED");
        if (at_most.ns < 0)
                return resha_fail_at(-EINVAL, NULL, "a latency of less than nothing");
        plan->latency_max = at_most.ns;
        return 0;
}

uint64_t resha_test_fired(enum resha_test_fault kind)
{
        const struct rs_sim_plan *plan = plan_here();

        return plan && (unsigned)kind < RESHA_TEST_FAULTS ? plan->fired[kind] : 0;
}

static bool is_inet(const resha_addr *a)
{
        return resha_addr_family(a) == AF_INET || resha_addr_family(a) == AF_INET6;
}

int resha_test_name(const char *host, const resha_addr *addrs, size_t n)
{
        bool good = host && *host && n <= NAME_ADDRS_MAX && (addrs || n == 0);

        if (!plan_here())
                return resha_fail_at(-EPERM, NULL, "names are of the simulated world: RESHA_BACKEND=sim:SEED");
        for (size_t i = 0; good && i < n; i++)
                good = is_inet(&addrs[i]);
        if (!good)
                return resha_fail_at(-EINVAL, NULL, "the name \"%s\" with %zu addresses: 0 to %d, of IPv4 and IPv6",
                                     host ? host : "", n, NAME_ADDRS_MAX);
        return rs_sim_name(rs_loop_current->backend, host, addrs, n);
}

int resha_test_silent(const resha_addr *addr)
{
        if (!plan_here())
                return resha_fail_at(-EPERM, NULL, "silent hosts are of the simulated world: RESHA_BACKEND=sim:SEED");
        if (!is_inet(addr))
                return resha_fail_at(-EINVAL, NULL, "a silent host has an address of IPv4 or IPv6");
        return rs_sim_silent(rs_loop_current->backend, addr);
}

int resha_test_signal(int sig)
{
        resha_signal_info info = { .signal = sig, .code = SI_USER, .pid = rs_sys_pid(), .uid = rs_sys_uid() };

        if (!plan_here())
                return resha_fail_at(-EPERM, NULL, "raised signals are of the simulated world: RESHA_BACKEND=sim:SEED");
        if (sig < 1 || sig > RS_SIGNALS)
                return resha_fail_at(-EINVAL, NULL, "there is no signal %d", sig);
        if (!rs_signals_simulate(rs_loop_current, &info))
                return resha_fail_at(-ESRCH, NULL, "nobody asks for signal %d: it would do as by default", sig);
        return 0;
}
