/* SPDX-License-Identifier: MIT */
#ifndef CLI_WAITS_H
#define CLI_WAITS_H

/* What tasks wait for, in words. All is safe for a terminal. */

#include "screen.h"
#include "snapshot.h"

/* "17", or "2.17" where there are several loops. */
void waits_add_id(const struct snapshot *s, uint32_t loop, int64_t id, struct text *t);

/* "17 fetch", or the number alone where nothing is known of it. */
void waits_add_task(const struct snapshot *s, const struct screen *screen, uint32_t loop, int64_t id, struct text *t);

/* How many wait at an object: "3", and "1,000+" where they were not counted to the end. "": not known. */
void waits_add_count(const struct object_row *o, struct text *t);

/* "mutex accounts, held by 18 transfer", "sleep, 1.2 s left", "http: answer (read 127.0.0.1:80)"; "" where it does
 * not wait. */
void waits_add(const struct snapshot *s, const struct screen *screen, const struct task_row *task, struct text *t);

/* "waits 3.2 s for ...", "runs", "is ready", with what it is about and whether it was cancelled. */
void waits_add_state(const struct snapshot *s, const struct screen *screen, const struct task_row *task,
                     struct text *t);

/* "17 fetch", of a row. */
void waits_add_row(const struct snapshot *s, const struct screen *screen, const struct task_row *task, struct text *t);

/* " (x.c:31)", or nothing where it is not known. */
void waits_add_place(const struct screen *screen, const char *site, struct text *t);

bool waits_is(const struct task_row *task, const char *state);

/* Whether it waits for other tasks to end. */
bool waits_for_ends(const struct task_row *task);

#endif
