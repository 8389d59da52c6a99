# SPDX-License-Identifier: MIT
"""Many small files, read whole, some in flight, on each backend of the kernel: against a bare pool of threads and a
bare io_uring loop, warm and cold."""
import json
import os
import statistics
import subprocess
import tempfile

from driver import pairs

SIZE, IN_FLIGHT, IN_FOLDER, THREADS = 1024, 64, 1000, 64
DROP = "/proc/sys/vm/drop_caches"


def count(bench):
    """$RESHA_BENCH_FILES, at most a million."""
    if bench.smoke:
        return 2000
    return min(max(int(os.environ.get("RESHA_BENCH_FILES", "100000")), 1000), 1000000)


def path_of(folder, i):
    return f"{folder}/{i // IN_FOLDER:03}/{i:05}"


def make(folder, n):
    for i in range(n):
        if i % IN_FOLDER == 0:
            os.mkdir(os.path.dirname(path_of(folder, i)))
        with open(path_of(folder, i), "wb") as f:
            f.write(i.to_bytes(4, "little") * (SIZE // 4))


def forget(folder, n):
    """Out of the kernel's memory; how: names, too, where that is allowed."""
    os.sync()
    try:
        with open(DROP, "w", encoding="ascii") as f:
            f.write("3")
        return "drop_caches"
    except OSError:
        for i in range(n):
            fd = os.open(path_of(folder, i), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        return "fadvise"


def once(bench, folder, n, program, *arguments, backend=None):
    """Microseconds of the wall clock for each file."""
    command = [os.path.abspath(os.path.join(bench.build, "bench", program)), folder, *map(str, arguments)]
    env = dict(os.environ, RESHA_BACKEND=backend) if backend else None
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=env).stdout)
    if result["files"] != n or result["bytes"] != n * SIZE:
        raise RuntimeError(f"{program}: read {result['bytes']} bytes of {n} files")
    return result["us"]


def ask(bench, folder, n, cold):
    """{name: figures} of ours and of all that the peers can be."""
    cores = len(os.sched_getaffinity(0))
    threads = [4 * cores, 16 * cores, 32 * cores] if cold else [cores, cores + 1, 2 * cores]
    how = ["warm"]

    def run(*arguments, **options):
        if cold:
            how[0] = forget(folder, n)
        return once(bench, folder, n, *arguments, **options)

    runs = {b: lambda b=b: run("files", n, IN_FLIGHT, THREADS, backend=b) for b in ("epoll", "uring")}
    runs.update({f"pool of {t}": lambda t=t: run("peer-files-pool", n, t) for t in threads})
    if os.path.exists(os.path.join(bench.build, "bench", "peer-files-uring")):
        runs.update({f"io_uring, {k}": lambda k=k: run("peer-files-uring", n, IN_FLIGHT, k)
                     for k in ("plain", "linked")})
    if not cold:
        runs["epoll"]()  # what was written is in the kernel's memory; its names are now, too
    name = "files-cold" if cold else "files-warm"
    return pairs.in_turns(bench.rounds or 7, runs, bench.progress(name)), how[0]


def run(bench):
    n = count(bench)
    with tempfile.TemporaryDirectory(prefix="resha-bench-") as folder:
        make(folder, n)
        for state, files in (("warm", n), ("cold", max(n // 5, 1000))):
            figures, how = ask(bench, folder, files, state == "cold")
            peers = [k for k in figures if k not in ("epoll", "uring")]
            best = min(peers, key=lambda k: statistics.median(figures[k]))
            for backend in ("epoll", "uring"):
                pair = pairs.paired(figures[backend], figures[best])
                bench.report(f"files-{state}-{backend}", {
                    "unit": "us", "rounds": len(figures[backend]), "files": files, "size": SIZE,
                    "in_flight": IN_FLIGHT, "cache": how, "ours": pairs.summary(figures[backend]),
                    "peer": {"name": best, **pairs.summary(figures[best])},
                    "others": {k: statistics.median(figures[k]) for k in peers}, **pair}, pair["ratio"])
