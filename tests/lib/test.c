/* SPDX-License-Identifier: MIT */
/* The tests' library and their main().
 *
 *     unit-group [-l] [-v] [-d] [NAME...]      all tests, or those whose name is, or else contains, one of NAME
 *
 * -l lists, -v names each test that ran, -d runs them in this process, for a debugger.
 *
 * Each test is a child process: a failed assertion ends it from any depth of any task, a crash is one failed test, and
 * one that hangs is killed by its alarm ($RESHA_TEST_TIMEOUT seconds). The child ends by exit(), so that LeakSanitizer
 * looks at it too. */

#include "test.h"

#include <resha/test.h>

#include "hooks.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the internals (src/base/alloc.h): live allocations. Absent when a test links the shared library. */
void rs_alloc_watch(bool on) __attribute__((weak));
int64_t rs_alloc_live(void) __attribute__((weak));

#pragma weak audit_test
#pragma weak audit_setup
#pragma weak audit_summary
#pragma weak audit_failed
#pragma weak audit_backend
#pragma weak audit_cannot

enum { EXIT_SKIPPED = 77, DEFAULT_TIMEOUT = 120 };

static struct test *first, **last = &first;
static const char *current = "?", *seed_note = "";
static bool verbose;

void test_register(struct test *t)
{
        *last = t;
        last = &t->next;
}

void test_context(const char *text)
{
        seed_note = text;
}

/* ---- failing ---- */

void test_fail(const char *file, int line, const char *format, ...)
{
        va_list ap;

        if (audit_failed)
                audit_failed();
        fflush(stdout);
        const char *trial = resha_test_trial_text();
        fprintf(stderr, "%s:%d: %s%s%s%s%s: ", file, line, current, seed_note, trial ? " (" : "", trial ? trial : "",
                trial ? ")" : "");
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        fflush(stderr);
        _exit(1);
}

void test_skip(const char *why)
{
        if (audit_failed)
                audit_failed(); /* for want of what a trial took away: as at an assertion */
        if (verbose)
                printf("%s: skipped: %s\n", current, why);
        fflush(stdout);
        _exit(EXIT_SKIPPED);
}

/* "-125 (ECANCELED)": codes are read as names. */
static const char *number(intmax_t n, char buf[64])
{
        const char *name = n < 0 && n >= -4095 ? resha_errname((int)n) : NULL;

        snprintf(buf, 64, name ? "%jd (%s)" : "%jd", n, name);
        return buf;
}

void test_true(bool ok, const char *text, const char *file, int line)
{
        if (!ok)
                test_fail(file, line, "not true: %s", text);
}

void test_eq(intmax_t a, intmax_t b, const char *a_text, const char *b_text, const char *file, int line)
{
        char x[64], y[64];

        if (a != b)
                test_fail(file, line, "%s is %s, expected %s = %s", a_text, number(a, x), b_text, number(b, y));
}

void test_ok(intmax_t rc, const char *text, const char *file, int line)
{
        char x[64];

        if (rc < 0)
                test_fail(file, line, "%s is %s: %s", text, number(rc, x), resha_error_of((int)rc)->text);
}

void test_str(const char *a, const char *b, const char *a_text, const char *b_text, const char *file, int line)
{
        if (!a || !b ? a != b : strcmp(a, b) != 0)
                test_fail(file, line, "%s is\n        \"%s\", expected %s =\n        \"%s\"", a_text, a ? a : "(null)",
                          b_text, b ? b : "(null)");
}

void test_ptr(const void *a, const void *b, const char *a_text, const char *b_text, const char *file, int line)
{
        if (a != b)
                test_fail(file, line, "%s is %p, expected %s = %p", a_text, a, b_text, b);
}

void test_has(const char *text, const char *part, const char *expr, const char *file, int line)
{
        if (!text || !strstr(text, part))
                test_fail(file, line, "%s is\n        \"%s\", which has no\n        \"%s\"", expr,
                          text ? text : "(null)", part);
}

