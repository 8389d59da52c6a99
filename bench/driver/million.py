# SPDX-License-Identifier: MIT
"""bench/million.c: a million sleeping tasks at default settings, and the limit where guards cost mappings."""
import json
import os
import subprocess

TASKS, SHORT = 1000000, 50000
NEEDED = ["vm.max_map_count", "Linux 6.13"]  # in the error at the limit: what to raise, or what to run on


def once(bench, tasks, **environment):
    command = [os.path.join(bench.build, "bench", "million"), str(tasks)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **environment})
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}")
    return json.loads(done.stdout)


def default(bench):
    """On a kernel with light guards all sleep; on an older one the limit is met as with the others forced."""
    tasks = SHORT if bench.smoke else TASKS
    r = once(bench, tasks)
    all_slept = r["woken"] == tasks
    if not all_slept:
        r["note"] = "this kernel has no light guards"
    bench.report("million", {"unit": "bytes", "tasks": tasks, **r}, r["bytes_each"] if all_slept else None)


def limited(bench):
    """All that were started are joined, the program goes on (its exit code says so), and the error says what to do."""
    r = once(bench, TASKS, RESHA_GUARDS="mprotect")
    met = r["started"] < TASKS
    said = all(words in r["error"] for words in NEEDED)
    r["within"] = r["woken"] + r["cancelled"] == r["started"] and (said or not met)
    bench.report("million-limit", {"unit": "tasks", "tasks": TASKS, **r}, r["started"])


def run(bench):
    default(bench)
    limited(bench)
