/* SPDX-License-Identifier: MIT */
/* How datagram sockets are opened: options first, then a name of their own, then the peer. After a failure the file may
 * be there, and is closed by whoever asked. */

#include <errno.h>
#include <sys/socket.h>

#include <resha/alloc.h>

#include "net/datagram.h"

static int set_options(struct rs_file *f, const resha_dgram_opts *o, bool errors)
{
        const struct {
                enum rs_option which;
                int value;
        } options[] = {
                { RS_OPTION_BROADCAST, o->broadcast },
                { RS_OPTION_RECEIVE_ERRORS, errors },
                { RS_OPTION_RECEIVE_BUFFER, o->receive_buffer },
                { RS_OPTION_SEND_BUFFER, o->send_buffer },
        };
        int rc = 0;

        for (size_t i = 0; rc == 0 && i < sizeof options / sizeof options[0]; i++) {
                int value = options[i].value;
                if (value)
                        rc = f->backend->ops->option(f, options[i].which, &value, true);
        }
        return rc;
}

static int bind_file(resha_dgram *d, const resha_addr *local, const resha_dgram_opts *o, const char **ret_why)
{
        const struct rs_backend_ops *ops = d->loop->backend->ops;
        unsigned flags = (o->reuse_port ? RS_BIND_REUSE_PORT : 0U) | (o->ipv6_only ? RS_BIND_V6_ONLY : 0U);

        if (resha_addr_family(local) != AF_UNIX || ops->simulated)
                return ops->bind(d->file, local, flags);
        return rs_unix_file_bind(d->loop, d->file, local, o->mode, &d->name, ret_why);
}

static int connect_file(struct rs_loop *l, resha_dgram *d, const resha_addr *peer)
{
        struct rs_op op = { .kind = RS_OP_CONNECT, .file = d->file, .addr = peer };
        int rc = (int)rs_operation(l, &op, "connect");

        d->connected = rc == 0;
        d->peer = *peer;
        return rc;
}

/* A Unix socket without a name cannot be answered: it gets one. */
static int name_file(resha_dgram *d, const resha_dgram_opts *o, const char **ret_why)
{
        resha_addr unnamed;

        if (o->local)
                return bind_file(d, o->local, o, ret_why);
        if (resha_addr_family(o->peer) != AF_UNIX)
                return 0; /* gets its port when it is connected */
        int rc = resha_addr_scan("unix:", &unnamed);
        return rc < 0 ? rc : bind_file(d, &unnamed, o, ret_why);
}

/* The file is there also after a failure. */
static int open_file(struct rs_loop *l, resha_dgram *d, const resha_dgram_opts *o, const char **ret_why)
{
        int family = resha_addr_family(o->local ? o->local : o->peer);
        int rc = l->backend->ops->socket(l->backend, family, SOCK_DGRAM, &d->file);

        d->errors = o->errors && family != AF_UNIX; /* which tells each failure at once */
        if (rc == 0)
                rc = set_options(d->file, o, d->errors);
        if (rc == 0)
                rc = name_file(d, o, ret_why);
        if (rc == 0 && o->peer)
                rc = connect_file(l, d, o->peer);
        return rc;
}

/* All addresses: those of IPv4 alone where the machine has no IPv6. */
static int open_anywhere(struct rs_loop *l, resha_dgram *d, const resha_dgram_opts *opts, const char **ret_why)
{
        resha_dgram_opts o = *opts;
        resha_addr all;

        o.local = &all;
        int rc = resha_addr_parse("::", 0, &all);
        if (rc == 0)
                rc = open_file(l, d, &o, ret_why);
        if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL)
                return rc;
        rs_dgram_close_file(d);
        rc = resha_addr_parse("0.0.0.0", 0, &all);
        return rc < 0 ? rc : open_file(l, d, &o, ret_why);
}

static int open_failed(const resha_dgram_opts *o, int code, const char *why)
{
        char local[RESHA_ADDR_TEXT_MAX], peer[RESHA_ADDR_TEXT_MAX];

        if (code == -ECANCELED)
                return code;
        return resha_fail_at(code, NULL, "open a datagram socket%s%s%s%s: %s", o->local ? " at " : "",
                             o->local ? resha_addr_format(o->local, local, sizeof local) : "", o->peer ? " for " : "",
                             o->peer ? resha_addr_format(o->peer, peer, sizeof peer) : "",
                             why ? why : resha_strerror(code));
}

static int check_opts(const resha_dgram_opts *o)
{
        if (!rs_reserved_zero(o->_reserved))
                return resha_fail_at(-EINVAL, NULL, "a reserved word of datagram options is not zero");
        if (o->receive_buffer < 0 || o->send_buffer < 0)
                return resha_fail_at(-EINVAL, NULL, "a datagram socket's buffer of less than no bytes");
        return 0;
}

static void describe(const void *object, char *text, size_t size)
{
        const resha_dgram *d = object;
        resha_addr addr;

        if (d->file->backend->ops->file_addr(d->file, d->connected, &addr) == 0)
                resha_addr_format(&addr, text, size);
}

int resha_dgram_open(const resha_dgram_opts *opts, resha_dgram **ret_dgram)
{
        static const resha_shown_kind kind = { .kind = "datagram", .describe = describe };
        static const resha_dgram_opts defaults;
        const resha_dgram_opts *o = opts ? opts : &defaults;
        const char *why = NULL;
        struct rs_loop *l;
        int rc = rs_enter(&l);

        if (rc < 0 || (rc = check_opts(o)) < 0)
                return rc;
        resha_dgram *d = resha_calloc(1, sizeof *d);
        if (!d)
                return -ENOMEM;
        d->loop = l;
        rc = o->local || o->peer ? open_file(l, d, o, &why) : open_anywhere(l, d, o, &why);
        if (rc == 0) {
                l->open++;
                rs_shown_add(l, &d->shown, &kind, d, d->file->fd);
                RS_OPENED_HERE(&d->shown);
                *ret_dgram = d;
                return 0;
        }
        rs_dgram_close_file(d);
        resha_free(d);
        return open_failed(o, rc, why);
}
