/* SPDX-License-Identifier: MIT */
/* All tasks as text: of each who it is, what it waits for, and its stack; from tasks, from outside of them, with a full
 * stack. */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <resha/inspect.h>

#include "core/core.h"
#include "test.h"

#if defined(__clang__)
#define FRAME __attribute__((noinline))
#else
#define FRAME __attribute__((noinline, noclone))
#endif

static volatile int after_call;

static void closep(FILE **f)
{
        if (*f)
                fclose(*f);
}

/* What is written by resha_dump(), with numbers of lines, offsets and addresses as N. */
static int text_of_dump(const char **ret_text)
{
        static char text[16384], raw[sizeof text];
        FILE *f RESHA_CLEANUP(closep) = tmpfile();
        char *end;
        size_t n = 0;

        if (!f)
                return -errno;
        int rc = resha_dump(fileno(f));
        if (rc < 0)
                return rc;
        rewind(f);
        raw[fread(raw, 1, sizeof text - 1, f)] = 0;
        for (const char *s = raw; *s && n < sizeof text - 1;) {
                bool number = (s[0] == ':' || s[0] == '+') && isdigit((unsigned char)s[1]);
                if (number || strncmp(s, " 0x", 3) == 0) {
                        text[n++] = *s;
                        text[n++] = 'N';
                        (void)strtoull(s + 1, &end, s[0] == ':' ? 10 : 16);
                        s = end;
                } else if (strncmp(s, "process ", 8) == 0) {
                        (void)strtol(s + 8, &end, 10);
                        s = end;
                } else {
                        text[n++] = *s++;
                }
        }
        text[n] = 0;
        *ret_text = text;
        return 0;
}

static FRAME int lock_both(resha_mutex *one, resha_mutex *other)
{
        int rc = resha_mutex_lock(one);

        if (rc == 0)
                rc = resha_yield();
        if (rc == 0)
                rc = resha_mutex_lock(other);
        after_call++;
        return rc;
}

static resha_mutex left, right;

static int first(void *arg)
{
        (void)arg;
        int rc = lock_both(&left, &right);
        after_call++;
        return rc;
}

static int second(void *arg)
{
        (void)arg;
        int rc = lock_both(&right, &left);
        after_call++;
        return rc;
}

static int sleeper(void *arg)
{
        (void)arg;
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_S(7));
        int rc = resha_sleep(RESHA_S(3600));
        after_call++;
        return resha_scope_end(&s, rc);
}

static FRAME int looks(void *arg)
{
        int rc = text_of_dump(arg);

        after_call++;
        return rc;
}

static int several(void *arg)
{
        RESHA_GROUP(g);
        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, first, NULL);
        resha_spawn(&g, second, NULL);
        resha_spawn(&g, sleeper, NULL);
        ASSERT_OK(resha_sleep(RESHA_S(2)));
        resha_spawn(&g, sleeper, NULL);
        ASSERT_OK(looks(arg));
        return 0;
}

static bool has_lines(void)
{
        return TEST_VALGRIND == 0 && !TEST_ASAN && !TEST_TSAN;
}

/* Each of these stands there, in this order. */
static void in_order(const char *text, const char *const *parts)
{
        const char *at = text;

        for (; *parts; parts++) {
                at = at ? strstr(at, *parts) : NULL;
                ASSERT_HAS(at ? at : text, *parts);
                at += strlen(*parts);
        }
}

TASK(dump_of_tasks_that_wait_for_each_other)
{
        const char *text;

        SIM_ONLY();
        left = right = (resha_mutex){ { 0 } };
        int rc = several(&text);
        static const char *const parts[] = { ", 5 tasks:\n\n",
                                             "task 1 \"main\": runs",
                                             "\ntask 2 \"first\" from ",
                                             ": waits for mutex N, held by task 3",
                                             "    resha_mutex_lock+N (",
                                             "\n    lock_both+N (",
                                             "\n    first+N (",
                                             "\n\ntask 3 \"second\" from ",
                                             ": waits for mutex N, held by task 2",
                                             "\n    lock_both+N (",
                                             "\n    second+N (",
                                             "\n\ntask 4 \"sleeper\" from ",
                                             ": waits for sleep, over in 3598.0 s",
                                             "\n    sleeper+N (",
                                             "\n\ntask 5 \"sleeper\" from ",
                                             ": has not started",
                                             NULL };
        in_order(text, parts);
        if (has_lines())
                ASSERT_HAS(text, "lock_both+N (dump.c:N)");
        return rc;
}

static int overdue(void *arg)
{
        (void)arg;
        RESHA_SCOPE(s);
        resha_timeout_begin(&s, RESHA_MS(5));
        int rc = resha_sleep(RESHA_MS(1));
        after_call++;
        return resha_scope_end(&s, rc);
}

TASK(dump_of_a_loop_that_was_blocked_says_what_is_past)
{
        const char *text;

        if (test_is_sim())
                test_skip("needs a clock that goes by itself");
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, overdue, NULL);
        ASSERT_OK(resha_yield());
        for (int64_t until = rs_now(rs_loop_current) + 10000000; rs_now(rs_loop_current) < until;) {}
        ASSERT_OK(looks(&text));
        static const char *const parts[] = { "\"overdue\" from ", ": waits for sleep, due ",
                                             " ms ago; for ",     "; deadline ",
                                             " ms ago\n",         NULL };
        in_order(text, parts);
        return resha_group_end(&g, 0);
}

/* ---- from elsewhere than a task with room ---- */

TEST(dump_outside_of_a_loop_is_refused)
{
        ASSERT_EQ(resha_dump(1), -EPERM);
}

TASK(dump_to_nowhere_says_why)
{
        ASSERT_EQ(resha_dump(-1), -EBADF);
        return 0;
}

static FRAME int fill(int (*fn)(void *arg), void *arg)
{
        const struct rs_loop *l = rs_loop_current;
        char block[1024];

        memset(block, 1, sizeof block);
        __asm__ volatile("" : : "r"(block) : "memory");
        int rc = block - (l->current->stack->base + l->stacks.guard) > 8 * 1024 ? fill(fn, arg) : fn(arg);
        __asm__ volatile("" : : "r"(block) : "memory");
        return rc;
}

TASK(dump_on_a_stack_that_is_nearly_full_says_so)
{
        const char *text;

        ASSERT_OK(fill(looks, &text));
        ASSERT_HAS(text, "task 1 \"main\": runs");
        ASSERT_HAS(text, "    looks+N (");
        ASSERT_HAS(text, "    fill+N (");
        ASSERT_HAS(text, "note: its stack is nearly full: at most 1");
        return 0;
}

static char told[16384];

static void sink(const resha_report *r, void *arg)
{
        const char *text;

        (void)r, (void)arg;
        if (text_of_dump(&text) == 0)
                snprintf(told, sizeof told, "%s", text);
}

static FRAME int reports(void *arg)
{
        (void)arg;
        int rc = resha_report_text(RESHA_REPORT_TASK, 0, "look");
        after_call++;
        return rc;
}

TEST(dump_in_the_report_sink_shows_who_reports)
{
        ASSERT_OK(test_run_opts(reports, NULL, &(resha_run_opts){ .report = sink }));
        ASSERT_HAS(told, "task 1 \"main\": runs");
        ASSERT_HAS(told, "    reports+N (");
}
