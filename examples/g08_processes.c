/* SPDX-License-Identifier: MIT */
/* G8: other programs: one is fed and read, several run at once, one that does not end in time is ended, and one talks
 * back and forth. */
#include <stdio.h>
#include <string.h>

#include <resha/resha.h>

static int sorted(void)
{
        static const char *const argv[] = { "sort", "-r", NULL }, *const plain[] = { "LC_ALL=C", NULL };
        resha_output out RESHA_CLEANUP(resha_output_free) = { 0 };
        int rc = resha_process_run(&(resha_process_opts){ .argv = argv, .add_env = plain }, "b\na\nc\n", 6, 0, &out,
                                   NULL, NULL);

        if (rc == 0)
                printf("sorted: %s", out.data);
        return rc;
}

static int run_shell(void *arg)
{
        const char *const argv[] = { "sh", "-c", *(const char **)arg, NULL };

        return resha_process_run(&(resha_process_opts){ .argv = argv }, NULL, 0, 0, NULL, NULL, NULL);
}

static int several(void)
{
        const char *scripts[] = { "exit 0", "exit 2", "kill -9 $$" };
        resha_error errors[3];
        int status[3];
        int rc = resha_gather(run_shell, scripts, 3, sizeof scripts[0],
                              &(resha_gather_opts){ .keep_going = true, .ret_status = status, .ret_errors = errors });

        for (int i = 0; rc == 0 && i < 3; i++)
                printf("%s: %s\n", scripts[i], status[i] < 0 ? errors[i].text : "good");
        return rc;
}

static int nap(void *arg)
{
        (void)arg;
        return run_shell(&(const char *){ "exec sleep 3600" });
}

static int conversation(void)
{
        static const char *const argv[] = { "cat", NULL };
        resha_process *p RESHA_CLEANUP(resha_process_closep) = NULL;
        char line[16];
        int rc = resha_process_spawn(&(resha_process_opts){ .argv = argv, .in = RESHA_PIPE, .out = RESHA_PIPE }, &p);

        for (int i = 0; rc == 0 && i < 2; i++) {
                rc = resha_write_all(resha_process_stdin(p), i ? "pong\n" : "ping\n", 5, NULL);
                ssize_t n = rc < 0 ? rc : resha_read_line(resha_process_stdout(p), line, sizeof line);
                if (n <= 0)
                        return n < 0 ? (int)n : resha_fail(-EPIPE, "cat has closed its output");
                printf("cat says %s", line);
        }
        if (rc < 0)
                return rc;
        resha_process_close_stdin(p);
        return resha_process_check(p);
}

static int program(void *arg)
{
        (void)arg;
        int rc = sorted();

        if (rc == 0)
                rc = several();
        if (rc == 0)
                rc = conversation();
        if (rc < 0)
                return rc;
        rc = resha_timeout(RESHA_MS(100), nap, NULL);
        printf("a long nap: %s\n", resha_strerror(rc));
        return rc == -ETIME ? 0 : rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
