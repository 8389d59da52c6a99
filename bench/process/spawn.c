/* SPDX-License-Identifier: MIT */
/* What does it cost to start a program and to wait for its end?
 *
 *     process-spawn PROGRAM [PROCESSES [PIPES [AT_ONCE]]]
 *
 * PIPES: 1: none; 2: its standard input and output are pipes: the input is closed, the output read to its end. */

#include <resha/resha.h>

#include "lib/bench.h"

struct spawn {
        const char *argv[2];
        uint64_t n, at_once;
        bool pipes;
};

static int read_to_the_end(resha_process *p)
{
        char buf[4096];
        ssize_t n;

        resha_process_close_stdin(p);
        do
                n = resha_read(resha_process_stdout(p), buf, sizeof buf);
        while (n > 0);
        return (int)n;
}

static int one(void *arg)
{
        const struct spawn *s = arg;
        RESHA_CLEANUP(resha_process_closep) resha_process *p = NULL;
        resha_process_opts o = { .argv = s->argv };

        if (s->pipes)
                o.in = o.out = RESHA_PIPE;
        int rc = resha_process_spawn(&o, &p);
        if (rc == 0 && s->pipes)
                rc = read_to_the_end(p);
        return rc < 0 ? rc : resha_process_check(p);
}

static int many(void *arg, uint64_t n)
{
        struct spawn *s = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .limit = (unsigned)s->at_once });
        for (uint64_t i = 0; i < n; i++)
                resha_spawn(&g, one, s);
        return resha_group_end(&g, 0);
}

static int program(void *arg)
{
        struct spawn *s = arg;

        return bench_measure(many, s, s->n);
}

int main(int argc, char **argv)
{
        struct spawn s = {
                .argv = { argc > 1 ? argv[1] : "true", NULL },
                .n = bench_argument(argc, argv, 2, 2000),
                .pipes = bench_argument(argc, argv, 3, 1) == 2,
                .at_once = bench_argument(argc, argv, 4, 1),
        };

        return resha_main(program, &s);
}
