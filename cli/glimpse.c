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
#include "look/tree.h"

enum { INDENT = 3 };

/* The row of the group of the first task whose name begins with "story"; NO_ROW: there is none. */
static int32_t stories_of(const struct snapshot *s)
{
        for (size_t i = 0; i < s->tasks.n; i++) {
                const struct task_row *t = &s->tasks.row[i];
                const struct scope_row *g =
                        strncmp(t->name, "story", 5) == 0 ? snapshot_scope(s, t->loop, t->group) : NULL;
                if (g)
                        return (int32_t)(g - s->scopes.row);
        }
        return NO_ROW;
}

static int look(void *arg)
{
        struct glimpse *g = arg;
        VIEW(v);
        TEXT(why);
        if (process_look(getpid(), &v.process) < 0)
                text_puts(&why, "/proc does not tell of this process");
        else if (snapshot_load(&v.snapshot, &v.process, &(struct wanted){ "tree", "snapshot", 0, -1 }, &why) ==
                         EXIT_DONE &&
                 view_init(&v) == 0) {
                int32_t stories = stories_of(v.s);
                for (size_t i = 0; i < v.s->tasks.n; i++)
                        v.snapshot.tasks.row[i].site = ""; /* there is one only, and lines are short here */
                v.screen.width -= v.screen.width > INDENT ? INDENT : 0;
                if (stories != NO_ROW)
                        return tree_add_group(&v, stories, &g->tree);
                text_puts(&why, "no story was under way");
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
                text_printf(&t, "%*s", INDENT, "");
                text_add(&t, p, (size_t)(nl + 1 - p));
        }
        text_putc(&t, '\n');
        stage_put(&t);
}

void glimpse_done(struct glimpse *g)
{
        text_done(&g->tree);
}
