# SPDX-License-Identifier: MIT
"""What the ring of events costs.

    ring-cost-off-NAME      instructions of an operation, ring off, more than the same program has without a ring
    ring-cost-coarse, -fine processor time of a yield with the ring on, to that with it off, in turns

A yield is a switch; `contended` has a wait and a wake-up beside it. Instructions are those of user space (callgrind),
of programs that differ in the files of core that know of the ring alone, in the simulated world, where the loop looks
around at every eighth switch and not by the clock: the same at each count, and more visits than other worlds have."""
import json
import os
import subprocess

from driver import core, instructions, pairs

COUNTED = {"yield": (64000, 256000), "contended": (20000, 80000)}  # fewer and more operations


def counted(bench, way, name):
    few, more = COUNTED[name]
    if bench.smoke:
        few, more = few // 10, more // 10

    def total(n):
        return instructions.total(bench.build, f"ring-{way}-{name}", [n], "sim:0")
    return (total(more) - total(few)) / ((more - few) * 1.1)


def off(bench):
    for name in COUNTED if instructions.available() else []:
        none, ours = counted(bench, "none", name), counted(bench, "off", name)
        bench.report(f"ring-cost-off-{name}", {"unit": "instructions", "off": round(ours, 2), "none": round(none, 2)},
                     ours - none)


def on(bench):
    program, full, short = core.QUESTIONS["yield"]
    command = core.ours(bench, program, short if bench.smoke else full)

    def once(how):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True,
                              env={**os.environ, "RESHA_TIMELINE": how}, preexec_fn=pairs.pin(bench.core))
        return json.loads(done.stdout)["cpu_ns"]
    ways = {how: lambda how=how: once(how) for how in ("0", "coarse", "1")}
    figures = pairs.in_turns(bench.rounds or 7, ways, bench.progress("ring-cost"))
    for how, name in (("coarse", "coarse"), ("1", "fine")):
        pair = pairs.paired(figures[how], figures["0"])
        bench.report(f"ring-cost-{name}", {"unit": "ns", "ours": pairs.summary(figures[how]), "peer": {
            "name": "off", **pairs.summary(figures["0"])}, **pair}, pair["ratio"])


def cost(bench):
    off(bench)
    on(bench)
