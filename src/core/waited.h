/* SPDX-License-Identifier: MIT */
#ifndef RS_WAITED_H
#define RS_WAITED_H

/* What there is to say of a wait, and of the object that it is for, to who looks at the task from outside: each kind of
 * wait says it itself, by a function that reads all memory with the reader that it is given. */

#include "base/reader.h"
#include "core/task.h"

enum { RS_WAITED_TEXT = 128, RS_WAITED_COUNT = 1000 /* waiters are counted to that */ };

/* All zero: nothing. */
struct rs_waited {
        char detail[RS_WAITED_TEXT]; /* of the wait: "descriptor 7 to 127.0.0.1:80" */
        int64_t due;                 /* by the loop's clock: when it is over by itself; 0: not known */
        const char *kind;            /* of an object that others may wait for, too; static. NULL: none */
        char state[RS_WAITED_TEXT];  /* of that: "10 of 10 items" */
        const struct rs_task *owner; /* who holds it, or NULL; if it still has that mark */
        uint64_t owner_mark;
        size_t limit, held; /* limit 0: no such thing */
        size_t waiting;     /* how many wait for it, RS_WAITED_COUNT: or more */
};

struct rs_waits {
        /* Waits that have this cancel function, or are for whom: what tells them from others. */
        void (*cancel)(struct rs_wait *w);
        const struct rs_whom *whom;
        bool shared; /* other threads change the object: it is read by copies that the kernel makes */
        /* at: where the wait lies, w: a copy of it. */
        void (*see)(const struct rs_reader *r, const struct rs_wait *at, const struct rs_wait *w,
                    struct rs_waited *ret);
};

extern const struct rs_waits rs_operation_waits, rs_handle_waits, rs_handles_waits;
extern const struct rs_waits rs_join_waits, rs_drain_waits, rs_place_waits;

/* How many stand in a line of the object of w, RS_WAITED_COUNT at most. 0 for a w that is not the first in its own
 * line: objects are told of with the wait that is, and each of thousands that counted them all would take long. */
size_t rs_waited_count(const struct rs_reader *r, const struct rs_wait *w, const struct rs_list *line);

#endif
