/* SPDX-License-Identifier: MIT */
/* Starting a program: what it gets as descriptors, environment and arguments.
 *
 * Pipes are real ones, so that the program may open /dev/stdin again; each end has a description of its own, so that
 * ours does not block and the program's does. All that is made here is close-on-exec, and the child closes what is not
 * its own: other threads may start programs at the same time, and what the program has opened without that flag is not
 * inherited either.
 *
 * A descriptor that is to become number t, and whose number is that of another one to come, is duplicated above all of
 * them first: then the child can put each in its place in any order.
 *
 * All that can fail is done before the program starts, but for the pidfd; there is room for that, because the
 * descriptors for the child are closed first. */

#include <fcntl.h>
#include <string.h>

#include <resha/alloc.h>

#include "process/program.h"
#include "sys/spawn.h"
#include "sys/sys.h"

enum { STANDARD = 3, FDS_MAX = 1024 };

/* ---- descriptors ---- */

struct table {
        int *to;   /* what becomes 0, 1, 2, ... of the child */
        int *ours; /* those of them that are closed once it has them, and more */
        size_t n, n_ours;
};

static int table_init(struct table *t, size_t n_fds)
{
        t->n = STANDARD + n_fds;
        t->to = resha_malloc(3 * t->n * sizeof *t->to);
        t->n_ours = 0;
        if (!t->to)
                return -ENOMEM;
        t->ours = t->to + t->n; /* one that was made, and its duplicate */
        return 0;
}

static void table_close(struct table *t)
{
        while (t->n_ours)
                rs_sys_close(t->ours[--t->n_ours]);
}

static void table_done(struct table *t)
{
        table_close(t);
        resha_free(t->to);
}

static int own(struct table *t, int fd)
{
        if (fd >= 0)
                t->ours[t->n_ours++] = fd;
        return fd;
}

static const char *const names[STANDARD] = { "input", "output", "error" };

/* Our end becomes a stream of p, and theirs is the result. */
static int make_pipe(resha_process *p, struct table *t, int which)
{
        int fds[2], rc = rs_sys_pipe(fds);

        if (rc < 0)
                return rc;
        int theirs = own(t, fds[which ? 1 : 0]), ours = fds[which ? 0 : 1];
        rc = rs_sys_file_flags_set(theirs, 0); /* blocking: programs expect that */
        if (rc == 0)
                rc = resha_stream_adopt(ours, &p->pipes[which]);
        if (rc < 0)
                rs_sys_close(ours);
        return rc < 0 ? rc : theirs;
}

static int check_open(int fd, size_t number)
{
        if (fd >= 0 && rs_sys_file_flags(fd) != -EBADF)
                return 0;
        return resha_fail_at(-EBADF, NULL, "descriptor %d is not open: it was to be descriptor %zu of the program", fd,
                             number);
}

/* Before anything is made here: that would get the numbers that are free. */
static int check_given(const resha_process_opts *o)
{
        const enum resha_stdio how[STANDARD] = { o->in, o->out, o->err };
        const int given[STANDARD] = { o->in_fd, o->out_fd, o->err_fd };
        int rc = 0;

        for (size_t i = 0; i < STANDARD && rc == 0; i++)
                rc = how[i] == RESHA_DESCRIPTOR ? check_open(given[i], i) : 0;
        for (size_t i = 0; i < o->n_fds && rc == 0; i++)
                rc = check_open(o->fds[i], STANDARD + i);
        return rc;
}

static int standard(resha_process *p, struct table *t, int which, enum resha_stdio how, int fd)
{
        switch (how) {
        case RESHA_INHERIT:
                if (rs_sys_file_flags(which) != -EBADF)
                        return which;
                break; /* a program that has none would get its first file there */
        case RESHA_PIPE: return make_pipe(p, t, which);
        case RESHA_DESCRIPTOR: return fd;
        case RESHA_TO_STDOUT: return t->to[1];
        case RESHA_NULL: break;
        }
        return own(t, rs_sys_open("/dev/null", O_RDWR));
}

/* Above all numbers to come, unless it has its own. */
static int out_of_the_way(struct table *t, int fd, size_t number)
{
        if ((size_t)fd >= t->n || (size_t)fd == number)
                return fd;
        return own(t, rs_sys_duplicate_above(fd, (int)t->n));
}

static int fill(resha_process *p, struct table *t, const resha_process_opts *o)
{
        const enum resha_stdio how[STANDARD] = { o->in, o->out, o->err };
        const int given[STANDARD] = { o->in_fd, o->out_fd, o->err_fd };

        for (int i = 0; i < STANDARD; i++) {
                t->to[i] = standard(p, t, i, how[i], given[i]);
                if (t->to[i] < 0)
                        return resha_fail_at(t->to[i], NULL, "%s: its standard %s: %s", p->name, names[i],
                                             resha_strerror(t->to[i]));
        }
        for (size_t i = 0; i < o->n_fds; i++)
                t->to[STANDARD + i] = o->fds[i];
        for (size_t i = 0; i < t->n; i++) {
                t->to[i] = out_of_the_way(t, t->to[i], i);
                if (t->to[i] < 0)
                        return resha_fail_at(t->to[i], NULL, "%s: a descriptor for it: %s", p->name,
                                             resha_strerror(t->to[i]));
        }
        return 0;
}

/* ---- environment ---- */

static size_t name_size(const char *variable)
{
        return strcspn(variable, "=");
}

