# SPDX-License-Identifier: MIT
"""Items through a channel from one loop to another, on two cores, against a channel of Go that two goroutines share,
GOMAXPROCS=2: the wall clock. With one place also against two bare threads that pass a word there and back. And
system calls for each item while both sides are busy, where strace is there."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from driver import core, pairs

ITEMS, SHORT = 5_000_000, 200_000
CAPACITIES = [1, 16, 64, 1024]
CALLS_OF = 64  # the capacity where they are counted


def once(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True,
                          env={**os.environ, "GOMAXPROCS": "2"})
    return json.loads(done.stdout)["wall_ns"]


def calls(program, items):
    """System calls of a whole run of that many items."""
    with tempfile.NamedTemporaryFile("r") as told:
        subprocess.run(["strace", "-f", "-c", "-o", told.name, program, str(items), str(CALLS_OF)],
                       stdout=subprocess.DEVNULL, check=True)
        total = re.search(r"^\s*100\.00\s+\S+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$", told.read(), re.MULTILINE)
    return int(total.group(1))


def ask(bench, name, ours, peer, label):
    results = pairs.in_turns(bench.rounds or 11, {"ours": lambda: once(ours), "peer": lambda: once(peer)},
                             bench.progress(name))
    pair = pairs.paired(results["ours"], results["peer"])
    bench.report(name, {
        "unit": "ns", "rounds": len(results["ours"]), "ours": pairs.summary(results["ours"]),
        "peer": {"name": label, **pairs.summary(results["peer"])}, **pair}, pair["ratio"])


def run(bench):
    go = core.build_peer(bench)
    ours, bare = (os.path.join(bench.build, "bench", name) for name in ("exec-channel", "peer-line"))
    items = SHORT if bench.smoke else ITEMS
    for capacity in CAPACITIES:
        arguments = [str(items), str(capacity)]
        ask(bench, f"channel-{capacity}", [ours, *arguments], [go, "channel", *arguments], "Go")
    ask(bench, "channel-1-line", [ours, str(items), "1"], [bare, str(items)], "a word there and back")
    if shutil.which("strace"):
        more = calls(ours, items) - calls(ours, items // 10)
        figure = max(0, more) / (items - items // 10)
        bench.report("channel-calls", {"unit": "calls", "rounds": 1, "capacity": CALLS_OF}, figure)
