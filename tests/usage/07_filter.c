/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <stdio.h>
#include <resha/resha.h>

struct feed { resha_process *p; const char *data; size_t len; };

static int feed(void *arg)
{
        struct feed *f = arg;
        int rc = resha_write_all(resha_process_stdin(f->p), f->data, f->len, NULL);
        if (rc == -EPIPE)
                rc = 0;                                 /* a child that stops reading is no error */
        resha_process_close_stdin(f->p);
        return rc;
}

static int filter(const char *const *argv, const char *data, size_t len, char *out, size_t cap, size_t *ret_n)
{
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;   /* declared before the group: ends after it */
        int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv, .in = RESHA_PIPE, .out = RESHA_PIPE }, &p);
        if (rc < 0)
                return rc;
        struct feed f = { p, data, len };
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, feed, &f);
        size_t n = 0;
        ssize_t k;
        while ((k = resha_read(resha_process_stdout(p), out + n, cap - n)) > 0)
                if ((n += (size_t)k) == cap)
                        return resha_fail(-EMSGSIZE, "%s: more than %zu bytes", argv[0], cap); /* feed, child: ended */
        rc = resha_group_end(&g, (int)k);
        resha_exit e;
        if (rc < 0 || (rc = resha_process_wait(p, &e)) < 0)
                return rc;
        if (e.signalled || e.code)
                return resha_fail(-ECHILD, "%s: %s %d", argv[0], e.signalled ? "signal" : "status", e.code);
        *ret_n = n;
        return 0;
}

static const char *const sort[] = { "sort", NULL };
static int program(void *out) { size_t n; return filter(sort, "b\na\n", 4, out, 4096, &n); }
int main(void) { char out[4096] = ""; return resha_run(program, out, NULL) < 0 || fputs(out, stdout) < 0; }
