/* SPDX-License-Identifier: MIT */
#ifndef TEST_H
#define TEST_H

/* The tests' own library: tests register themselves, each runs in a process of its own, a failed comparison prints
 * both sides.
 *
 *     TEST(mutex_unlock_by_a_stranger) { ... }             plain function
 *     TASK(sleep_of_zero_yields_once)  { ...; return 0; }  body of a main task, run on the backend under test; must
 *                                                          return 0 or more
 *
 * The backend under test is $RESHA_TEST_BACKEND, else "sim:0": the simulated world of seed 0, where the clock is
 * virtual. A test that needs the exact times of the virtual clock says SIM_ONLY(), and is skipped elsewhere. After
 * each test the allocations (where the internals are linked) and the open descriptors must be what they were. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <resha/resha.h>

#include "sanitized.h"

struct test {
        const char *name, *file;
        void (*fn)(void);
        struct test *next;
};

void test_register(struct test *t);

#define TEST(n) \
        static void test_##n(void); \
        __attribute__((constructor)) static void test_register_##n(void) \
        { \
                static struct test t = { #n, __FILE__, test_##n, NULL }; \
                test_register(&t); \
        } \
        static void test_##n(void)

#define TASK(n) \
        static int task_##n(void *unused); \
        TEST(n) \
        { \
                RUN(task_##n, NULL); \
        } \
        static int task_##n(__attribute__((unused)) void *unused)

/* fn(arg) as main task on the backend under test; its failure is the test's. */
#define RUN(fn, arg) test_run((fn), (arg), TEST_AT)

/* The result of resha_run() there, with options of the test's own (backend is set here; NULL: none). */
int test_run_opts(resha_fn *fn, void *arg, const resha_run_opts *opts);

/* In the simulated worlds of seeds 0..n-1, where ready tasks come in any order. A failure names its seed. */
#define RUN_SEEDS(fn, arg, n) test_run_seeds((fn), (arg), (n), TEST_AT)

/* The backend under test, "sim:0", "epoll"; whether its clock is virtual. */
const char *test_backend(void);
bool test_is_sim(void);

/* What failures of this test say behind its name, as " (seed 7)": valid until it is set again; "" for nothing. */
void test_context(const char *text);

/* Ends the test as skipped. */
void test_skip(const char *why) __attribute__((noreturn));
#define SIM_ONLY() \
        do { \
                if (!test_is_sim()) \
                        test_skip("needs the virtual clock"); \
        } while (0)

/* What a test saw, in order: note("b%d", 1) appends a word, notes() gives all words since the last call, with a space
 * between them. */
void note(const char *format, ...) RESHA_PRINTF(1, 2);
const char *notes(void);

/* Runs fn(arg) in a child process, which ends with _exit(its result): how it ended, as waitpid(2) tells, and what it
 * wrote on stdout and stderr. */
struct test_child {
        int status;
        char text[8192];
};
void test_child(int (*fn)(void *arg), void *arg, struct test_child *ret_child);

/* How much longer times are on the real clock ($RESHA_TEST_STRETCH, else 10), where the machine may be busy with
 * something else for a while between two of them. 1 in the simulated world. */
int64_t test_stretch(void);

/* Milliseconds since t, rounded down, on the loop's clock. */
int64_t test_ms_since(resha_instant t);

#define TEST_AT __FILE__, __LINE__

#define ASSERT_TRUE(x) test_true(!!(x), #x, TEST_AT)
#define ASSERT_FALSE(x) test_true(!(x), "not (" #x ")", TEST_AT)
#define ASSERT_EQ(a, b) test_eq((intmax_t)(a), (intmax_t)(b), #a, #b, TEST_AT)
#define ASSERT_OK(rc) test_ok((intmax_t)(rc), #rc, TEST_AT)
#define ASSERT_STR(a, b) test_str((a), (b), #a, #b, TEST_AT)
#define ASSERT_PTR(a, b) test_ptr((a), (b), #a, #b, TEST_AT)
#define ASSERT_HAS(text, part) test_has((text), (part), #text, TEST_AT)
#define FAIL(...) test_fail(TEST_AT, __VA_ARGS__)

/* That ms milliseconds have passed since t: exactly, on the virtual clock; at least, on the real one. */
#define ASSERT_ELAPSED(t, ms) test_elapsed((t), (ms), TEST_AT)

/* Behind the macros. */
void test_run(resha_fn *fn, void *arg, const char *file, int line);
void test_run_seeds(resha_fn *fn, void *arg, unsigned n, const char *file, int line);
void test_true(bool ok, const char *text, const char *file, int line);
void test_eq(intmax_t a, intmax_t b, const char *a_text, const char *b_text, const char *file, int line);
void test_ok(intmax_t rc, const char *text, const char *file, int line);
void test_str(const char *a, const char *b, const char *a_text, const char *b_text, const char *file, int line);
void test_ptr(const void *a, const void *b, const char *a_text, const char *b_text, const char *file, int line);
void test_has(const char *text, const char *part, const char *expr, const char *file, int line);
void test_elapsed(resha_instant from, int64_t ms, const char *file, int line);
void test_fail(const char *file, int line, const char *format, ...) RESHA_PRINTF(3, 4) __attribute__((noreturn));

#endif
