/* SPDX-License-Identifier: MIT */
/* The fault: a function that calls itself for each level of a tree, with a buffer in each frame. The tree is deeper
 * than the one it was tried with: the stack of the task is nearly full, and one level more would end the program. */
#include <stdio.h>

#include <resha/resha.h>

enum { LEVELS = 39, PATH = 4096 };

static int __attribute__((noinline)) walk(int level, const char *under)
{
        char path[PATH];
        snprintf(path, sizeof path, "%.60s/%d", under, level);
        int rc = level < LEVELS ? walk(level + 1, path) : resha_sleep(RESHA_S(3600));
        return path[0] ? rc : -EINVAL;
}

static int walk_tree(void *arg)
{
        return walk(1, arg);
}

static int program(void *arg)
{
        char top[] = "/srv";
        (void)arg;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, walk_tree, top);
        return resha_group_end(&g, 0);
}

int main(void)
{
        return resha_main(program, NULL);
}
