# SPDX-License-Identifier: MIT
"""Servers of ours, bare loops and peers on one core, the same load on the other: in turns, a new server each time.

A server prints its port and is ended by a signal. What counts is its processor time, user and system, in a window that
net-load opens and closes by reading the server's clock; see net/load.c."""
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

from driver import pairs

# question: connections, bytes of a message, bytes of a buffer, whether other runtimes are asked, too
ECHOES = {
    "echo-50": (50, 64, 4096, True),
    "echo-1000": (1000, 64, 4096, True),
    "echo-10000": (10000, 64, 4096, False),
    "echo-16k": (50, 16384, 32768, False),
    "echo-16k-full": (50, 16384, 16384, False),
}
WINDOW_MS, SHORT_MS = 300, 50
STREAM_SIZE = 65536
IDLE = 10000
FILES = 20000
OURS = ["epoll", "uring"]
RAW = {"raw epoll": "epoll", "raw uring": "uring", "raw multishot": "uring_multishot"}
TRIED = {}  # {server: whether it can be had here}
CACHES = ["TCP ", "sock_inode_cache", "filp", "dentry", "ep_item", "eventpoll_epi", "eventpoll_pwq", "kmalloc-"]


class Skipped(Exception):
    """A server that cannot be had here; says why."""


def cores(bench):
    """The server's and the load's."""
    others = sorted(os.sched_getaffinity(0) - {bench.core})
    return bench.core, others[0] if others else bench.core


