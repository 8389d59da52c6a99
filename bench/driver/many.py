# SPDX-License-Identifier: MIT
"""Many tasks at once: gather against asyncio's, and a group of many that one failure ends."""
import math
import statistics
import sys

from driver import core, instructions, pairs

STORM = [12500, 25000, 50000, 100000, 200000]
COUNTED = [2000, 4000, 8000, 16000]  # under callgrind


def gather(bench):
    """A process for each round, for the first gather of a process is one of the two figures."""
    arguments = [10000, 3 if bench.smoke else 20]
    peer = [sys.executable, "-B", bench.folder + "/peers/asyncio_gather.py", *map(str, arguments)]
    runs = pairs.in_turns(bench.rounds or 7, {
        "ours": lambda: core.once(bench, core.ours(bench, "gather", arguments)),
        "peer": lambda: core.once(bench, peer),
    }, bench.progress("gather"))
    for name in ("cold", "warm"):
        us = core.figures(bench, runs, name + "_us")
        result = {"unit": "us", "rounds": len(us["ours"]), "ours": pairs.summary(us["ours"]),
                  "peer": {"name": "asyncio", **pairs.summary(us["peer"])}}
        # How many times as fast: the bound is one from below, so it is written as a ratio.
        result.update(pairs.ratio(us["ours"], us["peer"]))
        bench.report("gather-" + name, result, result["ratio"])


def slope(points):
    """The exponent p of the best fit of log y = p log(x log x) + c: 1 is n log n."""
    xs = [math.log(n * math.log2(n)) for n, _ in points]
    ys = [math.log(y) for _, y in points]
    x, y = statistics.mean(xs), statistics.mean(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


def storm(bench):
    """How the end of a group of n tasks grows, each with a timeout of its own, when one fails: in instructions, which
    no cache changes; and the processor time that each task takes."""
    sizes = STORM[:3] if bench.smoke else STORM
    runs = pairs.in_turns(bench.rounds or 5, {
        n: lambda n=n: core.once(bench, core.ours(bench, "storm", [n, 1 if bench.smoke else 3])) for n in sizes
    }, bench.progress("storm"))
    each = {n: statistics.median(r["cpu_ns"] for r in results) for n, results in runs.items()}
    result = {"unit": "ns", "ours": pairs.summary([r["cpu_ns"] for r in runs[sizes[-2]]]), "tasks": sizes[-2],
              "each": each, "time_exponent": slope([(n, n * ns) for n, ns in each.items()])}
    if instructions.available():
        counts = {n: instructions.total(bench.build, "storm", [n, 1]) for n in COUNTED}
        result["exponent"] = slope(list(counts.items()))
    bench.report("storm", result, result.get("exponent"))


def run(bench):
    gather(bench)
    storm(bench)
