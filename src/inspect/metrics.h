/* SPDX-License-Identifier: MIT */
#ifndef RS_METRICS_H
#define RS_METRICS_H

/* The figures of loops, gathered one after the other, then written as one text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rs_loop;
struct rs_metrics;

/* NULL: no memory. */
struct rs_metrics *rs_metrics_new(void);
void rs_metrics_free(struct rs_metrics *m);

/* The figures of a loop: on its thread, or, not `here`, by copies of its memory from another thread, of a loop that
 * lives until this returns: what its objects keep up to date when asked is then as it was when somebody asked last.
 * `here` it may stop when the system's clock has come to `until`, and goes on when it is called again, by copies as
 * well. True: that was all of this loop. */
bool rs_metrics_add(struct rs_metrics *m, struct rs_loop *l, bool here, int64_t until);

/* All that was gathered, with a NUL behind it, for resha_free(). 0; -ENOMEM, also of the gathering. [any thread] */
int rs_metrics_text(const struct rs_metrics *m, char **ret_text, size_t *ret_size);

#endif
