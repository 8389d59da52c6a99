/* SPDX-License-Identifier: MIT */
/* Programs of the simulated world: a process there is a task that runs a function of the test, with pipes of the world.
 *
 * Such a task stands outside of the tree of its spawner, as a process does: no cancel and no deadline reaches it, only
 * signals. All of them are children of one group that is nobody's scope, and that the end of the run joins.
 *
 *     program      what is started at once: arguments, descriptors, and the process that its owner sees
 *     member       one task of it: the first, whose result is the status; others are what it has left behind (fork)
 *     end          one descriptor's stream. Members count how many numbers they hold of it: the last one closes it, and
 *                  its reader finds the end; so a member that goes on keeps a pipe open
 *
 * Signals cancel. One that is not ignored or kept cancels the task, and the program's function sees -ECANCELED where a
 * real one would be gone: what it returns then tells whether it had a handler (a status of its own) or not (the signal
 * is the status). SIGKILL leaves no choice: shields are cancelled, too, streams are broken off, and the status is
 * fixed.
 *
 * Invariants
 *  1. A member is in the world's list and counted in its program from spawn until its task has ended.
 *  2. A program is freed when its last member has ended and its owner has let go.
 *  3. The status is there when the first member's descriptors are closed, and not before. */

#include "process/program.h"

#include <signal.h>
#include <string.h>

#include <resha/alloc.h>

#include "io/sim.h"
#include "sys/sys.h"

enum { FIRST_PID = 1 << 23 /* no number of a real process */ };

struct entry {
        struct rs_node node;
        resha_test_program_fn *fn; /* NULL: there is no such program */
        void *arg;
        char name[];
};

struct rs_programs {
        struct rs_loop *loop;
        struct rs_group group;  /* of all members */
        struct rs_list entries; /* latest first */
        struct rs_list members;
        struct rs_cleanup cleanup;
        int last_pid;
};

/* ---- descriptors ---- */

static ssize_t null_read(void *impl, void *buf, size_t size)
{
        (void)impl, (void)buf, (void)size;
        return 0;
}

static ssize_t null_write(void *impl, const void *data, size_t size)
{
        (void)impl, (void)data;
        return (ssize_t)size;
}

static int null_shutdown(void *impl)
{
        (void)impl;
        return 0;
}

static void null_close(void *impl)
{
        (void)impl;
}

static const resha_stream_ops null_ops = {
        .kind = "null", .read = null_read, .write = null_write, .shutdown = null_shutdown, .close = null_close
};

/* What the test itself has, if it is open. */
static int inherit(int number, resha_stream **ret_stream)
{
        int rc = resha_stream_stdio(number, ret_stream);

        return rc == -EBADF || rc == -EINVAL ? resha_stream_new(&null_ops, NULL, ret_stream) : rc;
}

static int lend(int fd, resha_stream **ret_stream)
{
        int copy = rs_sys_duplicate(fd), rc = copy < 0 ? copy : resha_stream_adopt(copy, ret_stream);

        if (copy >= 0 && rc < 0)
                rs_sys_close(copy);
        return rc;
}

static void end_release(struct rs_program_end *e)
{
        if (--e->holders)
                return;
        resha_stream *s = e->stream;
        e->stream = NULL;
        resha_stream_close(s);
}

static bool has(const resha_test_process *m, int fd)
{
        return fd >= 0 && (size_t)fd < m->program->n && m->open[fd];
}

resha_stream *rs_program_stream(const resha_test_process *m, int fd)
{
        return has(m, fd) ? m->program->which[fd]->stream : NULL;
}

void rs_program_close(resha_test_process *m, int fd)
{
        if (!has(m, fd))
                return;
        m->open[fd] = false;
        end_release(m->program->which[fd]);
}

/* ---- what is started ---- */

static size_t list_size(const char *const *list, size_t *ret_bytes)
{
        size_t n = 0;

        for (; list[n]; n++)
                *ret_bytes += strlen(list[n]) + 1;
        *ret_bytes += (n + 1) * sizeof *list;
        return n;
}

static const char *const *copy_list(const char *const *list, size_t n, char **pointers, char **bytes)
{
        const char **copy = (const char **)(void *)*pointers;

        for (size_t i = 0; i < n; i++) {
                size_t size = strlen(list[i]) + 1;
                copy[i] = memcpy(*bytes, list[i], size);
                *bytes += size;
        }
        copy[n] = NULL;
        *pointers += (n + 1) * sizeof *copy;
        return copy;
}

