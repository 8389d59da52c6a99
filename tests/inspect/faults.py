#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""faults.py FOLDER [NAME...]: each program of FOLDER with its fault, and the command, the dump or the debug mode that
names it. RESHA_TEST_BACKEND says on which backend. Prints the line that it was, and "N passed, N failed"."""
import os
import pathlib
import signal
import sys
import traceback

import look

RESHA = os.environ["RESHA"]
FOLDER = pathlib.Path(sys.argv[1])
BACKEND = os.environ.get("RESHA_TEST_BACKEND", "epoll")
tests = []


def test(fn):
    tests.append(fn)
    return fn


def fault(name, **env):
    return look.program(FOLDER / name, BACKEND, **env)


def line_of(found, text):
    """The whole line in which a match begins."""
    begin = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", begin)
    return text[begin:end if end >= 0 else len(text)]


def shows(p, words, pattern):
    """`resha WORDS PID` prints a line with a match of the pattern, now or soon."""
    first, *rest = words.split()
    found, text = look.until(pattern, lambda: look.command(RESHA, first, p.pid, *rest))
    print(f"    $ resha {first} PID{''.join(' ' + w for w in rest)}\n    {line_of(found, text)}")
    return found


def says(p, what, pattern):
    """It prints that by itself."""
    found, text = look.until(pattern, p.said)
    print(f"    {what}\n    {line_of(found, text)}")
    return found


@test
def two_locks():
    with fault("two_locks") as p:
        shows(p, "tree", r"^! deadlock: 3 transfer → 4 transfer → 3: each waits for the next$")
        shows(p, "tree", r"─ 4 transfer .*waits .* for mutex, held by 3 transfer  ← DEADLOCK")
        says(p, "by itself:", r"waits in a circle, which only a deadline or a cancel can break: for a mutex held by "
                              r"task \"transfer\"")


@test
def unread_queue():
    with fault("unread_queue") as p:
        shows(p, "tree", r"^! queue is full: 4 of 4 items, 3 wait to put, 0 to get$")
        shows(p, "tree", r"─ 4 clerk \(unread_queue\.c:\d+\) waits .* for place in queue")


@test
def leaked_connection():
    with fault("leaked_connection", RESHA_DEBUG="1") as p:
        shows(p, "ps --handles", r"^ +30 +stream +\w+\+0x\w+ \(leaked_connection\.c:\d+\)")
        p.process.send_signal(signal.SIGTERM)
        says(p, "at its end, with RESHA_DEBUG=1:",
             r"left open: stream tcp .*, at \w+\+0x\w+ \(leaked_connection\.c:\d+\)")


@test
def no_descriptors():
    with fault("no_descriptors", RESHA_DUMP="USR1") as p:
        says(p, "by itself:", r"^the settings cannot be read: .*")
        shows(p, "ps --handles", r"^ +1\d\d +file +\w+\+0x\w+ \(no_descriptors\.c:\d+\)")
        shows(p, "ps", r"^note: the program has no file descriptor left: ")
        shows(p, "tree", r"─ 2 watch_settings \(no_descriptors\.c:\d+\) waits .* for sleep")
        shows(p, "stack", r"^ +watch_settings\+0x\w+ \(no_descriptors\.c:\d+\)$")
        shows(p, "stats", r"^resha_open_descriptors\S* 1\d\d$")
        p.process.send_signal(signal.SIGUSR1)
        says(p, "by itself, with RESHA_DUMP=USR1, on kill -USR1:",
             r"^ +watch_settings\+0x\w+ \(no_descriptors\.c:\d+\)$")


@test
def stuck_call():
    with fault("stuck_call") as p:
        shows(p, "tree", r"^! loop 1 is blocked for .* s by 3 load \(stuck_call\.c:\d+\): no other task of it runs$")
        shows(p, "stack", r"^ +\w+\+0x\w+ \(stuck_call\.c:\d+\)$")
    with fault("stuck_call", RESHA_DUMP="USR1", RESHA_BLOCKED="0") as p:
        look.until(r"\bload\b", lambda: look.command(RESHA, "ps", p.pid))  # the signal is handled by now
        p.process.send_signal(signal.SIGUSR1)
        says(p, "by itself, with RESHA_DUMP=USR1, on kill -USR1:", r"\w+\+0x\w+ \(stuck_call\.c:\d+\)")


@test
def busy_loop():
    with fault("busy_loop") as p:
        shows(p, "top -n 1", r"search")
        shows(p, "stack", r"^ +search\+0x\w+ \(busy_loop\.c:\d+\)$")


@test
def ignored_cancel():
    with fault("ignored_cancel", RESHA_DEBUG="1") as p:
        shows(p, "ps", r"^! 2 stubborn \(ignored_cancel\.c:\d+\) goes on though it was cancelled: ")
        says(p, "by itself, with RESHA_DEBUG=1:", r"\"stubborn\" .*goes on although 10 waits said that it is cancelled")


@test
def lost_wakeup():
    with fault("lost_wakeup") as p:
        shows(p, "tree", r"─ 3 read_lines \(lost_wakeup\.c:\d+\) waits .* for descriptor \d+ to be readable$")


@test
def closed_descriptor():
    with fault("closed_descriptor") as p:
        shows(p, "tree", r"─ 3 wait_for_more .* waits .* for descriptor \d+ to be readable, which is closed$")


@test
def pool_exhausted():
    with fault("pool_exhausted") as p:
        shows(p, "tree", r"^! pool is used up: mail: 2 of 2 threads are taken, 1 job waits for one$")
        shows(p, "stats", r"^resha_pool_\w+\{.*mail.*\} ")


@test
def slow_host():
    with fault("slow_host") as p:
        line = r"─ %d fetch \(slow_host\.c:\d+\) waits .* in http GET 127\.0\.0\.1:\d+: waits for %s \("
        shows(p, "tree", line % (6, "a place of the host"))
        shows(p, "tree", line % (2, "the answer"))


@test
def deep_stack():
    with fault("deep_stack") as p:
        shows(p, "ps", r"^! 2 walk_tree \(deep_stack\.c:\d+\) has used 1\d\d kB of its stack of 196 kB$")
        shows(p, "ps --places", r"1\d\d kB  .*deep_stack\.c:\d+ +walk_tree")


def main():
    failed = passed = 0
    if BACKEND == "uring" and not look.have_uring(FOLDER / "two_locks"):
        print("skipped: no io_uring")
        return 77
    for fn in tests:
        if sys.argv[2:] and fn.__name__ not in sys.argv[2:]:
            continue
        print(f"{fn.__name__}:", flush=True)
        try:
            fn()
            passed += 1
        except Exception:  # noqa: one failed test does not end the others
            failed += 1
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main())
