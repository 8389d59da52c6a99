/* SPDX-License-Identifier: MIT */

/* `resha stats`: figures for monitoring, passed on. */

#include <unistd.h>

#include "help.h"
#include "look.h"
#include "view.h"

int stats_main(int argc, char **argv)
{
        struct asked a;
        int rc;
        if (!asked_begin(&a, "stats", help_stats, argc, argv, &rc))
                return rc;
        return view_pass(&a, &(struct question){ .request = "stats", .form = ANSWER_TEXT }, STDOUT_FILENO);
}
