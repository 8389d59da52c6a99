# SPDX-License-Identifier: MIT
"""Instructions for each operation, counted by callgrind: the same on a busy machine, so a test can guard them.

A program of bench/core runs twice, with few and with more operations; what the difference in operations cost is the
figure, and neither start nor end of the program is in it. System calls count as nothing."""
import os
import re
import shutil
import subprocess

# figure: the program, its arguments before and after the number of operations, fewer and more operations
QUESTIONS = {
    "yield": ("yield", [], [], 6400, 25600),
    "spawn-1": ("spawn", [1], [], 2000, 10000),
    "spawn-100": ("spawn", [100], [], 10000, 30000),
    "spawn-10000": ("spawn", [10000], [], 100000, 200000),
    "queue": ("queue", [], [], 5000, 20000),
    "rendezvous": ("rendezvous", [], [], 5000, 20000),
    "channel-one": ("channel", [1], [], 5000, 20000),
    "contended": ("contended", [], [], 5000, 20000),
    "condition": ("condition", [], [], 5000, 20000),
    "barrier": ("barrier", [], [], 6400, 25600),
    "limiter-1": ("limiter", [1], [], 10000, 40000),
    "limiter-4": ("limiter", [4], [], 10000, 40000),
    "timeout": ("timeout", [], [1000], 5000, 20000),
    "mutex": ("mutex", [], [], 10000, 40000),
    "semaphore": ("semaphore", [], [], 10000, 40000),
    "echo": ("echo", [], [], 200, 1000),
}
TOLERANCE = 1.05
COLLECTED = re.compile(r"Collected : (\d+)")


def available():
    return shutil.which("valgrind") is not None


def total(build, program, arguments, backend="epoll"):
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               os.path.join(build, "bench", "core-" + program), *map(str, arguments)]
    # On one backend everywhere: which is the default depends on the machine's kernel.
    env = dict(os.environ, RESHA_BACKEND=backend)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    m = COLLECTED.search(done.stderr)
    if done.returncode or not m:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return int(m[1])


def count(build, name):
    """Instructions for each operation. The programs warm up with a tenth of their operations."""
    program, before, after, few, more = QUESTIONS[name]
    low = total(build, program, [*before, few, *after])
    high = total(build, program, [*before, more, *after])
    return (high - low) / ((more - few) * 1.1)


def measured(bench, name):
    """For a report; None where they cannot be counted."""
    if not available() or name not in QUESTIONS:
        return None
    return round(count(bench.build, name), 1)
