/* SPDX-License-Identifier: MIT */

/* The command `resha`: finds the subcommand and runs it. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <resha/base.h>

#include "demo.h"
#include "fetch.h"
#include "help.h"
#include "look/look.h"
#include "nearest.h"
#include "origin.h"

static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
} commands[] = {
        { "fetch", fetch_main },   { "demo", demo_main },   { "ps", ps_main },       { "tree", tree_main },
        { "top", top_main },       { "stack", stack_main }, { "trace", trace_main }, { "stats", stats_main },
        { "origin", origin_main }, /* the demo's server by itself, for tests and benchmarks */
};

static int unknown(const char *word)
{
        struct nearest n;
        nearest_init(&n, word, strlen(word));
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                nearest_try(&n, commands[i].name);
        if (n.best)
                fprintf(stderr, "resha: unknown command '%s'; did you mean 'resha %s'?\n", word, n.best);
        else
                fprintf(stderr, "resha: unknown command '%s'; see resha --help\n", word);
        return EXIT_USAGE;
}

/* Started with one of them closed, the next file opened would take its place, and get what is meant for it. Each is
 * opened the wrong way round, so that its use fails as it would have. */
static void fill_standard_files(void)
{
        for (int fd = 0; fd <= 2; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY); /* the lowest that is free */
}

int main(int argc, char **argv)
{
        fill_standard_files();
        if (argc < 2) {
                fputs(help_resha, stderr);
                return EXIT_USAGE;
        }
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
                if (strcmp(argv[1], commands[i].name) == 0)
                        return commands[i].run(argc - 2, argv + 2);
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
                return fputs(help_resha, stdout) < 0 || fflush(stdout) ? EXIT_CANNOT_WRITE : EXIT_DONE;
        if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
                return printf("resha %s\n", resha_version()) < 0 || fflush(stdout) ? EXIT_CANNOT_WRITE : EXIT_DONE;
        return unknown(argv[1]);
}