void test_elapsed(resha_instant from, int64_t ms, const char *file, int line)
{
        int64_t ns = resha_now().ns - from.ns;

        if (test_is_sim() ? ns != ms * 1000000 : ns < ms * 1000000)
                test_fail(file, line, "%.6f ms have passed, expected %s%lld ms", (double)ns / 1e6,
                          test_is_sim() ? "" : "at least ", (long long)ms);
}

/* ---- running ---- */

const char *test_backend(void)
{
        const char *s = audit_backend ? audit_backend() : NULL;

        if (!s)
                s = getenv("RESHA_TEST_BACKEND");
        return s && *s ? s : "sim:0";
}

bool test_is_sim(void)
{
        return strncmp(test_backend(), "sim", 3) == 0;
}

int64_t test_stretch(void)
{
        const char *s = getenv("RESHA_TEST_STRETCH");

        return test_is_sim() ? 1 : s ? strtol(s, NULL, 10) : 10;
}

int test_run_opts(resha_fn *fn, void *arg, const resha_run_opts *opts)
{
        resha_run_opts o = opts ? *opts : (resha_run_opts){ 0 };

        o.backend = test_backend();
        return resha_run(fn, arg, &o);
}

/* The record of the main task, where the caller can see it. */
static void run_on(resha_fn *fn, void *arg, const char *backend, const char *file, int line)
{
        resha_error e = { 0 };
        int rc = resha_run(fn, arg, &(resha_run_opts){ .backend = backend, .ret_error = &e });
        char x[64];

        if (rc < 0)
                test_fail(file, line, "the main task ended with %s: %s (%s)", number(rc, x), e.text,
                          e.site ? e.site : "no site");
}

void test_run(resha_fn *fn, void *arg, const char *file, int line)
{
        run_on(fn, arg, test_backend(), file, line);
}

void test_run_seeds(resha_fn *fn, void *arg, unsigned n, const char *file, int line)
{
        static char text[64];

        if (!test_is_sim() || audit_backend) {
                run_on(fn, arg, test_backend(), file, line);
                return;
        }
        seed_note = text;
        for (unsigned seed = 0; seed < n; seed++) {
                char backend[32];

                snprintf(backend, sizeof backend, "sim:%u", seed);
                snprintf(text, sizeof text, " (RESHA_TEST_BACKEND=%s)", backend);
                run_on(fn, arg, backend, file, line);
        }
        seed_note = "";
}

/* ---- helpers of tests ---- */

static char noted[4096];
static size_t noted_size;

void note(const char *format, ...)
{
        va_list ap;
        int n;

        if (noted_size)
                noted[noted_size++] = ' ';
        va_start(ap, format);
        n = vsnprintf(noted + noted_size, sizeof noted - noted_size, format, ap);
        va_end(ap);
        if (n < 0 || (size_t)n + 2 > sizeof noted - noted_size)
                test_fail(__FILE__, __LINE__, "too many notes");
        noted_size += (size_t)n;
}

const char *notes(void)
{
        static char given[sizeof noted];

        memcpy(given, noted, noted_size);
        given[noted_size] = '\0';
        noted_size = 0;
        return given;
}

int64_t test_ms_since(resha_instant t)
{
        return (resha_now().ns - t.ns) / 1000000;
}

void test_child(int (*fn)(void *arg), void *arg, struct test_child *c)
{
        int p[2];
        size_t have = 0;
        ssize_t n;

        if (audit_cannot)
                audit_cannot("it forks");
        fflush(NULL);
        if (pipe(p) < 0)
                test_fail(TEST_AT, "pipe: %m");
        pid_t pid = fork();
        if (pid < 0)
                test_fail(TEST_AT, "fork: %m");
        if (pid == 0) {
                close(p[0]);
                dup2(p[1], 1);
                dup2(p[1], 2);
                close(p[1]);
                alarm(60);
                int rc = fn(arg);
                fflush(NULL);
                _exit(rc);
        }
        close(p[1]);
        while (have < sizeof c->text - 1 && (n = read(p[0], c->text + have, sizeof c->text - 1 - have)) > 0)
                have += (size_t)n;
        c->text[have] = '\0';
        close(p[0]);
        while (waitpid(pid, &c->status, 0) < 0 && errno == EINTR)
                ;
}

