/* SPDX-License-Identifier: MIT */
/* What every loop on the real kernel has: its clock, its luck, and a descriptor by which other threads and signal
 * handlers wake it. */

#include <errno.h>

#include <resha/alloc.h>

#include "io/kernel.h"
#include "sys/sys.h"

int64_t kn_now(struct rs_backend *b)
{
        (void)b;
        return rs_sys_now();
}

/* Marsaglia's xorshift64*. */
uint64_t kn_random(struct rs_backend *b)
{
        struct kn *k = kn_of(b);

        k->luck ^= k->luck >> 12;
        k->luck ^= k->luck << 25;
        k->luck ^= k->luck >> 27;
        return k->luck * UINT64_C(0x2545f4914f6cdd1d);
}

void kn_wake(struct rs_backend *b)
{
        struct kn *k = kn_of(b);

        if (!atomic_exchange(&k->woken, true))
                rs_sys_eventfd_set(k->wakefd);
}

/* First read, then take back the mark: a wake() that sees the mark relies on this wait() to return after it. Who is
 * told of each write needs no read. */
void kn_woken(struct kn *k, bool told_of_each)
{
        if (!told_of_each)
                rs_sys_eventfd_clear(k->wakefd);
        atomic_exchange(&k->woken, false);
}

int64_t kn_timeout(struct kn *k, int64_t deadline)
{
        if (deadline <= 0 || !rs_list_empty(&k->base.done) || !kn_will_tell(k))
                return 0;
        if (deadline == INT64_MAX)
                return -1;
        int64_t now = rs_sys_now();
        return deadline > now ? deadline - now : 0;
}

int kn_init(struct kn *k)
{
        k->wakefd = -1;
        int rc = rs_sys_random(&k->luck);
        if (rc < 0)
                return rc;
        if (!k->luck)
                k->luck = 1; /* the one state that xorshift cannot leave */
        k->wakefd = rs_sys_eventfd();
        return k->wakefd < 0 ? k->wakefd : 0;
}

void kn_end(struct kn *k)
{
        struct rs_node *n;

        kn_crew_end(k->crew);
        while ((n = rs_list_pop(&k->strays)))
                resha_free(RS_CONTAINER(n, struct kn_file, own));
        if (k->wakefd >= 0)
                rs_sys_close(k->wakefd);
        resha_free(k->spare);
}
