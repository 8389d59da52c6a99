/* SPDX-License-Identifier: MIT */
/* References to loops, for threads that have none.
 *
 * A reference is the loop's inbox under another name: that is counted, outlives the loop, and knows whether it has
 * ended. A post that was taken runs in any case: at the next visit of the loop, or when the inbox is closed, which the
 * loop does on its own thread at the end of the run. Cancel is a flag of the inbox and needs neither lock nor
 * memory. */

#include <stdio.h>

#include <resha/alloc.h>
#include <resha/loop.h>

#include "core/core.h"

struct posted {
        struct rs_post post;
        resha_post_fn *fn;
        void *arg;
};

static struct rs_inbox *inbox_of(resha_loop *l)
{
        return (struct rs_inbox *)(void *)l;
}

resha_loop *resha_loop_ref(void)
{
        struct rs_loop *l = rs_loop_current;

        return l ? (resha_loop *)(void *)rs_inbox_hold(l) : NULL;
}

void resha_loop_unref(resha_loop *l)
{
        if (l && !rs_inbox_of_parent(inbox_of(l)))
                rs_inbox_release(inbox_of(l));
}

void resha_loop_unrefp(resha_loop **l)
{
        resha_loop_unref(*l);
        *l = NULL;
}

static void run(struct rs_post *post)
{
        struct posted *p = RS_CONTAINER(post, struct posted, post), call = *p;

        resha_free(p);
        call.fn(call.arg);
}

static int refuse(int code, const char *text)
{
        resha_error e = { .code = code };

        snprintf(e.text, sizeof e.text, "%s", text);
        rs_error_give(rs_loop_current, &e);
        return code;
}

int resha_loop_post(resha_loop *l, resha_post_fn *fn, void *arg)
{
        if (rs_inbox_of_parent(inbox_of(l)))
                return refuse(-EPERM, "the loop is the parent process's");
        struct posted *p = resha_malloc(sizeof *p);
        if (!p)
                return -ENOMEM;
        *p = (struct posted){ .post = { .fn = run, .lost = run, .quiet = true }, .fn = fn, .arg = arg };
        if (rs_inbox_try_post(inbox_of(l), &p->post))
                return 0;
        resha_free(p);
        return refuse(RESHA_ESHUT, "the run has ended: the function will not be called");
}

void resha_loop_cancel_at(resha_loop *l, const char *site)
{
        if (!rs_inbox_of_parent(inbox_of(l)))
                rs_inbox_cancel(inbox_of(l), site);
}
