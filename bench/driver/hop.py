# SPDX-License-Identifier: MIT
"""An empty job to a thread and back, on all processors: the wall clock counts. Against a bare loop with one in flight,
and against asyncio's to_thread() and tokio's spawn_blocking()."""
import json
import os
import shutil
import subprocess
import sys

from driver import pairs

JOBS, THEIRS = 64000, 6400
CRATES = "/usr/share/cargo/registry"  # sources, as the packages of Debian and its kin install them


def tokio_peer(bench):
    """Its path; None: it cannot be built here, and why is said. Built offline, in the build folder."""
    folder = os.path.join(os.path.abspath(bench.build), "bench", "tokio")
    shutil.copytree(os.path.join(bench.folder, "peers", "tokio"), folder, dirs_exist_ok=True)
    with open(os.path.join(folder, "offline.toml"), "w", encoding="utf-8") as f:
        f.write(f'[source.crates-io]\nreplace-with = "installed"\n[source.installed]\ndirectory = "{CRATES}"\n')
    command = ["cargo", "build", "--release", "--offline", "--quiet", "--config", "offline.toml",
               "--target-dir", "target"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=pairs.ordinary, timeout=600,
                       cwd=folder, env={**os.environ, "CARGO_HOME": os.path.join(folder, "home")})
    except FileNotFoundError:
        print("hop: tokio skipped: no cargo", file=sys.stderr)
    except subprocess.CalledProcessError as e:
        print(f"hop: tokio skipped: {e.stderr.strip().splitlines()[0]}", file=sys.stderr)
    else:
        return os.path.join(folder, "target", "release", "peer-tokio")
    return None


def once(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)["wall_ns"] / 1000


def runs(bench):
    """{name: function that measures once}; each backend has its own run with one in flight."""
    ours, bare = (os.path.join(bench.build, "bench", name) for name in ("hop", "peer-hop"))
    python = (sys.executable, "-B", os.path.join(bench.folder, "peers", "to_thread.py"))
    less = 10 if bench.smoke else 1
    jobs, theirs = str(JOBS // less), str(THEIRS // less)
    found = {
        "epoll": lambda: once("env", "RESHA_BACKEND=epoll", ours, jobs, "1"),
        "uring": lambda: once("env", "RESHA_BACKEND=uring", ours, jobs, "1"),
        "bare": lambda: once(bare, jobs),
        "many": lambda: once(ours, jobs, "64"),
        "python": lambda: once(*python, theirs, "64"),
    }
    tokio = tokio_peer(bench)
    if tokio:
        found["tokio"] = lambda: once(tokio, jobs, "64")
        found["tokio-1"] = lambda: once(tokio, jobs, "1")
    return found


ASKED = (("hop-1-epoll", "epoll", "bare", "futex, eventfd, epoll"),
         ("hop-1-uring", "uring", "bare", "futex, eventfd, epoll"),
         ("hop-1-tokio", "uring", "tokio-1", "tokio"),
         ("hop-64", "many", "python", "asyncio.to_thread()"),
         ("hop-64-tokio", "many", "tokio", "tokio"))


def run(bench):
    results = pairs.in_turns(bench.rounds or 11, runs(bench), bench.progress("hop"))
    for name, ours, peer, label in ASKED:
        if peer not in results:
            continue
        us, them = results[ours], results[peer]
        result = {"unit": "us", "rounds": len(us), "ours": pairs.summary(us),
                  "peer": {"name": label, **pairs.summary(them)}, **pairs.paired(us, them)}
        bench.report(name, result, result["ratio"])
