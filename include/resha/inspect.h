/* SPDX-License-Identifier: MIT */
#ifndef RESHA_INSPECT_H
#define RESHA_INSPECT_H

/* Seeing inside a running program.
 *
 * From outside: a process with a run whose options say `inspect`, or that has RESHA_INSPECT=1 in its environment, has a
 * thread "resha-inspect" that answers `resha ps PID`, `tree`, `top`, `stack` and `trace`. It listens at a socket that
 * only the user who runs the process, and root, can reach: PID.sock in /run/user/UID/resha, or in /tmp/resha-UID where
 * there is no /run/user/UID. Where that cannot be made as private as it must be there is none, which is reported, and
 * the run goes on. It is off unless asked for: a library opens no door by itself.
 *
 * A loop is looked at by itself, in slices of at most 5 ms, between which its tasks run; one that does not get round to
 * that within 200 ms, because a task blocks it, is looked at from the inspector's thread, by copies of what its memory
 * says at that moment. The protocol is one of lines of JSON, see docs/design/0090-inspector.md.
 *
 * From inside: */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* Writes all tasks of the running loop to a descriptor, as text: of each its name and place of spawn, what it does or
 * waits for and who holds that, since when, until when, and its stack with functions and lines (docs/debugging.md). It
 * blocks the loop for as long as that takes; an inspector is not needed. Works in the simulated world, in report sinks,
 * and on a task's stack that is nearly full. 0; -EPERM outside a loop; -ENOMEM; what write(2) fails with, -EAGAIN for a
 * descriptor that does not block and is full: then a part was written. [loop] */
RESHA_API int resha_dump(int fd);

RESHA_END_DECLS
#endif