def prepare(core):
    def in_child():
        os.sched_setaffinity(0, {core})
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = FILES if hard == resource.RLIM_INFINITY else min(hard, FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return in_child


@contextlib.contextmanager
def running(bench, command, **environment):
    """A server: its process, and its port."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=prepare(cores(bench)[0]), env={**os.environ, **environment}) as process:
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise Skipped((process.stderr.read().strip().split("\n") or [""])[0] or f"exit {process.wait()}")
            yield process, port
            if process.poll() is not None:
                raise RuntimeError(f"{' '.join(command)}: ended with {process.returncode}\n{process.stderr.read()}")
        finally:
            process.kill()


def load(bench, client, mode, server, port, *arguments):
    command = [os.path.join(bench.build, "bench", client), mode, port, str(server.pid), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          preexec_fn=prepare(cores(bench)[1]))
    if done.returncode == 3:
        raise Skipped(done.stderr.strip())
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


# ---- the servers: {name: (command, environment)}; a missing one is told of, once ----

def program(bench, name):
    path = os.path.join(bench.build, "bench", name)
    return path if os.path.exists(path) else None


def bare(bench, mode, size):
    found = {}
    for name, file in RAW.items():
        path = program(bench, "peer-net-" + file)
        if path and (mode == "echo" or file != "uring_multishot"):
            found[name] = ([path, mode, str(size)], {})
    return found


def ours(bench, mode, size):
    return {name: ([program(bench, "net-echo"), mode, str(size)], {"RESHA_BACKEND": name}) for name in OURS}


def go_peer(bench):
    if not shutil.which("go"):
        return None
    target = os.path.abspath(os.path.join(bench.build, "bench", "peer-net-go"))
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-mod=mod"}
    env.setdefault("GOCACHE", os.path.join(os.path.abspath(bench.build), "bench", "go-cache"))
    subprocess.run(["go", "build", "-o", target, "."], check=True, env=env,
                   preexec_fn=pairs.ordinary, timeout=300, cwd=os.path.join(bench.folder, "peers", "net", "go"))
    return target


def python_with(module):
    """The first interpreter that has it."""
    for name in [sys.executable, "/usr/bin/python3"]:
        if subprocess.run([name, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
            return name
    return None


def runtimes(bench, size):
    found = {}
    go, libuv = go_peer(bench), program(bench, "peer-net-libuv")
    if go:
        found["Go"] = ([go, str(size)], {"GOMAXPROCS": "1"})
    if libuv:
        found["libuv"] = ([libuv, "echo", str(size)], {})
    script = os.path.join(bench.folder, "peers", "net", "asyncio_echo.py")
    for name in ["asyncio", "uvloop"]:
        interpreter = python_with(name)
        if interpreter:
            found[name] = ([interpreter, "-B", script, name], {})
    return found


def usable(bench, servers):
    """Those that start; a word about each of the others, once."""
    for name, (command, environment) in servers.items():
        if name in TRIED:
            continue
        try:
            with running(bench, command, **environment):
                TRIED[name] = True
        except Skipped as e:
            print(f"{name}: skipped: {e}", file=sys.stderr)
            TRIED[name] = False
    return {name: server for name, server in servers.items() if TRIED[name]}


def measured(bench, name, servers, mode, *arguments, client="net-load"):
    """{server: [what the client said, one for each round]}"""
    def once(server):
        command, environment = servers[server]
        with running(bench, command, **environment) as (process, port):
            return load(bench, client, mode, process, port, *arguments)
    return pairs.in_turns(bench.rounds or 11, {s: lambda s=s: once(s) for s in servers}, bench.progress(name))


# ---- the questions ----

def compare(bench, figure, unit, figures, one, other, **extra):
    pair = pairs.paired(figures[one], figures[other])
    bench.report(figure, {"unit": unit, "rounds": len(figures[one]), "ours": pairs.summary(figures[one]),
                          "peer": {"name": other, **pairs.summary(figures[other])}, **pair, **extra}, pair["ratio"])


def against_raw(bench, name, unit, figures, extra):
    """Each of our backends against the better bare loop, and the slower of ours against every other runtime."""
    medians = {server: statistics.median(values) for server, values in figures.items()}
    extra = {**extra, "medians": medians, "cores": cores(bench)}
    mine = [n for n in OURS if n in figures]
    better = min((n for n in RAW if n in figures), key=medians.get)
    for backend in mine:
        compare(bench, f"{name}-{backend}", unit, figures, backend, better, **extra)
    slower = max(mine, key=medians.get)
    for peer in figures:
        if peer not in mine and peer not in RAW:
            compare(bench, f"{name}-{peer.lower()}", unit, figures, slower, peer, ours_is=slower)


def echo(bench, name):
    connections, size, buffer, others = ECHOES[name]
    if bench.smoke:
        connections = min(connections, 100)
    servers = {**bare(bench, "echo", buffer), **ours(bench, "echo", buffer)}
    if others:
        servers.update(runtimes(bench, buffer))
    runs = measured(bench, name, usable(bench, servers), "echo", connections, size,
                    SHORT_MS if bench.smoke else WINDOW_MS)
    figures = {server: [r["cpu_ns"] for r in results] for server, results in runs.items()}
    rates = {server: round(1e9 / statistics.median(r["wall_ns"] for r in results)) for server, results in runs.items()}
    against_raw(bench, name, "ns", figures, {"connections": connections, "bytes": size, "echoes_a_second": rates})


def stream(bench):
    """A gigabyte in one direction, then in the other."""
    for mode, name in [("sink", "stream-1g"), ("source", "stream-1g-out")]:
        servers = usable(bench, {**bare(bench, mode, STREAM_SIZE), **ours(bench, mode, STREAM_SIZE)})
        runs = measured(bench, name, servers, mode, STREAM_SIZE)
        figures = {server: [r["cpu_ms"] for r in results] for server, results in runs.items()}
        against_raw(bench, name, "ms", figures, {"buffer": STREAM_SIZE})


def calls(bench):
    """System calls for each echo."""
    for name in ["echo-50", "echo-1000", "echo-10000"]:
        connections, size, buffer, _ = ECHOES[name]
        servers = usable(bench, {**bare(bench, "echo", buffer), **ours(bench, "echo", buffer)})
        try:
            runs = measured(bench, name, servers, "echo", min(connections, 100) if bench.smoke else connections,
                            size, SHORT_MS if bench.smoke else WINDOW_MS, "calls")
        except Skipped as e:
            print(f"calls: skipped: {e}", file=sys.stderr)
            return
        medians = {server: statistics.median(r["calls"] for r in results) for server, results in runs.items()}
        for backend in OURS:
            if backend in runs:
                bench.report(name.replace("echo", "calls") + "-" + backend,
                             {"unit": "calls", "ours": pairs.summary([r["calls"] for r in runs[backend]]),
                              "medians": medians}, medians[backend])


# ---- several loops ----

def pin_loops(pid, two):
    """The first loop has the process's first thread."""
    for thread in map(int, os.listdir(f"/proc/{pid}/task")):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="utf-8") as f:
            os.sched_setaffinity(thread, {two[f.read().startswith("loop-")]})


