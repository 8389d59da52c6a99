/* SPDX-License-Identifier: MIT */

/* What `resha tree` shows of the demo. It is asked as any program is, at the socket of its inspector, by a thread that
 * waits for the answer, while the loop that is looked at goes on with its stories. Of the answer the group of the
 * stories is drawn: the demo's server is in the same program, and its tasks are nobody's business here. */

#include "glimpse.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <resha/resha.h>

#include "exits.h"
#include "tree.h"

/* The group of the first task whose name begins with "story". */
static const struct scope_row *stories_of(const struct snapshot *s)
{
        for (size_t i = 0; i < s->tasks.n; i++)
                if (strncmp(s->tasks.row[i].name, "story", 5) == 0)
                        return snapshot_scope(s, s->tasks.row[i].loop, s->tasks.row[i].group);
        return NULL;
}

static int look(void *arg)
{
        struct glimpse *g = arg;
        VIEW(v);
        TEXT(why);
        if (process_look(getpid(), &v.process) < 0)
                text_puts(&why, "this process is not in /proc");
        else if (snapshot_load(&v.snapshot, &v.process, "tree", "snapshot", &why) == EXIT_DONE && view_init(&v) == 0) {
                const struct scope_row *stories = stories_of(v.s);
                if (stories)
                        return tree_add_group(&v, stories, &g->tree);
                text_puts(&why, "there was no story under way");
        }
        text_printf(&g->tree, "nothing was seen: %s\n", text_string(&why));
        return 0;
}

int glimpse_take(void *glimpse)
{
        struct glimpse *g = glimpse;
        int rc = resha_sleep(g->after);
        return rc < 0 ? rc : resha_pool_run(NULL, look, g, NULL);
}

void glimpse_show(struct glimpse *g)
{
        TEXT(t);
        text_printf(&t, "6  Who is waiting for what: resha tree, taken in act 4 after %.1f s\n",
                    (double)g->after.ns / 1e9);
        for (const char *p = text_string(&g->tree), *nl; (nl = strchr(p, '\n')); p = nl + 1) {
                text_puts(&t, "   ");
                text_add(&t, p, (size_t)(nl + 1 - p));
        }
        text_putc(&t, '\n');
        stage_put(&t);
}

void glimpse_done(struct glimpse *g)
{
        text_done(&g->tree);
}
