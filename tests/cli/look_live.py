#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""look_live.py [NAME...]: resha ps, tree, top, stack, trace and stats with running programs (looked.c)."""
import contextlib
import json
import os
import re
import subprocess
import sys

from harness import RESHA, Skip, environment, equal, has, main, matches, run, test, wait_for

LOOKED = os.environ["LOOKED"]


@contextlib.contextmanager
def looked(mode, lines=1, **env):
    """A program that is as the mode says."""
    p = subprocess.Popen([LOOKED, mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=environment(**env))
    try:
        for _ in range(lines):
            equal(p.stdout.readline(), "ready\n")
        yield p
    finally:
        p.stdin.close()
        equal(p.wait(timeout=60), 0)
        p.stdout.close()


def look(*args):
    r = run(*args)
    equal((args, r.code, r.err), (args, 0, ""))
    return r.out


@test
def a_deadlock_is_named_at_the_top():
    with looked("deadlock") as p:
        tree = look("tree", p.pid)
        matches(tree.splitlines()[1], r"^! deadlock: \d transfer → \d transfer → \d: each waits for the next$")
        equal(tree.count("← DEADLOCK"), 2)
        matches(tree, r"(?m)^ +[├└]─ 2 transfer \(\S*looked.c:\d+\) waits [\d.]+ s for mutex.*, held by 3 transfer")
        matches(look("ps", p.pid),
                r"(?m)^ +2  transfer  \S*looked.c:\d+  DEADLOCK +[\d.]+ s  mutex.*held by 3 transfer")
        matches(look("stack", p.pid, "2"), r"(?m)^    transfer\+0x[0-9a-f]+ \(\S*looked.c:\d+\)$")


@test
def many_are_told_of_once():
    with looked("many") as p:
        tree = look("tree", p.pid)
        matches(tree, r"├─ \.\.\. 4,99\d more like these|└─ \.\.\. 4,99\d more like these")
        matches(tree, r"scope: (9 m \d+ s|10 m 0 s) left")
        has(tree, "evil?[2J")
        ps = look("ps", p.pid)
        matches(ps, r"5,000 ×  wait_for_event +\S*looked.c:\d+  waits +[\d.]+ (s|ms) +9 m 5\d s  event")
        equal(len(re.findall(r"(?m)^ +\d+  wait_for_event ", look("ps", p.pid, "--all").split("\nplaces")[0])), 5000)
        records = [json.loads(line) for line in look("ps", p.pid, "--json").splitlines()]
        equal(len([r for r in records if r["type"] == "task"]), 5002)
        equal(records[-1], {"type": "end", "ok": True})


@test
def a_blocked_loop_is_looked_at_from_outside():
    with looked("blocked") as p:
        tree = look("tree", p.pid)
        matches(tree, r"(?m)^! loop 1 is blocked for [\d.]+ s by \d+ grind \(\S*looked.c:\d+\)")
        matches(tree, r"(?m)^    block_the_thread\+0x[0-9a-f]+ \(\S*looked.c:\d+\)$")
        has(tree, "BLOCKED")
        matches(look("ps"), rf"(?m)^ *{p.pid}  \S+ .* 1 BLOCKED$")
        has(look("stack", p.pid), "block_the_thread+0x")


@test
def loops_are_told_apart():
    with looked("loops", lines=2) as p:
        tree = look("tree", p.pid)
        numbers = re.findall(r"(?m)^loop (\d+) ", tree)
        equal(len(numbers), 2)
        for n in numbers:
            has(tree, f"─ {n}.1 main")
            stack = look("stack", p.pid, f"{n}.1").splitlines()
            matches(stack[0], r": 1 of 2 loops, 1 task$")
            matches(stack[2], rf"^{n}\.1 main waits ")
        r = run("stack", p.pid, "1")
        equal(r.code, 2)
        has(r.err, "task 1 is in several loops: write LOOP.1")


@test
def top_shows_who_has_the_time():
    with looked("busy") as p:
        def seen():
            return re.search(r"(?m)^ +(9\d|100) %.* spin ", look("top", p.pid, "-n", "1", "-d", "300ms"))
        wait_for(seen)
        matches(look("top", p.pid, "-n", "2", "-d", "100ms"), r"(?m)^ +1 +(\d\d|100) %")


@test
def stats_are_in_the_format_of_prometheus():
    with looked("deadlock") as p:
        text = look("stats", p.pid)
        matches(text, r'(?m)^resha_tasks\{loop="1"\} 3$')
        for line in text.splitlines():
            matches(line, r'^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [-+.\deInf]+)$')


@test
def a_trace_can_be_opened():
    with looked("deadlock") as p:
        r = run("trace", p.pid, "-o", "t.json", "-t", "100ms")
        equal((r.code, r.out), (0, ""))
        has(r.err, "t.json: ")
        with open("t.json", encoding="utf-8") as f:
            trace = json.load(f)
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        names = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"]
        assert any("transfer" in name for name in names), names


@test
def a_trace_says_what_is_not_in_it():
    with looked("blocked") as p:
        r = run("trace", p.pid, "-o", "t.json", "-t", "50ms")
        says = f"loop 1 is blocked: nothing of it is in the trace; resha stack {p.pid} shows where"
        equal((r.code, r.out), (0, ""))
        equal(r.err.splitlines()[1], f"resha trace: {says}")
        with open("t.json", encoding="utf-8") as f:
            events = json.load(f)
        equal([e["args"]["left_out"] for e in events if e["name"] == "note"], [says])
        equal(run("trace", p.pid, "-o", "-", "-t", "50ms").err, f"resha trace: {says}\n")


@test
def programs_are_listed_and_gone():
    with looked("many") as p:
        records = [json.loads(line) for line in look("top", p.pid, "--json", "-n", "1", "-d", "10ms").splitlines()]
        equal([r["tasks"] for r in records if r["type"] == "loop"], [5002])
        equal([r for r in records if r["type"] == "task"], [])  # a list of programs asks for loops alone
        matches(look("ps"), rf"(?m)^ *{p.pid}  \S+ +1  5,002 ")
    assert not re.search(rf"(?m)^ *{p.pid} ", look("ps"))
    equal(run("tree", p.pid).code, 4)


@test
def off_means_off():
    with looked("deadlock", RESHA_INSPECT="0") as p:
        r = run("tree", p.pid)
        equal((r.code, r.out), (5, ""))
        has(r.err, f"process {p.pid} ({os.path.basename(LOOKED)[:15]}) has no inspector")


@test
def other_users_get_nothing():
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    with looked("many") as p:
        try:
            r = subprocess.run([RESHA, "ps", str(p.pid)], user=65534, capture_output=True, text=True, check=False)
        except PermissionError as e:
            raise Skip("other users cannot run the command here") from e
        equal((r.returncode, r.stdout), (6, ""))
        listed = subprocess.run([RESHA, "ps"], user=65534, capture_output=True, text=True, check=True)
        assert str(p.pid) not in listed.stdout, listed.stdout


if __name__ == "__main__":
    sys.exit(main())
