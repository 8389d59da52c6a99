# SPDX-License-Identifier: MIT
"""A map of small jobs over processes, against Python's ProcessPoolExecutor. Two processes beside the program, on all
processors: the wall clock counts."""
import json
import os
import subprocess
import sys

from driver import pairs

ITEMS, PROCESSES = 10000, 2


def once(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def run(bench):
    arguments = [str(ITEMS // 10 if bench.smoke else ITEMS), str(PROCESSES)]
    ours = os.path.join(bench.build, "bench", "process-map")
    peer = os.path.join(bench.folder, "peers", "process_pool.py")
    results = pairs.in_turns(bench.rounds or 7, {
        "ours": lambda: once([ours, *arguments]),
        "peer": lambda: once([sys.executable, "-B", peer, *arguments]),
    }, bench.progress("workers"))
    us = [r["wall_ns"] / 1000 for r in results["ours"]]
    for name, key, label in (("workers", "wall_ns", "chunks of 1"), ("workers-best", "best_ns", "its best chunks")):
        theirs = [r[key] / 1000 for r in results["peer"]]
        result = {"unit": "us", "rounds": len(us), "ours": pairs.summary(us),
                  "peer": {"name": f"ProcessPoolExecutor, {label}", **pairs.summary(theirs)},
                  **pairs.paired(us, theirs)}
        if name == "workers-best":
            result["best_chunks"] = [r["best_chunk"] for r in results["peer"]]
        bench.report(name, result, result["ratio"])
