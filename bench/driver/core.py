# SPDX-License-Identifier: MIT
"""bench/core against Go: the same question to both, in turns, on the same core, with one P."""
import json
import os
import subprocess

from driver import instructions, pairs

# figure: the C program, its arguments, those of a short run; a peer has the same arguments
QUESTIONS = {
    "yield": ("yield", [20000000], [1000000]),
    "spawn-1": ("spawn", [1, 4000000], [1, 200000]),
    "spawn-100": ("spawn", [100, 4000000], [100, 200000]),
    "spawn-10000": ("spawn", [10000, 4000000], [10000, 200000]),
    "queue": ("queue", [10000000], [500000]),
    "rendezvous": ("rendezvous", [10000000], [500000]),
    "contended": ("contended", [10000000], [500000]),
    "timeout": ("timeout", [4000000, 100000], [200000, 100000]),
    "fire": ("fire", [2000000, 1000], [100000, 1000]),
    "mutex": ("mutex", [20000000], [1000000]),
}
PTHREADS = ["mutex"]  # the peer is the program peer-NAME
ALONE = {
    "semaphore": ("semaphore", [20000000], [1000000]),
    "echo": ("echo", [100000], [5000]),
}


def build_peer(bench):
    """Path of the Go peer. Needs no network: there are no modules to fetch."""
    target = os.path.join(bench.build, "bench", "peer-core")
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-mod=mod"}
    env.setdefault("GOCACHE", os.path.join(os.path.abspath(bench.build), "bench", "go-cache"))
    subprocess.run(["go", "build", "-o", os.path.abspath(target), "."], check=True, env=env,
                   preexec_fn=pairs.ordinary, timeout=300, cwd=os.path.join(bench.folder, "peers", "core"))
    return target


def once(bench, command):
    """The figures of one run; nanoseconds of processor time for each operation."""
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True,
                          env={**os.environ, "GOMAXPROCS": "1"}, preexec_fn=pairs.pin(bench.core))
    return json.loads(done.stdout)


def ours(bench, program, arguments):
    return [os.path.join(bench.build, "bench", "core-" + program), *map(str, arguments)]


def figures(bench, runs, key):
    return {name: [r[key] for r in results] for name, results in runs.items()}


def ask(bench, name, peer):
    program, full, short = {**QUESTIONS, **ALONE}[name]
    arguments = short if bench.smoke else full
    commands = {"ours": ours(bench, program, arguments)}
    if name in PTHREADS:
        commands["peer"] = [os.path.join(bench.build, "bench", "peer-" + program), *map(str, arguments)]
    elif name in QUESTIONS:
        commands["peer"] = [peer, program, *map(str, arguments)]
    runs = pairs.in_turns(bench.rounds or 11, {
        who: lambda command=command: once(bench, command) for who, command in commands.items()
    }, bench.progress(name))
    cpu, wall = figures(bench, runs, "cpu_ns"), figures(bench, runs, "wall_ns")
    result = {"unit": "ns", "rounds": len(cpu["ours"]), "ours": pairs.summary(cpu["ours"]),
              "instructions": instructions.measured(bench, name)}
    if name in QUESTIONS:
        result["peer"] = {"name": "pthread" if name in PTHREADS else "Go", **pairs.summary(cpu["peer"])}
        result.update(pairs.ratio(cpu["ours"], cpu["peer"]))
        result["wall_ratio"] = pairs.ratio(wall["ours"], wall["peer"])["ratio"]
    bench.report(name, result, result.get("ratio"))


def run(bench, names):
    peer = build_peer(bench)
    for name in names:
        ask(bench, name, peer)
