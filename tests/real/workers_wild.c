/* SPDX-License-Identifier: MIT */
/* Workers that go wild, that die in their init, and that the kernel refuses something. */

#include "common.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum how { WELL };

struct job {
        int n;
        enum how how;
        int result;
};

static int work(void *arg)
{
        struct job *j = arg;

        switch (j->how) {
        case WELL: break;
        }
        j->result = j->n * j->n;
        return 0;
}

static void prepare(struct job *jobs, int n)
{
        for (int i = 0; i < n; i++)
                jobs[i] = (struct job){ .n = i };
}

static void with_workers(const resha_workers_opts *o, resha_fn *fn)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;

        ASSERT_OK(resha_workers_start(o, &w));
        RUN(fn, w);
}

/* ---- what the kernel refuses to the other processes ---- */

static int program_pid;

static int refuse_files(enum rs_syscall call)
{
        return call == RS_SYS_OPEN && getpid() != program_pid ? -EAGAIN : 0;
}

static int no_limit(void *w)
{
        struct job jobs[3];

        prepare(jobs, 3);
        int rc = resha_workers_map(w, work, jobs, 3, sizeof jobs[0], NULL);
        ASSERT_EQ(rc, -ENOSYS);
        ASSERT_TRUE(strstr(resha_error_of(rc)->text, "its memory cannot be limited") != NULL);
        return 0;
}

TEST(items_fail_where_memory_cannot_be_limited)
{
        resha_workers *w RESHA_CLEANUP(resha_workers_stopp) = NULL;

        program_pid = getpid();
        rs_fault_hook = refuse_files;
        int rc = resha_workers_start(&(resha_workers_opts){ .processes = 2, .memory = 64 << 20 }, &w);
        rs_fault_hook = NULL;
        ASSERT_OK(rc);
        RUN(no_limit, w);
}

static int allocates(void *arg)
{
        (void)arg;
        void *p = resha_malloc(16 << 20);
        resha_free(p);
        return p ? 0 : resha_fail(-ENOMEM, "no 16 MiB");
}

static int map_allocating(void *w)
{
        return resha_workers_map(w, allocates, NULL, 2, 0, NULL);
}

TEST(a_limit_of_memory_may_be_larger_than_all_there_is)
{
        with_workers(&(resha_workers_opts){ .processes = 2, .memory = SIZE_MAX }, map_allocating);
}