@contextlib.contextmanager
def loops_running(bench, backend, n, two):
    command = [program(bench, "net-echo"), "loops", "4096", str(n)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=prepare(two[0]),
                          env={**os.environ, "RESHA_BACKEND": backend}) as process:
        try:
            port = process.stdout.readline().strip()
            pin_loops(process.pid, two)
            yield process, port
        finally:
            process.kill()


def processor_time(pid):
    """Of all threads, in nanoseconds; by its clock, which counts what runs now, too."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def loops_once(bench, backend, together, connections, window):
    """Two loops, in one process or in one each, and two loads, whose connections are spread over both: a loop and a
    load on each of two cores. Processor time for each echo of all."""
    two = cores(bench)
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(loops_running(bench, backend, 2, two))] if together else [
            stack.enter_context(loops_running(bench, backend, 1, (core, core))) for core in two]
        pids, ports = [process.pid for process, _ in started], ",".join(port for _, port in started)
        loads = [stack.enter_context(subprocess.Popen(
            [program(bench, "net-load"), "echo-on", ports, str(pids[0]), str(connections), "64", str(window)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=prepare(core))) for core in two]
        for process in loads:
            process.stdout.readline()
        before = sum(map(processor_time, pids))
        for process in loads:
            print(file=process.stdin, flush=True)
        echoes = sum(json.loads(process.stdout.readline())["echoes"] for process in loads)
        return (sum(map(processor_time, pids)) - before) / echoes


def echo_loops(bench):
    connections, window = (50, SHORT_MS) if bench.smoke else (500, 600)
    two = cores(bench)
    if two[0] == two[1]:
        print("echo-loops: skipped: needs two processors", file=sys.stderr)
        return
    for backend in usable(bench, ours(bench, "echo", 4096)):
        figures = pairs.in_turns(bench.rounds or 11, {
            name: lambda together=together, backend=backend: loops_once(bench, backend, together, connections, window)
            for name, together in [("two loops", True), ("one loop, twice", False)]},
            bench.progress(f"echo-loops-{backend}"))
        compare(bench, f"echo-loops-{backend}", "ns", figures, "two loops", "one loop, twice",
                connections=2 * connections)


def memory_of(pid):
    """Bytes of user memory, and of the page tables that the kernel has for it."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        lines = dict(line.split(":", 1) for line in f)
    return {name: int(lines[line].split()[0]) * 1024 for name, line in [("user", "VmRSS"), ("tables", "VmPTE")]}


def kernel_memory():
    """Bytes in slabs of sockets and files, of everybody; None if they may not be read."""
    try:
        with open("/proc/slabinfo", encoding="utf-8") as f:
            rows = [line.split() for line in f if line.startswith(tuple(CACHES))]
    except PermissionError:
        return None
    return sum(int(row[1]) * int(row[3]) for row in rows)


def idle_once(bench, server, connections, client="net-load", *how):
    command, environment = server
    with running(bench, command, **environment) as (process, port):
        before, kernel_before = memory_of(process.pid), kernel_memory()
        command = [program(bench, client), "idle", port, str(process.pid), *how, str(connections), "64"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              preexec_fn=prepare(cores(bench)[1])) as load_process:
            if not load_process.stdout.readline():
                raise RuntimeError(f"{client} idle: not all could connect")
            after, kernel_after = memory_of(process.pid), kernel_memory()
            load_process.stdin.close()
    result = {name: (after[name] - before[name]) / connections for name in before}
    result["kernel_both_ends"] = kernel_before and (kernel_after - kernel_before) / connections
    return result


def idle(bench):
    """Memory of each of many connections that have done one echo and wait for more; a KiB of buffer, then four."""
    connections = 200 if bench.smoke else IDLE
    for figure, size in [("idle", 1024), ("idle-4k", 4096)]:
        for name, server in usable(bench, {**bare(bench, "echo", size), **ours(bench, "echo", size)}).items():
            rounds = [idle_once(bench, server, connections) for _ in range(2)]
            user = pairs.summary([r["user"] for r in rounds])
            parts = {part: statistics.median(r[part] or 0 for r in rounds) for part in rounds[0]}
            bench.report(f"{figure}-{name.replace(' ', '-')}", {
                "unit": "bytes", "connections": connections, "buffer": size, "ours": user, **parts}, user["median"])


QUESTIONS = {**{name: lambda bench, name=name: echo(bench, name) for name in ECHOES},
             "echo-loops": echo_loops, "stream-1g": stream, "calls": calls, "idle": idle}


def run(bench):
    for question in QUESTIONS.values():
        question(bench)
