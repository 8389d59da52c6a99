/* SPDX-License-Identifier: MIT */
/* Options of sockets in memory: checked, kept and given back as Linux does, without effect. Sizes of buffers are
 * doubled, and have a least value; what was not set is what Linux has by default. */

#include <errno.h>

#include "io/sim_file.h"

enum {
        SEND_LEAST = 4608,
        RECEIVE_LEAST = 2304,
        BUFFER_MOST = 2 * 4194304,
        KEEP_MOST = 32767, /* s */
};

static bool is_tcp(const struct sim_file *f)
{
        return f->family != AF_UNIX && f->state != DGRAM;
}

static int doubled(int value, int least)
{
        int most = BUFFER_MOST / 2;

        /* negative is a large one, as the kernel reads it */
        value = 2 * (value > most ? most : value < 0 ? most : value);
        return value > least ? value : least;
}

/* 0, or why no socket of this kind has this option. */
static int has(const struct sim_file *f, enum rs_option which, bool set)
{
        switch (which) {
        case RS_OPTION_NODELAY:
        case RS_OPTION_USER_TIMEOUT:
                if (is_tcp(f))
                        return 0;
                return f->family == AF_UNIX || !set ? -EOPNOTSUPP : -ENOPROTOOPT;
        case RS_OPTION_RECEIVE_ERRORS: return f->family == AF_UNIX ? -EOPNOTSUPP : 0;
        case RS_OPTION_TYPE:
        case RS_OPTION_LISTENING: return set ? -ENOPROTOOPT : 0;
        case RS_OPTION_KEEPALIVE:
        case RS_OPTION_SEND_BUFFER:
        case RS_OPTION_RECEIVE_BUFFER:
        case RS_OPTION_BROADCAST: return 0;
        }
        return -ENOPROTOOPT;
}

static int standard(const struct sim_file *f, enum rs_option which)
{
        switch (which) {
        case RS_OPTION_NODELAY: return 1; /* backend.h: without Nagle */
        case RS_OPTION_TYPE: return f->state == DGRAM ? SOCK_DGRAM : SOCK_STREAM;
        case RS_OPTION_LISTENING: return f->state == LISTENER;
        case RS_OPTION_SEND_BUFFER: return is_tcp(f) ? 16384 : 212992;
        case RS_OPTION_RECEIVE_BUFFER: return is_tcp(f) ? 131072 : 212992;
        default: return 0;
        }
}

/* What is kept of it; negative: not this value. */
static int kept(const struct sim_file *f, enum rs_option which, int value)
{
        switch (which) {
        case RS_OPTION_KEEPALIVE:
                if (value != 0 && !is_tcp(f))
                        return f->family == AF_UNIX ? -EOPNOTSUPP : -ENOPROTOOPT;
                return value < 0 || value > KEEP_MOST ? -EINVAL : value;
        case RS_OPTION_USER_TIMEOUT: return value < 0 ? -EINVAL : value;
        case RS_OPTION_SEND_BUFFER: return doubled(value, SEND_LEAST);
        case RS_OPTION_RECEIVE_BUFFER: return doubled(value, RECEIVE_LEAST);
        default: return value != 0;
        }
}

int sim_option_value(const struct sim_file *f, enum rs_option which)
{
        return f->options[which] ? (int)(f->options[which] - 1) : standard(f, which);
}

int sim_option(struct rs_file *file, enum rs_option which, int *value, bool set)
{
        struct sim_file *f = file_of(file);

        if (f->state == OUTSIDE)
                return kn_option(f->real, which, value, set);
        if (sim_is_pipe(f))
                return -ENOTSOCK;
        int rc = has(f, which, set);
        if (rc == 0 && set) {
                rc = kept(f, which, *value);
                if (rc >= 0)
                        f->options[which] = INT64_C(1) + rc;
        } else if (rc == 0) {
                *value = sim_option_value(f, which);
        }
        return rc < 0 ? rc : 0;
}
