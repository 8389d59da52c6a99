/* SPDX-License-Identifier: MIT */
/* Which world a run is in: the one that is asked for, or the best that works. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/run.h"

/* "sim", "sim:SEED" */
static int open_sim(const char *name, struct rs_world *w)
{
        char *end;

        if (name[3] && name[3] != ':')
                return -EINVAL;
        if (name[3] && !(name[4] >= '0' && name[4] <= '9')) /* nor a sign, which strtoull() would take */
                return -EINVAL;
        errno = 0;
        uint64_t seed = name[3] ? strtoull(name + 4, &end, 10) : 0;
        if (name[3] && (*end || errno == ERANGE))
                return -EINVAL;
        w->shuffle = seed != 0;
        return rs_sim_new(seed, &w->backend);
}

static int open_best(struct rs_world *w)
{
        w->fallback = rs_uring_new(&w->backend, w->why);
        return w->fallback == 0 ? 0 : rs_epoll_new(&w->backend);
}

static int open_named(const char *name, struct rs_world *w)
{
        if (!name || !*name)
                return open_best(w);
        if (strcmp(name, "uring") == 0)
                return rs_uring_new(&w->backend, w->why);
        if (strcmp(name, "epoll") == 0)
                return rs_epoll_new(&w->backend);
        return strncmp(name, "sim", 3) == 0 ? open_sim(name, w) : -EINVAL;
}

int rs_world_open(const resha_run_opts *opts, const char *name, struct rs_world *w)
{
        *w = (struct rs_world){ 0 };
        int rc = open_named(name, w);

        if (rc == 0)
                return 0;
        if (name && strcmp(name, "uring") == 0)
                return rs_run_refuse(opts, rc, "the io_uring backend cannot be had: %s", w->why);
        if (rc == -EINVAL)
                return rs_run_refuse(opts, rc, "no backend \"%s\": uring, epoll, sim, sim:SEED", name);
        return rs_run_refuse(opts, rc, "the backend cannot be opened: %s", resha_strerror(rc));
}