/* ---- main ---- */

static unsigned open_fds(void)
{
        DIR *d = opendir("/proc/self/fd");
        unsigned n = 0;

        if (!d)
                return 0;
        while (readdir(d))
                n++;
        closedir(d);
        return n;
}

/* The test itself, with what must be the same before and after. */
static void run_here(const struct test *t)
{
        unsigned fds = open_fds();

        current = t->name;
        if (rs_alloc_watch)
                rs_alloc_watch(true);
        int64_t live = rs_alloc_live ? rs_alloc_live() : 0;
        if (audit_test)
                audit_test(t);
        else
                t->fn();
        if (rs_alloc_live && !audit_test && rs_alloc_live() != live)
                test_fail(t->file, 0, "%" PRId64 " allocations were not released", rs_alloc_live() - live);
        if (open_fds() != fds)
                test_fail(t->file, 0, "%u descriptors are open, %u before the test", open_fds(), fds);
}

static int run_in_child(const struct test *t)
{
        const char *seconds = getenv("RESHA_TEST_TIMEOUT");
        int status;

        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0) {
                perror("fork");
                return 1;
        }
        if (pid == 0) {
                alarm(seconds ? (unsigned)strtoul(seconds, NULL, 10) : DEFAULT_TIMEOUT);
                run_here(t);
                exit(0);
        }
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (WIFSIGNALED(status)) {
                fprintf(stderr, "%s: %s: killed by signal %d (%s)\n", t->file, t->name, WTERMSIG(status),
                        WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
                return 1;
        }
        if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != EXIT_SKIPPED)
                fprintf(stderr, "%s: %s: failed (exit %d)\n", t->file, t->name, WEXITSTATUS(status));
        return WEXITSTATUS(status);
}

/* 2: is one of the names; 1: contains one, or there are none; 0: no. */
static int matches(const struct test *t, char **names)
{
        int best = !*names;

        for (; *names; names++)
                if (strcmp(t->name, *names) == 0)
                        return 2;
                else if (strstr(t->name, *names))
                        best = 1;
        return best;
}

static int does_nothing(void *arg)
{
        (void)arg;
        return 0;
}

/* Where the kernel, or who guards it, does not let us have the backend, there is nothing to test. */
static bool backend_missing(void)
{
        resha_error e = { 0 };

        if (strcmp(test_backend(), "uring") != 0 ||
            resha_run(does_nothing, NULL, &(resha_run_opts){ .backend = "uring", .ret_error = &e }) == 0)
                return false;
        printf("skipped: %s\n", e.text);
        return true;
}

int main(int argc, char **argv)
{
        unsigned passed = 0, failed = 0, skipped = 0;
        bool list = false, here = false;
        int opt, want = 1;

        while ((opt = getopt(argc, argv, "lvd")) != -1)
                if (opt == 'l')
                        list = true;
                else if (opt == 'v')
                        verbose = true;
                else if (opt == 'd')
                        here = true;
                else
                        return 2;
        if (!list && backend_missing())
                return EXIT_SKIPPED;
        if (audit_setup)
                audit_setup();
        for (struct test *t = first; t; t = t->next)
                if (matches(t, argv + optind) > want)
                        want = 2;
        for (struct test *t = first; t; t = t->next) {
                if (matches(t, argv + optind) < want)
                        continue;
                if (list) {
                        puts(t->name);
                        continue;
                }
                int rc = here ? (run_here(t), 0) : run_in_child(t);
                if (verbose)
                        printf("%s: %s\n", t->name, rc == 0 ? "passed" : rc == EXIT_SKIPPED ? "skipped" : "FAILED");
                passed += rc == 0;
                skipped += rc == EXIT_SKIPPED;
                failed += rc != 0 && rc != EXIT_SKIPPED;
        }
        if (list)
                return 0;
        if (audit_summary)
                audit_summary();
        printf("%u passed, %u failed", passed, failed);
        if (skipped)
                printf(", %u skipped", skipped);
        putchar('\n');
        return failed || passed + skipped == 0;
}
