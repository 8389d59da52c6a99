# SPDX-License-Identifier: MIT
"""Four heavy jobs as one task, as tasks, on threads, in processes, on two loops: the wall clock, against two bare
threads. Not pinned; on a machine of one processor there is nothing to gain for anybody."""
import json
import os
import subprocess

from driver import pairs

FULL, SHORT = 100_000_000, 1_000_000  # steps of each job
FORMS = ["task", "tasks", "threads", "processes", "loops"]


def once(bench, program, form):
    steps = SHORT if bench.smoke else FULL
    command = [os.path.join(bench.build, "bench", program), form, str(steps)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)["wall_ns"] * steps / 1e6  # of all four jobs, in ms


def run(bench):
    runs = {form: lambda form=form: once(bench, "exec-work", form) for form in FORMS}
    runs["one"] = lambda: once(bench, "peer-work", "1")
    runs["two"] = lambda: once(bench, "peer-work", "2")
    results = pairs.in_turns(bench.rounds or 11, runs, bench.progress("work"))
    bare = pairs.paired(results["one"], results["two"])["ratio"]
    for form in FORMS:
        pair = pairs.paired(results[form], results["two"])
        bench.report(f"work-{form}", {
            "unit": "ms", "rounds": len(results[form]), "ours": pairs.summary(results[form]),
            "peer": {"name": "two threads", **pairs.summary(results["two"])},
            "speed_up": pairs.paired(results["one"], results[form])["ratio"], "speed_up_of_peer": bare, **pair},
            pair["ratio"])