static bool same_name(const char *a, const char *b)
{
        size_t size = name_size(a);

        return size == name_size(b) && memcmp(a, b, size) == 0;
}

static bool among(const char *variable, const char *const *list)
{
        for (; *list; list++)
                if (same_name(variable, *list))
                        return true;
        return false;
}

static size_t count(const char *const *list)
{
        size_t n = 0;

        while (list[n])
                n++;
        return n;
}

/* The base without what is changed, and then the changes that set something; of equal names the last. */
int rs_process_environment(const resha_process_opts *o, const char *const **ret_env, const char ***ret_made)
{
        const char *const *base = o->env ? o->env : (const char *const *)(uintptr_t)rs_sys_environment();
        static const char *const none[] = { NULL };
        size_t n = 0;

        base = base ? base : none;
        if (!o->add_env) {
                *ret_env = base;
                return 0;
        }
        const char **made = resha_malloc((count(base) + count(o->add_env) + 1) * sizeof *made);
        if (!made)
                return -ENOMEM;
        for (; *base; base++)
                if (!among(*base, o->add_env))
                        made[n++] = *base;
        for (const char *const *add = o->add_env; *add; add++)
                if (strchr(*add, '=') && !among(*add, add + 1))
                        made[n++] = *add;
        made[n] = NULL;
        *ret_env = *ret_made = made;
        return 0;
}

/* ---- a child ---- */

/* A pidfd comes when the program runs already: should the table be full then, it would have run for nothing. So one
 * that is closed before is held until then. */
static int hold_place(struct table *t)
{
        int fd = t->n_ours ? 0 : own(t, rs_sys_duplicate(t->to[0])); /* of all it is the cheapest */

        return fd < 0 ? fd : 0;
}

static int start(resha_process *p, struct table *t, const resha_process_opts *o, const char *const *env)
{
        struct rs_spawn s = {
                .program = o->argv[0],
                .argv = o->argv,
                .env = env,
                .dir = o->dir,
                .fds = t->to,
                .n_fds = t->n,
                .group = o->group,
                .session = o->session,
        };
        pid_t pid;
        int rc = hold_place(t);

        if (rc < 0)
                return resha_fail_at(rc, NULL, "%s: a descriptor for it: %s", p->name, resha_strerror(rc));
        rc = rs_sys_spawn(&s, &pid);
        table_close(t);
        if (rc == -EBADF) { /* also said of numbers that are not below RLIMIT_NOFILE */
                rc = check_given(o);
                if (rc < 0)
                        return rc;
                rc = -EMFILE;
        }
        return rc < 0 ? rs_child_failed(o, rc) : rs_child_begin(p, pid);
}

static int refuse_sigchld(const char *name)
{
        struct sigaction now;

        if (rs_sys_signal_get(SIGCHLD, &now) < 0 || (now.sa_handler != SIG_IGN && !(now.sa_flags & SA_NOCLDWAIT)))
                return 0;
        return rs_child_lost(name, -ECHILD);
}

int rs_child_spawn(resha_process *p, const resha_process_opts *o)
{
        const char *const *env;
        const char **made = NULL;
        struct table t = { 0 };
        int rc = refuse_sigchld(p->name);

        if (rc == 0)
                rc = check_given(o);
        if (rc == 0)
                rc = table_init(&t, o->n_fds);
        if (rc < 0)
                return rc;
        rc = rs_process_environment(o, &env, &made);
        if (rc == 0)
                rc = fill(p, &t, o);
        if (rc == 0)
                rc = start(p, &t, o, env);
        table_done(&t);
        resha_free(made);
        return rc;
}

/* ---- the call ---- */

static bool standard_valid(enum resha_stdio how, int which)
{
        return how >= RESHA_INHERIT && how <= (which == 2 ? RESHA_TO_STDOUT : RESHA_DESCRIPTOR);
}

static int check(const resha_process_opts *o)
{
        const char *wrong = NULL;

        if (!o || !o->argv || !o->argv[0] || !o->argv[0][0])
                return resha_fail_at(-EINVAL, NULL, "argv of a process: the program's name must be its first entry");
        if (!rs_reserved_zero(o->_reserved))
                wrong = "a reserved word is not zero";
        else if (!standard_valid(o->in, 0) || !standard_valid(o->out, 1) || !standard_valid(o->err, 2))
                wrong = "in, out and err are RESHA_INHERIT, _PIPE, _NULL or _DESCRIPTOR; RESHA_TO_STDOUT is for err";
        else if (o->n_fds > FDS_MAX || (o->n_fds && !o->fds))
                wrong = "fds are at most 1,024, and not at NULL";
        for (const char *const *add = o->add_env; !wrong && add && *add; add++)
                if (name_size(*add) == 0)
                        wrong = "an entry of add_env has no name";
        return wrong ? resha_fail_at(-EINVAL, NULL, "options of process %.64s: %s", o->argv[0], wrong) : 0;
}

int resha_process_spawn(const resha_process_opts *opts, resha_process **ret_process)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc == 0)
                rc = check(opts);
        if (rc < 0)
                return rc;
        resha_process *p = rs_process_new(l, opts);
        if (!p)
                return -ENOMEM;
        rc = l->simulated ? rs_program_spawn(p, opts) : 0;
        if (rc == 0)
                rc = rs_child_spawn(p, opts);
        if (rc < 0) {
                rs_process_drop(p);
                return rc;
        }
        rs_process_begin(p);
        RS_OPENED_HERE(&p->shown);
        *ret_process = p;
        return rs_complete(l, 0);
}
