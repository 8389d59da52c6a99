# SPDX-License-Identifier: MIT
"""An empty job to a thread and back, on all processors: the wall clock counts. Against a bare loop with one in flight,
and against asyncio's to_thread()."""
import json
import os
import subprocess
import sys

from driver import pairs

JOBS, THEIRS = 64000, 6400


def once(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)["wall_ns"] / 1000


def run(bench):
    ours, bare = (os.path.join(bench.build, "bench", name) for name in ("hop", "peer-hop"))
    python = (sys.executable, "-B", os.path.join(bench.folder, "peers", "to_thread.py"))
    less = 10 if bench.smoke else 1
    jobs, theirs = str(JOBS // less), str(THEIRS // less)
    results = pairs.in_turns(bench.rounds or 11, {
        "one": lambda: once(ours, jobs, "1"),
        "bare": lambda: once(bare, jobs),
        "many": lambda: once(ours, jobs, "64"),
        "python": lambda: once(*python, theirs, "64"),
    }, bench.progress("hop"))
    for name, us, peer, label in (("hop-1", results["one"], results["bare"], "futex, eventfd, epoll"),
                                  ("hop-64", results["many"], results["python"], "asyncio.to_thread()")):
        result = {"unit": "us", "rounds": len(us), "ours": pairs.summary(us),
                  "peer": {"name": label, **pairs.summary(peer)}, **pairs.paired(us, peer)}
        bench.report(name, result, result["ratio"])