/* Arguments, environment and directory, in one block: pointers first. */
static int copy_texts(struct rs_program *g, const resha_process_opts *o, const char *const *env)
{
        size_t size = o->dir ? strlen(o->dir) + 1 : 0;
        size_t n_argv = list_size(o->argv, &size), n_env = list_size(env, &size);
        char *pointers = g->block = resha_malloc(size);

        if (!pointers)
                return -ENOMEM;
        char *bytes = pointers + (n_argv + n_env + 2) * sizeof(char *);
        g->argv = copy_list(o->argv, n_argv, &pointers, &bytes);
        g->env = copy_list(env, n_env, &pointers, &bytes);
        if (o->dir)
                g->dir = memcpy(bytes, o->dir, strlen(o->dir) + 1);
        return 0;
}

static void program_free(struct rs_program *g)
{
        if (g->members || g->process)
                return;
        resha_free(g->block);
        resha_free(g);
}

static resha_test_process *member_new(struct rs_program *g, const char *name, resha_test_program_fn *fn, void *arg)
{
        resha_test_process *m = resha_calloc(1, sizeof *m + g->n * sizeof m->open[0]);

        if (!m)
                return NULL;
        m->program = g;
        m->name = name;
        m->fn = fn;
        m->arg = arg;
        return m;
}

static int run_member(void *arg)
{
        resha_test_process *m = arg;

        (void)resha_task_set_name(m->name);
        int rc = m->signal ? -ECANCELED : m->fn(m, m->arg);
        for (size_t fd = 0; fd < m->program->n; fd++)
                rs_program_close(m, (int)fd);
        return rc;
}

/* Its descriptors are held already. 0 or negative: m is freed. */
static int member_start(resha_test_process *m)
{
        struct rs_programs *w = m->program->world;
        int rc = rs_spawn(w->loop, &w->group, run_member, m, "program", NULL, &m->task);

        if (rc < 0) {
                for (size_t fd = 0; fd < m->program->n; fd++)
                        rs_program_close(m, (int)fd);
                resha_free(m);
                return rc;
        }
        rs_local_drop(w->loop, m->task->locals); /* those of its spawner's */
        m->task->locals = NULL;
        m->program->members++;
        rs_list_push(&w->members, &m->node);
        return 0;
}

int rs_program_fork(resha_test_process *m, resha_test_program_fn *fn, void *arg)
{
        struct rs_program *g = m->program;
        resha_test_process *other = member_new(g, m->name, fn, arg);

        if (!other)
                return -ENOMEM;
        other->kept = m->kept;
        other->ignored = m->ignored;
        for (size_t fd = 0; fd < g->n; fd++)
                if ((other->open[fd] = m->open[fd]))
                        g->which[fd]->holders++;
        return member_start(other);
}

/* ---- signals ---- */

static uint64_t bit_of(int sig)
{
        return UINT64_C(1) << (sig - 1);
}

/* Streams that nobody else holds are broken off: who waits in them is let go. */
static void break_off(resha_test_process *m)
{
        const struct rs_program *g = m->program;

        for (size_t fd = 0; fd < g->n; fd++) {
                unsigned own = 0;
                for (size_t i = 0; i < g->n; i++)
                        own += m->open[i] && g->which[i] == g->which[fd];
                if (m->open[fd] && g->which[fd]->stream && g->which[fd]->holders == own)
                        resha_stream_abort(g->which[fd]->stream);
        }
}

static void terminate(resha_test_process *m, int sig)
{
        struct rs_loop *l = m->program->world->loop;

        if (m->signal == SIGKILL || (m->signal && sig != SIGKILL))
                return;
        m->signal = sig;
        rs_task_cancel(l, m->task, RS_CAUSE_CALL, NULL);
        if (sig != SIGKILL)
                return;
        for (struct rs_scope *s = m->task->outermost; s; s = s->inner)
                if (s->shield && !s->requested)
                        rs_scope_request(l, s, RS_CAUSE_CALL, NULL);
        break_off(m);
}

static void keep(resha_test_process *m, int sig)
{
        struct rs_wait *w = m->waits;

        m->pending |= bit_of(sig);
        m->waits = NULL;
        if (w)
                rs_wake(w, 0);
}

/* What the default is, where nothing else was said. */
static void act(resha_test_process *m, int sig)
{
        switch (sig) {
        case SIGCHLD:
        case SIGURG:
        case SIGWINCH:
        case SIGCONT: break;
        case SIGSTOP:
        case SIGTSTP:
        case SIGTTIN:
        case SIGTTOU: m->stopped = true; break;
        default: terminate(m, sig);
        }
}

