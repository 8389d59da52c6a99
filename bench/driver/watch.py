# SPDX-License-Identifier: MIT
"""The watchdog: what it costs, and that it says nothing false.

watch-cost asks programs of core with the watchdog on (250 ms) and off, in turns.

watch-echo is an hour of echoes, watched: a server that blocks nothing is never told to, whatever else the machine does.

A server on each backend, with the watchdog as resha_main() has it; they are loaded in turns, by few connections and by
many, small messages and large ones, and idle meanwhile. Neither server nor load is pinned. First of all a server that
does block must be reported: otherwise silence would mean nothing."""
import contextlib
import json
import os
import subprocess
import tempfile
import time

from driver import core, net, pairs

WORD = "the loop for"  # of every report about a block, while it lasts and once it is over
LOADS = [(50, 64), (1000, 64), (50, 16384), (1, 64)]  # connections, bytes of a message
TURN_MS, SHORT_MS = 10000, 300
BLOCKED_MS = 700
COSTS = ["yield", "spawn-100", "echo"]


def prepare():
    net.prepare(pairs.core())()
    os.sched_setaffinity(0, range(os.cpu_count() or 1))


@contextlib.contextmanager
def running(bench, mode, argument, backend):
    """A server: its process, its port, and the file that its reports go to."""
    with tempfile.TemporaryFile("w+") as reports, subprocess.Popen(
            [net.program(bench, "net-echo"), mode, str(argument)], stdout=subprocess.PIPE, stderr=reports, text=True,
            preexec_fn=prepare, env={**os.environ, "RESHA_BACKEND": backend}) as process:
        try:
            yield process, process.stdout.readline().strip(), reports
        finally:
            process.kill()


def load(bench, server, connections, size, ms):
    """Echoes."""
    process, port, _ = server
    command = [net.program(bench, "net-load"), "echo", port, str(process.pid), str(connections), str(size), str(ms)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          preexec_fn=prepare)
    if done.returncode or process.poll() is not None:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}{told(server)}")
    return json.loads(done.stdout)["echoes"]


def told(server):
    """What the server has written to stderr."""
    server[2].seek(0)
    return server[2].read()


def control(bench, backend):
    """A block must be seen."""
    with running(bench, "block", BLOCKED_MS, backend) as server:
        load(bench, server, 1, 64, 10)
        if WORD not in told(server):
            raise RuntimeError(f"{backend}: a server that blocks for {BLOCKED_MS} ms is not reported\n{told(server)}")


def cost(bench):
    """Processor time of an operation with the watchdog, to that without."""
    for name in COSTS:
        program, full, short = {**core.QUESTIONS, **core.ALONE}[name]
        command = core.ours(bench, program, short if bench.smoke else full)

        def once(limit, command=command):
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True,
                                  env={**os.environ, "RESHA_BLOCKED": limit}, preexec_fn=pairs.pin(bench.core))
            return json.loads(done.stdout)["cpu_ns"]
        ways = {"on": lambda once=once: once("250"), "off": lambda once=once: once("0")}
        figures = pairs.in_turns(bench.rounds or 11, ways, bench.progress(name))
        pair = pairs.paired(figures["on"], figures["off"])
        bench.report(f"watch-cost-{name}", {"unit": "ns", "ours": pairs.summary(figures["on"]), "peer": {
            "name": "off", **pairs.summary(figures["off"])}, **pair}, pair["ratio"])


def run(bench):
    for backend in net.OURS:
        control(bench, backend)
    seconds = 2 if bench.smoke else bench.seconds
    start, echoes, turns, highest = time.monotonic(), dict.fromkeys(net.OURS, 0), 0, 0.0
    with contextlib.ExitStack() as stack:
        servers = {b: stack.enter_context(running(bench, "echo", 32768, b)) for b in net.OURS}
        while time.monotonic() - start < seconds:
            backend, (connections, size) = net.OURS[turns % 2], LOADS[turns // 2 % len(LOADS)]
            echoes[backend] += load(bench, servers[backend], connections, size, SHORT_MS if bench.smoke else TURN_MS)
            turns, highest = turns + 1, max(highest, os.getloadavg()[0])
        false = {b: told(s) for b, s in servers.items()}
    reports = sum(text.count(WORD) for text in false.values())
    bench.report("watch-echo", {"unit": "reports", "seconds": round(time.monotonic() - start), "turns": turns,
                                "echoes": echoes, "highest_load": highest}, reports)
    if any(false.values()):
        raise RuntimeError("a server that blocks nothing reports:\n" + "\n".join(false.values()))
