# SPDX-License-Identifier: MIT
"""Starting programs and waiting for them, against posix_spawn() and waitid(). All of a round is on one core, so that
the wall clock has the work of both sides in it, and the rate is its inverse."""
import json
import os
import subprocess

from driver import pairs

FULL, SHORT = 2000, 100
QUESTIONS = {"process": 1, "process-pipes": 2}  # figure: what the programs call PIPES
BACKENDS = ["epoll", "uring"]


def once(bench, program, pipes, backend=""):
    at = os.path.join(bench.build, "bench")
    command = [os.path.join(at, program), os.path.join(at, "process-nothing"),
               str(SHORT if bench.smoke else FULL), str(pipes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True,
                          env={**os.environ, "RESHA_BACKEND": backend} if backend else None,
                          preexec_fn=pairs.pin(bench.core))
    return json.loads(done.stdout)


def ask(bench, name):
    runs = {b: lambda b=b: once(bench, "process-spawn", QUESTIONS[name], b) for b in BACKENDS}
    runs["peer"] = lambda: once(bench, "peer-posix_spawn", QUESTIONS[name])
    results = pairs.in_turns(bench.rounds or 11, runs, bench.progress(name))
    figures = {key: {who: [r[key] / 1000 for r in of] for who, of in results.items()}
               for key in ("wall_ns", "with_children_ns", "cpu_ns")}
    wall = figures["wall_ns"]
    for b in BACKENDS:
        result = {"unit": "us", "rounds": len(wall[b]), "ours": pairs.summary(wall[b]),
                  "peer": {"name": "posix_spawn", **pairs.summary(wall["peer"])},
                  **pairs.paired(wall[b], wall["peer"])}
        for key, label in (("with_children_ns", "processor_time"), ("cpu_ns", "own_processor_time")):
            of = figures[key]
            result[label] = {"ours": pairs.summary(of[b]), "peer": pairs.summary(of["peer"]),
                             **pairs.paired(of[b], of["peer"])}
        bench.report(f"{name}-{b}", result, result["ratio"])


def run(bench):
    for name in QUESTIONS:
        ask(bench, name)
