# SPDX-License-Identifier: MIT
"""resha fetch against two bare loops on libcurl and a program in Python: the same URLs into the same table.

What counts is the processor time of the whole process, from start to end."""
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess

from driver import origin, pairs

ITEMS, SHORT, CONCURRENCY = 10000, 1000, 50
# What all can know; times differ.
ROWS = "select url, status, content_type, etag, last_modified, body, error, attempts from fetch order by url"


def python():
    """The first interpreter that has aiohttp and aiosqlite, or None."""
    for name in ["python3", "/usr/bin/python3"]:
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", "import aiohttp, aiosqlite"], capture_output=True, check=False,
                                   ).returncode == 0:
            return path
    return None


def measure(bench, command):
    """What the kernel says that a command used."""
    read, write = os.pipe()
    with open(read, encoding="utf-8") as result:
        def give():
            os.dup2(write, 3)
        done = subprocess.run([os.path.join(bench.build, "bench", "measure"), *command], pass_fds=[3, write],
                              preexec_fn=give, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              check=False)
        os.close(write)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        return json.loads(result.read())


def table_hash(path):
    """Rows, and a hash over all of them."""
    h, count = hashlib.sha256(), 0
    with sqlite3.connect(path) as db:
        for row in db.execute(ROWS):
            h.update(repr(row).encode())
            count += 1
    db.close()
    return count, h.hexdigest()


def remove(path):
    for end in ["", "-wal", "-shm"]:
        if os.path.exists(path + end):
            os.remove(path + end)


class Client:
    """One way to fetch; remembers what each round used and what the tables held."""

    def __init__(self, bench, folder, name, command):
        self.bench, self.name, self.command = bench, name, command
        self.database = os.path.join(folder, f"{name}.db")
        self.used, self.tables = [], set()

    def once(self):
        remove(self.database)
        used = measure(self.bench, [a.replace("DATABASE", self.database) for a in self.command])
        self.used.append(used)
        self.tables.add(table_hash(self.database))
        return used["user_ms"] + used["system_ms"]


def clients(bench, folder):
    urls, c = os.path.join(folder, "urls"), str(CONCURRENCY)

    def program(name):
        return os.path.join(bench.build, name)
    ways = {
        "resha": [program("cli/resha"), "fetch", "-q", "-i", urls, "-c", c, "--db", "DATABASE"],
        "inline": [program("bench/peer-curl_inline"), urls, "DATABASE", c],
        "thread": [program("bench/peer-curl_thread"), urls, "DATABASE", c],
    }
    interpreter = python()
    if interpreter:
        ways["python"] = [interpreter, os.path.join(bench.folder, "peers", "aiohttp_fetch.py"), urls, "DATABASE", c]
    return {name: Client(bench, folder, name, command) for name, command in ways.items()}


def check_tables(ways, items):
    """All tables of all rounds are the same, and complete."""
    tables = {table for way in ways.values() for table in way.tables}
    if len(tables) != 1 or next(iter(tables))[0] != items:
        raise RuntimeError(f"the tables differ: {({w.name: w.tables for w in ways.values()})}")
    return next(iter(tables))[1]


def compare(bench, name, figures, peer, extra):
    """A report of the ratio of processor times."""
    pair = pairs.ratio(figures["resha"], figures[peer])
    bench.report(name, {"unit": "ms", "rounds": len(figures["resha"]), "ours": pairs.summary(figures["resha"]),
                        "peer": {"name": peer, **pairs.summary(figures[peer])}, **pair, **extra}, pair["ratio"])


def run(bench):
    items = SHORT if bench.smoke else ITEMS
    with origin.serving(items) as folder:
        ways = clients(bench, folder)
        figures = pairs.in_turns(bench.rounds or 7, {name: way.once for name, way in ways.items()},
                                 bench.progress("fetch"))
        extra = {"items": items, "concurrency": CONCURRENCY, "table": check_tables(ways, items)[:16]}
    medians = {name: pairs.summary(values)["median"] for name, values in figures.items()}
    extra["cpu_ms"] = medians
    extra["wall_ms"] = {n: pairs.summary([u["wall_ms"] for u in w.used])["median"] for n, w in ways.items()}
    extra["peak_mb"] = {n: round(max(u["peak_kib"] for u in w.used) / 1000, 1) for n, w in ways.items()}
    better = min(["inline", "thread"], key=medians.get)
    compare(bench, "fetch-bare", figures, better, extra)
    if "python" in figures:
        compare(bench, "fetch-python", figures, "python", extra)
    peaks = [u["peak_kib"] * 1024 / 1e6 for u in ways["resha"].used]
    bench.report("fetch-memory", {"unit": "MB", "items": items, "ours": pairs.summary(peaks)}, max(peaks))
