/* SPDX-License-Identifier: MIT */
/* Listeners that systemd has opened, by the protocol of sd_listen_fds(3): they are the descriptors from 3 on,
 *
 *     LISTEN_PID       for whom they are: a child of that process has the variables too, and must not heed them
 *     LISTEN_FDS       how many
 *     LISTEN_FDNAMES   their names, with colons between them; without it, all are called "unknown"
 *
 * The environment is read each time and never changed: other threads may read it. What has been taken is remembered for
 * the process, since its number may be that of another descriptor by then. */

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "net/listener.h"

enum {
        FIRST = 3,
        MOST = 1024,
        BITS = 64,
};

static _Atomic uint64_t taken[MOST / BITS];

static uint64_t bit(unsigned i)
{
        return UINT64_C(1) << i % BITS;
}

static bool is_taken(unsigned i)
{
        return atomic_load(&taken[i / BITS]) & bit(i);
}

static bool take(unsigned i)
{
        return !(atomic_fetch_or(&taken[i / BITS], bit(i)) & bit(i));
}

static void put_back(unsigned i)
{
        atomic_fetch_and(&taken[i / BITS], ~bit(i));
}

/* 0 .. most; negative: not a number, or a larger one. */
static long number(const char *text, long most)
{
        long n = 0;

        if (!*text)
                return -1;
        for (; *text; text++) {
                if (*text < '0' || *text > '9')
                        return -1;
                n = n * 10 + (*text - '0');
                if (n > most)
                        return -1;
        }
        return n;
}

static int nonsense(const char *variable, const char *value)
{
        return resha_fail_at(-EINVAL, NULL, "inherited listeners: %s is \"%.100s\"", variable, value);
}

static size_t count_names(const char *names)
{
        size_t n = 1;

        for (; *names; names++)
                n += *names == ':';
        return n;
}

/* How many there are for this process; *ret_names may be NULL. */
static int inherited(const char **ret_names)
{
        const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");

        *ret_names = names;
        if (!pid || !fds)
                return 0;
        long whose = number(pid, INT32_MAX), n = number(fds, MOST);
        if (whose < 0)
                return nonsense("LISTEN_PID", pid);
        if (whose != rs_sys_pid())
                return 0;
        if (n < 0)
                return nonsense("LISTEN_FDS", fds);
        if (names && n > 0 && count_names(names) != (size_t)n)
                return resha_fail_at(-EINVAL, NULL,
                                     "inherited listeners: LISTEN_FDS is %ld, and LISTEN_FDNAMES has %zu", n,
                                     count_names(names));
        return (int)n;
}

/* Whether the i-th is called so; NULL: anything is fine. */
static bool is_called(const char *names, unsigned i, const char *name)
{
        if (!name)
                return true;
        if (!names)
                return strcmp(name, "unknown") == 0;
        for (; i > 0; i--)
                names = strchr(names, ':') + 1;
        size_t size = strcspn(names, ":");
        return strlen(name) == size && memcmp(name, names, size) == 0;
}

int resha_listener_inherited(const char *name, resha_listener **ret_listener)
{
        struct rs_loop *l = rs_loop_current;
        const char *names;

        if (!l)
                return rs_outside();
        int n = inherited(&names);
        if (n < 0)
                return n;
        for (unsigned i = 0; i < (unsigned)n; i++) /* none goes to a program that this one starts */
                if (!is_taken(i))
                        (void)rs_sys_close_on_exec((int)(FIRST + i));
        for (unsigned i = 0; i < (unsigned)n; i++) {
                if (!is_called(names, i, name) || !take(i))
                        continue;
                int rc = rs_listener_adopt(l, (int)(FIRST + i), ret_listener);
                if (rc < 0)
                        put_back(i);
                else
                        RS_OPENED_HERE(&(*ret_listener)->shown);
                return rc < 0 ? rc : 1;
        }
        return 0;
}
