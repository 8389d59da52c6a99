/* SPDX-License-Identifier: MIT */
/* Who is called what: ports and Unix names. A name is a bound socket's as long as that is open; so a path is gone with
 * its socket here, and there is no file, live or dead, to be replaced or removed. No port is still in use by what was
 * closed. Ports of connections that a listener has accepted are not names, as they keep nobody from anything. */

#include <assert.h>
#include <errno.h>

#include "io/sim_addr.h"
#include "io/sim_file.h"

enum { PORT_FIRST = 40000 };

bool sim_name_covers(const struct sim_file *o, const resha_addr *to)
{
        if ((o->bind_flags & RS_BIND_V6_ONLY) && sim_addr_family(to) != AF_INET6)
                return false;
        return sim_addr_covers(&o->local, to);
}

static bool is_unix(const struct sim_file *f)
{
        return f->family == AF_UNIX;
}

/* Sockets of both kinds meet at a path; an abstract name, and a port, belong to one kind. */
static bool same_space(const struct sim_file *f, const struct sim_file *o)
{
        if (is_unix(f) != is_unix(o))
                return false;
        return (f->state == DGRAM) == (o->state == DGRAM) || (is_unix(o) && sim_addr_is_path(&o->local));
}

static bool may_share(const struct sim_file *f, const struct sim_file *o)
{
        unsigned both = f->bind_flags & o->bind_flags;

        return (both & RS_BIND_REUSE_PORT) ||
               ((both & RS_BIND_REUSE_ADDR) && f->state != LISTENER && o->state != LISTENER);
}

bool sim_name_free(struct sim_file *f)
{
        for (struct rs_node *n = sim_of(f)->names.first; n; n = n->next) {
                const struct sim_file *o = RS_CONTAINER(n, struct sim_file, named);
                if (o == f || !same_space(f, o))
                        continue;
                if (is_unix(f) ? sim_addr_same(&f->local, &o->local)
                               : sim_addr_port(&f->local) == sim_addr_port(&o->local) &&
                                         (sim_name_covers(o, &f->local) || sim_name_covers(f, &o->local)) &&
                                         !may_share(f, o))
                        return false;
        }
        return true;
}

static bool take_port(struct sim *s, struct sim_file *f)
{
        if (sim_addr_port(&f->local) != 0)
                return sim_name_free(f);
        for (int i = 0; i <= UINT16_MAX - PORT_FIRST; i++) {
                sim_addr_set_port(&f->local, s->next_port);
                s->next_port = s->next_port == UINT16_MAX ? PORT_FIRST : (uint16_t)(s->next_port + 1);
                if (sim_name_free(f))
                        return true;
        }
        return false;
}

static bool take_name(struct sim *s, struct sim_file *f)
{
        if (!sim_addr_is_unnamed(&f->local))
                return sim_name_free(f);
        do
                f->local = sim_addr_numbered(s->next_name++);
        while (!sim_name_free(f));
        return true;
}

int sim_name_take(struct sim_file *f, const resha_addr *addr, unsigned flags)
{
        struct sim *s = sim_of(f);
        resha_addr before = f->local;

        assert(!f->bound);
        f->local = *addr;
        f->bind_flags = flags;
        if (!(is_unix(f) ? take_name(s, f) : take_port(s, f))) {
                f->local = before;
                f->bind_flags = 0;
                return -EADDRINUSE;
        }
        f->bound = true;
        rs_list_push(&s->names, &f->named);
        return 0;
}

void sim_name_drop(struct sim_file *f)
{
        if (f->bound)
                rs_list_remove(&sim_of(f)->names, &f->named);
        f->bound = false;
}

bool sim_name_connected(struct sim_file *f, const resha_addr *remote)
{
        for (struct rs_node *n = sim_of(f)->names.first; n; n = n->next) {
                const struct sim_file *o = RS_CONTAINER(n, struct sim_file, named);
                if (o != f && o->state == STREAM && !is_unix(o) && sim_addr_same(&o->local, &f->local) &&
                    sim_addr_same(&o->remote, remote))
                        return true;
        }
        return false;
}

/* Who has this Unix name, for datagrams or not. */
static int unix_named(struct sim *s, const resha_addr *to, bool dgram, struct sim_file **ret)
{
        bool path = sim_addr_is_path(to);

        for (struct rs_node *n = s->names.first; n; n = n->next) {
                struct sim_file *o = RS_CONTAINER(n, struct sim_file, named);
                bool same_kind = (o->state == DGRAM) == dgram;
                if (!is_unix(o) || !sim_addr_same(&o->local, to) || !(same_kind || path))
                        continue;
                *ret = o;
                return same_kind ? 0 : -EPROTOTYPE;
        }
        return path ? -ENOENT : sim_addr_is_unnamed(to) ? -EINVAL : -ECONNREFUSED;
}

int sim_name_dgram(struct sim *s, const resha_addr *to, struct sim_file **ret_dgram)
{
        return unix_named(s, to, true, ret_dgram);
}

static int unix_listener(struct sim *s, const resha_addr *to, struct sim_file **ret_listener)
{
        int rc = unix_named(s, to, false, ret_listener);

        return rc == 0 && (*ret_listener)->state != LISTENER ? -ECONNREFUSED : rc;
}

/* A listener on the very host is better than one on all. Those that share a port take turns. */
int sim_name_listener(struct sim *s, const resha_addr *to, struct sim_file **ret_listener)
{
        struct sim_file *found = NULL;

        if (sim_addr_family(to) == AF_UNIX)
                return unix_listener(s, to, ret_listener);
        for (struct rs_node *n = s->names.first; n; n = n->next) {
                struct sim_file *o = RS_CONTAINER(n, struct sim_file, named);
                if (o->state == LISTENER && !is_unix(o) && sim_addr_port(&o->local) == sim_addr_port(to) &&
                    sim_name_covers(o, to) &&
                    (!found || (sim_addr_is_any(&found->local) && !sim_addr_is_any(&o->local))))
                        found = o;
        }
        if (!found)
                return -ECONNREFUSED;
        rs_list_remove(&s->names, &found->named);
        rs_list_push(&s->names, &found->named);
        *ret_listener = found;
        return 0;
}
