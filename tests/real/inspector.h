/* SPDX-License-Identifier: MIT */
#ifndef INSPECTOR_H
#define INSPECTOR_H

/* For tests of the inspector: its clients. */

#include <pthread.h>

#include "common.h"

/* The socket of a process of the user with that number. */
void inspector_path(unsigned uid, int pid, char *ret_path, size_t size);

/* Connected to it; negative: an errno. */
int inspector_connect(unsigned uid, int pid);

/* What is answered to `line` (with its end), until the end of the answer, for resha_free(); NULL: no connection. */
char *inspector_ask(const char *line);

/* The same on another thread, while this task waits; of several at a time. */
struct asker {
        const char *line; /* NULL: it is asked already, by fd */
        int fd;
        char *text;
        pthread_t thread;
        bool done; /* atomic */
};
void asker_start(struct asker *a, const char *line);
void asker_wait(struct asker *a); /* by sleeping, in a task */
char *asker_text(const char *line);
void asker_start_rest(struct asker *a, int fd);
char *asker_rest(int fd); /* what is answered to one who has asked */

/* How often `part` is in the text; the number behind "key": in the line that has `part`, -1: there is none. */
size_t inspector_count(const char *text, const char *part);
long long inspector_number(const char *text, const char *part, const char *key);

/* The answer came to its end, and says so. */
void assert_whole(const char *text);

#define TEST_SANITIZED (TEST_ASAN || TEST_TSAN || TEST_VALGRIND)

/* A run that can be looked at. Its failure is the test's. */
void inspector_run(resha_fn *fn, void *arg);

#define INSPECTED(name) \
        static int inspected_##name(void *unused); \
        TEST(name) \
        { \
                inspector_run(inspected_##name, NULL); \
        } \
        static int inspected_##name(__attribute__((unused)) void *unused)

/* Tasks: for a long time; and one that looks at its loop, which must be the only one. */
int inspector_sleeps(void *arg);
int inspector_answers(void *arg);

#endif