static void deliver(resha_test_process *m, int sig)
{
        if (sig == SIGKILL || sig == SIGSTOP)
                act(m, sig);
        else if (m->ignored & bit_of(sig))
                return;
        else if (m->kept & bit_of(sig))
                keep(m, sig);
        else if (m->stopped)
                m->pending |= bit_of(sig);
        else
                act(m, sig);
}

static void go_on(resha_test_process *m)
{
        uint64_t came = m->pending & ~m->kept;

        m->stopped = false;
        m->pending &= m->kept;
        for (; came; came &= came - 1)
                deliver(m, __builtin_ctzll(came) + 1);
}

void rs_program_signal(resha_test_process *m, int sig)
{
        if (sig == SIGCONT && m->stopped)
                go_on(m);
        if (sig > 0)
                deliver(m, sig);
}

static void signal_all(struct rs_program *g, int sig, bool group)
{
        for (struct rs_node *n = g->world->members.first, *next; n; n = next) {
                resha_test_process *m = RS_CONTAINER(n, resha_test_process, node);
                next = n->next;
                if (m->program == g && (group || m->first))
                        rs_program_signal(m, sig);
        }
}

/* ---- what the process is made of ---- */

static int program_look(resha_process *p, resha_exit *ret_exit)
{
        struct rs_program *g = p->impl;

        if (!g->ended || g->told)
                return 0;
        g->told = true;
        *ret_exit = g->exit;
        return 1;
}

static int program_signal(resha_process *p, int sig)
{
        struct rs_program *g = p->impl;

        if (sig < 0 || sig > RS_PROGRAM_SIGNALS)
                return -EINVAL;
        if (g->group && !g->members)
                return -ESRCH;
        signal_all(g, sig, g->group);
        return 0;
}

static void program_done(resha_process *p, bool left)
{
        struct rs_program *g = p->impl;

        (void)left;
        if (g->group)
                signal_all(g, SIGKILL, true);
        g->process = NULL;
        program_free(g);
}

static void program_give_up(resha_process *p)
{
        (void)p; /* its tasks are left as those of the run are */
}

static const struct rs_process_ops program_ops = {
        .look = program_look, .signal = program_signal, .done = program_done, .give_up = program_give_up
};

/* ---- the end of a member ---- */

static resha_exit exit_of(const resha_test_process *m, int rc)
{
        if (m->signal == SIGKILL || rc == -ECANCELED)
                return (resha_exit){ .signalled = true, .code = m->signal ? m->signal : SIGTERM };
        return (resha_exit){ .code = rc < 0 ? 1 : rc & 0xff };
}

static void member_ended(struct rs_group *group, struct rs_task *t, int rc, const resha_error *e)
{
        resha_test_process *m = t->arg;
        struct rs_program *g = m->program;

        (void)group, (void)e;
        rs_list_remove(&g->world->members, &m->node);
        g->members--;
        if (m->first) {
                g->exit = exit_of(m, rc);
                g->ended = true;
                if (g->process)
                        rs_process_told(g->process);
        }
        resha_free(m);
        program_free(g);
}

/* ---- starting ---- */

static struct entry *find(const struct rs_programs *w, const char *name)
{
        for (struct rs_node *n = w->entries.first; n; n = n->next) {
                struct entry *e = RS_CONTAINER(n, struct entry, node);
                if (strcmp(e->name, name) == 0)
                        return e;
        }
        return NULL;
}

/* Of a descriptor of p; our end of a pipe is p's. 0, or negative with nothing made. */
static int end_init(struct rs_program_end *e, resha_process *p, size_t number, enum resha_stdio how, int fd)
{
        resha_stream **ours = number < 3 ? &p->pipes[number] : NULL;

        switch (how) {
        case RESHA_PIPE: return number == 0 ? resha_pipe(&e->stream, ours) : resha_pipe(ours, &e->stream);
        case RESHA_INHERIT: return inherit((int)number, &e->stream);
        case RESHA_DESCRIPTOR: return lend(fd, &e->stream);
        case RESHA_NULL:
        case RESHA_TO_STDOUT: break;
        }
        return resha_stream_new(&null_ops, NULL, &e->stream);
}

static int open_ends(resha_test_process *m, resha_process *p, const resha_process_opts *o)
{
        const enum resha_stdio how[] = { o->in, o->out, o->err };
        const int given[] = { o->in_fd, o->out_fd, o->err_fd };
        struct rs_program *g = m->program;
        struct rs_program_end *ends = (struct rs_program_end *)(void *)(g->which + g->n);

        for (size_t i = 0; i < g->n; i++) {
                bool same = i < 3 && how[i] == RESHA_TO_STDOUT;
                g->which[i] = &ends[same ? 1 : i];
                int rc = same ? 0
                              : end_init(&ends[i], p, i, i < 3 ? how[i] : RESHA_DESCRIPTOR,
                                         i < 3 ? given[i] : o->fds[i - 3]);
                if (rc < 0)
                        return rc;
                g->which[i]->holders++;
                m->open[i] = true;
        }
        return 0;
}

