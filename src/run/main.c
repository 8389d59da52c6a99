/* SPDX-License-Identifier: MIT */
/* What main() returns: a run whose reports and whose failure are printed. Nothing else in the library prints, but for
 * what ends the process. */

#include <stdio.h>

#include <resha/loops.h>
#include <resha/resha.h>

#include "run/run.h"
#include "sys/print.h"
#include "sys/symbol.h"

enum { PRINT_PARTS = 20, PRINT_FRAMES = 16 };

bool resha_frame_format(const void *return_address, char *ret_text, size_t size)
{
        return rs_symbol_format(return_address, ret_text, size);
}

static void print_stack(const resha_report *r)
{
        char line[256];
        unsigned lines = 0;

        for (size_t i = 0; i < r->depth && lines < PRINT_FRAMES; i++)
                if (resha_frame_format(r->stack[i], line, sizeof line)) {
                        rs_print("    %s\n", line);
                        lines++;
                }
}

void rs_report_print(const resha_report *r, void *arg)
{
        (void)arg;
        if (r->kind == RESHA_REPORT_FALLBACK)
                return;
        if (r->part > PRINT_PARTS) {
                if (r->part < r->parts)
                        return;
                rs_print_begin();
                rs_print("resha: and so do %u more tasks\n", r->parts - PRINT_PARTS);
                rs_print_end();
                return;
        }
        rs_print_begin(); /* several loops may report at once */
        rs_print("resha: ");
        if (r->task)
                rs_print("task \"%s\"%s%s: ", r->task, r->spawned_at ? " from " : "",
                         r->spawned_at ? r->spawned_at : "");
        rs_print("%s\n", r->text);
        print_stack(r);
        rs_print_end();
}

/* rates.c:13: no rate for XXX (task 3 of 3 from rates.c:22, after 1.0 s; the others had finished) */
static void print_failure(int rc, const resha_error *e)
{
        rs_print_begin();
        if (e->site)
                rs_print("%s: ", e->site);
        rs_print("%s", e->code ? e->text : resha_strerror(rc));
        if (e->items && e->spawned_at) {
                rs_print(" (task %u of %u from %s, after %.1f s; ", e->item, e->items, e->spawned_at,
                         (double)e->after.ns / 1e9);
                if (e->cancelled)
                        rs_print("%u %s cancelled)", e->cancelled, e->cancelled == 1 ? "other was" : "others were");
                else
                        rs_print("the others had finished)");
        } else if (e->items) { /* of a map over threads or processes, whose place nobody knows */
                rs_print(" (item %u of %u)", e->item, e->items);
        } else if (e->spawned_at) {
                rs_print(" (task %s from %s, after %.1f s)", e->task ? e->task : "?", e->spawned_at,
                         (double)e->after.ns / 1e9);
        }
        rs_print("\n");
        rs_print_end();
}

static resha_run_opts main_opts(resha_error *error, int *signal)
{
        return (resha_run_opts){ .overflow_report = true,
                                 .terminate = true,
                                 .blocked = RESHA_MS(250),
                                 .report = rs_report_print,
                                 .ret_error = error,
                                 .ret_signal = signal };
}

static int status(int rc, const resha_error *error, int signal)
{
        fflush(stdout);
        if (rc >= 0)
                return 0;
        if (rc == -ECANCELED && (error->code == 0 || error->code == -ECANCELED) && signal)
                return 128 + signal;
        print_failure(rc, error);
        return 1;
}

int resha_main(resha_fn *fn, void *arg)
{
        resha_error error;
        int signal;
        resha_run_opts o = main_opts(&error, &signal);
        int rc = resha_run(fn, arg, &o);

        return status(rc, &error, signal);
}

int resha_main_loops_at(const char *site, resha_fn *fn, void *items, size_t n, size_t size)
{
        resha_error error;
        int signal;
        resha_run_opts o = main_opts(&error, &signal);
        int rc = resha_run_loops_at(site, fn, items, n, size, &o);

        return status(rc, &error, signal);
}
