# SPDX-License-Identifier: MIT
"""bench/tree.c: how long `resha tree` takes with a program of 100,000 parked tasks, and how long that is held up.

Its longest pause is the processor time of its longest slice, as its inspector tells it: the wall clock, which is told
beside it, has the turns of other programs in it."""
import contextlib
import json
import os
import subprocess
import time

from . import pairs

TASKS, SMALL, ROUNDS = 100000, 5000, 7


@contextlib.contextmanager
def program(bench, tasks):
    p = subprocess.Popen([os.path.join(bench.build, "bench", "tree"), str(tasks)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    try:
        if p.stdout.readline() != f"parked {tasks}\n":
            raise RuntimeError("bench/tree did not start its tasks")
        yield p
    finally:
        p.stdin.close()
        p.wait()


def look(bench, p, *words):
    """What the command prints, and the most memory it had, in KiB."""
    command = [os.path.join(bench.build, "cli", "resha"), *words, str(p.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as c:
        text = c.stdout.read()
        _, status, usage = os.wait4(c.pid, 0)
        c.returncode = os.waitstatus_to_exitcode(status)
    if c.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {c.returncode}")
    return text, usage.ru_maxrss


def loop_of(bench, p):
    for line in look(bench, p, "ps", "--json")[0].splitlines():
        record = json.loads(line)
        if record["type"] == "loop":
            return record
    raise RuntimeError("no line of a loop")


def run(bench):
    tasks = SMALL if bench.smoke else TASKS
    times = []
    progress = bench.progress("tree")
    rounds = bench.rounds or ROUNDS
    with program(bench, tasks) as p:
        for i in range(rounds):
            start = time.monotonic()
            text, memory = look(bench, p, "tree")
            times.append(time.monotonic() - start)
            progress(i + 1, rounds)
            if f"{tasks:,}"[:-3] not in text or "more like these" not in text:
                raise RuntimeError(f"the tree is not that of {tasks} tasks:\n{text[:1000]}")
        told = loop_of(bench, p)
        p.stdin.close()
        late = json.loads(p.stdout.readline())["late_ns"]
    ours = pairs.summary(times)
    bench.report("tree", {"unit": "s", "tasks": tasks, "ours": ours, "peak_kib": memory}, ours["median"])
    pause = told.get("pause_cpu", told["pause"]) / 1e6
    bench.report("tree-pause", {"unit": "ms", "tasks": tasks, "wall_ms": told["pause"] / 1e6, "late_ms": late / 1e6},
                 pause)
