/* SPDX-License-Identifier: MIT */
/* Options of sockets in the simulated world: each is asked of the real kernel too, and both must say the same. */

#include "io/kernel.h"
#include "world.h"

#define FOR_ALL(i, of) for (size_t i = 0; i < sizeof(of) / sizeof((of)[0]); i++)

static const struct {
        int family, type;
} kinds[] = { { AF_INET, SOCK_STREAM }, { AF_INET6, SOCK_STREAM }, { AF_UNIX, SOCK_STREAM } };

static const int values[] = { 0, 1, 2, 500, 5000, 100000, 1000000, -1 };

/* What Linux gives for a buffer that was not set depends on how the machine is set up. */
static bool is_of_the_machine(enum rs_option which)
{
        return which == RS_OPTION_SEND_BUFFER || which == RS_OPTION_RECEIVE_BUFFER;
}

static void same_options(struct rs_backend *sim, struct rs_backend *real, int family, int type, int value)
{
        for (int o = 1; o <= RS_OPTION_LISTENING; o++) {
                enum rs_option which = (enum rs_option)o;
                struct rs_file *s = new_socket(sim, family, type), *r = new_socket(real, family, type);
                int was[2] = { -7, -7 }, is[2] = { -7, -7 }, v = value;
                int got = sim->ops->option(s, which, &was[0], false),
                    want = real->ops->option(r, which, &was[1], false);
                char about[100];
                snprintf(about, sizeof about, "family %d type %d option %d value %d", family, type, o, value);
                test_context(about);
                ASSERT_EQ(got, want);
                if (!is_of_the_machine(which))
                        ASSERT_EQ(was[0], was[1]);
                ASSERT_EQ(sim->ops->option(s, which, &v, true), real->ops->option(r, which, &v, true));
                ASSERT_EQ(sim->ops->option(s, which, &is[0], false), real->ops->option(r, which, &is[1], false));
                if (!is_of_the_machine(which) || (value >= 0 && value <= 100000))
                        ASSERT_EQ(is[0], is[1]);
                sim->ops->file_close(s);
                real->ops->file_close(r);
        }
        test_context("");
}

TEST(options_are_kept_and_refused_as_by_the_kernel)
{
        struct rs_backend *sim = world(0), *real;

        ASSERT_OK(rs_epoll_new(&real));
        FOR_ALL(k, kinds)
        FOR_ALL(v, values)
        same_options(sim, real, kinds[k].family, kinds[k].type, values[v]);
        real->ops->destroy(real);
        end(sim);
}

TEST(a_pipe_has_no_options)
{
        struct rs_backend *b = world(0);
        struct rs_file *f[2];
        int v = 0;

        ASSERT_OK(b->ops->pipe(b, f));
        for (int o = 1; o <= RS_OPTION_LISTENING; o++)
                ASSERT_EQ(b->ops->option(f[0], (enum rs_option)o, &v, false), -ENOTSOCK);
        b->ops->file_close(f[0]);
        b->ops->file_close(f[1]);
        end(b);
}

TEST(a_connection_has_the_options_of_its_listener)
{
        struct rs_backend *b = world(0);
        struct pair p = join(b);
        int v = 7, got;
        resha_addr to;

        ASSERT_OK(b->ops->file_addr(p.listener, false, &to));
        ASSERT_OK(b->ops->option(p.listener, RS_OPTION_KEEPALIVE, &v, true));
        ASSERT_OK(b->ops->option(p.listener, RS_OPTION_LISTENING, &got, false));
        ASSERT_EQ(got, 1);
        struct rs_file *c = new_socket(b, AF_INET, SOCK_STREAM);
        ASSERT_EQ(connect_op(b, c, &to), 0);
        struct rs_file *s = accept_op(b, p.listener);
        ASSERT_OK(b->ops->option(s, RS_OPTION_KEEPALIVE, &got, false));
        ASSERT_EQ(got, 7);
        ASSERT_OK(b->ops->option(s, RS_OPTION_LISTENING, &got, false));
        ASSERT_EQ(got, 0);
        b->ops->file_close(c);
        b->ops->file_close(s);
        close_all(b, &p);
}
