/* SPDX-License-Identifier: MIT */
#ifndef TEST_SQLITE_COMMON_H
#define TEST_SQLITE_COMMON_H

/* What the tests of the SQLite library share. */

#include "test.h"

#include <resha/sqlite.h>

/* A path in a folder of this process, which is removed with all in it when the process ends. Static until called four
 * more times. */
const char *temp_path(const char *name);

/* Opens it, or fails the test. NULL: in memory. */
resha_sqlite *open_db(const char *path);

/* A statement without parameters, or fails the test. */
void run_sql(resha_sqlite *db, const char *sql);

/* The first value of the first row, or fails the test. */
int64_t one_int(resha_sqlite *db, const char *sql);

/* All rows as "1,a|2,NULL", in static memory. */
const char *all(resha_sqlite *db, const char *sql);

/* The text of the record of `rc`. */
const char *text_of(int rc);

/* Threads of this process. */
unsigned thread_count(void);
/* Waits until there are no more than that: a thread that was joined is listed for a moment more. Fails after a
 * minute. */
void threads_left(unsigned most);

#endif
