/* SPDX-License-Identifier: MIT */
/* Programs of the simulated world, as tests make them and as they see themselves: the public form of
 * process/program.h. */

#include <resha/test.h>

#include <signal.h>
#include <string.h>

#include "io/sim.h"
#include "process/program.h"

int resha_test_program(const char *name, resha_test_program_fn *fn, void *arg)
{
        struct rs_loop *l = rs_loop_current;

        if (!l || !rs_sim_plan(l->backend))
                return resha_fail_at(-EPERM, NULL, "programs are of the simulated world: RESHA_BACKEND=sim:SEED");
        if (!name || !*name)
                return resha_fail_at(-EINVAL, NULL, "a program without a name");
        return rs_program_set(l, name, fn, arg);
}

const char *const *resha_test_process_argv(const resha_test_process *p)
{
        return p->program->argv;
}

const char *resha_test_process_env(const resha_test_process *p, const char *name)
{
        size_t size = strlen(name);

        for (const char *const *e = p->program->env; *e; e++)
                if (strncmp(*e, name, size) == 0 && (*e)[size] == '=')
                        return *e + size + 1;
        return NULL;
}

const char *resha_test_process_dir(const resha_test_process *p)
{
        return p->program->dir;
}

resha_stream *resha_test_process_stream(resha_test_process *p, int fd)
{
        return rs_program_stream(p, fd);
}

void resha_test_process_close(resha_test_process *p, int fd)
{
        rs_program_close(p, fd);
}

/* ---- signals ---- */

static bool is_signal(int sig)
{
        return sig > 0 && sig <= RS_PROGRAM_SIGNALS;
}

int resha_test_process_on(resha_test_process *p, int sig, enum resha_test_action action)
{
        if (!is_signal(sig) || sig == SIGKILL || sig == SIGSTOP || (unsigned)action > RESHA_TEST_KEEP)
                return resha_fail_at(-EINVAL, NULL, "action %d for signal %d: there is no such", (int)action, sig);
        uint64_t bit = UINT64_C(1) << (sig - 1);
        p->ignored &= ~bit;
        p->kept &= ~bit;
        if (action == RESHA_TEST_IGNORE)
                p->ignored |= bit;
        else if (action == RESHA_TEST_KEEP)
                p->kept |= bit;
        if (!(p->kept & bit) && !p->stopped)
                p->pending &= ~bit;
        return 0;
}

static void signal_cancel(struct rs_wait *w)
{
        resha_test_process *p = (resha_test_process *)(uintptr_t)w->object;

        p->waits = NULL;
        rs_wake(w, -ECANCELED);
}

static int wait_for_signal(struct rs_loop *l, resha_test_process *p)
{
        struct rs_wait w = { .cancel = signal_cancel, .what = "signal", .object = p };

        if (p->waits)
                return resha_fail_at(-EBUSY, NULL, "another task waits for signals of this simulated process");
        p->waits = &w;
        return (int)rs_wait(l, &w);
}

int resha_test_process_signal(resha_test_process *p, int *ret_sig)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0 && (p->pending & p->kept))
                rc = rs_complete(l, 0);
        while (rc == 0 && !(p->pending & p->kept)) { /* again if it is not kept any more by now */
                rc = wait_for_signal(l, p);
                if (rc == 0)
                        rc = rs_enter(&l);
        }
        if (rc < 0)
                return rc;
        int sig = __builtin_ctzll(p->pending & p->kept) + 1;
        p->pending &= ~(UINT64_C(1) << (sig - 1));
        *ret_sig = sig;
        return 0;
}

int resha_test_process_raise(resha_test_process *p, int sig)
{
        if (!is_signal(sig))
                return resha_fail_at(-EINVAL, NULL, "there is no signal %d", sig);
        rs_program_signal(p, sig);
        return p->signal ? -ECANCELED : 0;
}

int resha_test_process_fork(resha_test_process *p, resha_test_program_fn *fn, void *arg)
{
        return rs_program_fork(p, fn, arg);
}