static struct rs_program *program_new(struct rs_programs *w, resha_process *p, const resha_process_opts *o)
{
        size_t n = 3 + o->n_fds;
        struct rs_program *g = resha_calloc(1, sizeof *g + n * (sizeof g->which[0] + sizeof(struct rs_program_end)));

        if (!g)
                return NULL;
        g->world = w;
        g->n = n;
        g->group = p->group;
        return g;
}

/* With all that it opens, or nothing. */
static int program_start(struct rs_program *g, resha_process *p, const resha_process_opts *o, const struct entry *e)
{
        resha_test_process *m = member_new(g, e->name, e->fn, e->arg);
        int rc = m ? open_ends(m, p, o) : -ENOMEM;

        if (!m)
                return rc;
        m->first = true;
        if (rc == 0)
                return member_start(m);
        for (size_t fd = 0; fd < g->n; fd++)
                rs_program_close(m, (int)fd);
        resha_free(m);
        return rc;
}

static int spawn(struct rs_programs *w, resha_process *p, const resha_process_opts *o, const struct entry *e)
{
        const char *const *env;
        const char **made = NULL;
        struct rs_program *g = program_new(w, p, o);
        int rc = g ? rs_process_environment(o, &env, &made) : -ENOMEM;

        if (rc == 0)
                rc = copy_texts(g, o, env);
        resha_free(made);
        if (rc == 0)
                rc = program_start(g, p, o, e);
        if (rc < 0) {
                if (g)
                        program_free(g);
                return rc;
        }
        g->process = p;
        p->ops = &program_ops;
        p->impl = g;
        p->pid = FIRST_PID + ++w->last_pid;
        return 1;
}

int rs_program_spawn(resha_process *p, const resha_process_opts *o)
{
        struct rs_programs *w = p->loop->programs;
        const struct entry *e = w ? find(w, o->argv[0]) : NULL;

        if (!e)
                return 0;
        if (rs_sim_operation(p->loop->backend))
                return rs_child_failed(o, -EAGAIN);
        int rc = e->fn ? spawn(w, p, o, e) : -ENOENT;
        return rc < 0 ? resha_fail_at(rc, NULL, "%s: the simulated program cannot be started: %s", p->name,
                                      e->fn ? resha_strerror(rc) : "the test says that there is none")
                      : rc;
}

/* ---- the world ---- */

/* What is left ends with the run. Processes that their owners have not closed are gone by now: they came later, and so
 * end earlier. */
static void end_world(struct rs_cleanup *c)
{
        struct rs_programs *w = RS_CONTAINER(c, struct rs_programs, cleanup);
        struct rs_node *n;

        for (n = w->members.first; n; n = n->next)
                terminate(RS_CONTAINER(n, resha_test_process, node), SIGKILL);
        while (w->group.running) {
                struct rs_wait wait = { .what = "programs", .object = w };
                w->group.joiner = &wait;
                (void)rs_wait(w->loop, &wait);
        }
        w->loop->programs = NULL;
        while ((n = rs_list_pop(&w->entries)))
                resha_free(RS_CONTAINER(n, struct entry, node));
        resha_free(w);
}

static struct rs_programs *world_of(struct rs_loop *l)
{
        struct rs_programs *w = l->programs;

        if (w || !(w = resha_calloc(1, sizeof *w)))
                return w;
        w->loop = l;
        w->group.scope.is_group = true;
        w->group.limit = SIZE_MAX;
        w->group.collected = true;
        w->group.child_done = member_ended;
        w->cleanup.fn = end_world;
        rs_cleanup_add(l, &w->cleanup);
        l->programs = w;
        return w;
}

int rs_program_set(struct rs_loop *l, const char *name, resha_test_program_fn *fn, void *arg)
{
        struct rs_programs *w = world_of(l);
        struct entry *e = w ? find(w, name) : NULL;
        size_t size = strlen(name) + 1;

        if (w && !e && (e = resha_malloc(sizeof *e + size))) {
                memcpy(e->name, name, size);
                rs_list_push(&w->entries, &e->node);
        }
        if (!e)
                return -ENOMEM;
        e->fn = fn;
        e->arg = arg;
        return 0;
}
