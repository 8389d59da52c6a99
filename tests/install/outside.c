/* SPDX-License-Identifier: MIT */
/* A program outside the tree: built against the installed copy, as C and as C++, with the shared library and the static
 * one. Its result must be that of three tasks that ran at the same time. */

#include <resha/resha.h>
#include <stdio.h>
#include <string.h>

struct item {
        int in, out;
};

static int square(void *arg)
{
        struct item *item = (struct item *)arg;
        int rc = resha_sleep(RESHA_MS(1));
        if (rc < 0)
                return rc;
        item->out = item->in * item->in;
        return 0;
}

static int program(void *arg)
{
        (void)arg;
        struct item items[] = { { 1, 0 }, { 2, 0 }, { 3, 0 } };
        int rc = resha_gather(square, items, 3, sizeof items[0], NULL);
        if (rc < 0)
                return rc;
        printf("%d %d %d\n", items[0].out, items[1].out, items[2].out);
        return 0;
}

int main(void)
{
        if (strncmp(resha_version(), RESHA_STRINGIFY(RESHA_VERSION_MAJOR) ".", 2) != 0) {
                fprintf(stderr, "header and library differ\n");
                return 1;
        }
        return resha_main(program, NULL);
}
