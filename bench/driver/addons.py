# SPDX-License-Identifier: MIT
"""The libraries by themselves: a GET against the bare loop on libcurl, a batch and a hop against the bare SQLite."""
import json
import os
import subprocess
import tempfile

from driver import origin, pairs

REQUESTS, SHORT, CONCURRENCY = 20000, 2000, 50


def output_of(bench, program, *arguments, cwd=None):
    command = [os.path.abspath(os.path.join(bench.build, "bench", program)), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=cwd)
    result = json.loads(done.stdout)
    result.pop("bench")
    return result


def http(bench):
    """Processor time of the whole process for each GET, over kept connections."""
    requests = SHORT if bench.smoke else REQUESTS
    with origin.serving(1) as folder:
        with open(os.path.join(folder, "urls"), encoding="utf-8") as f:
            url = f.read().strip()
        figures = pairs.in_turns(bench.rounds or 11, {
            program: lambda program=program: output_of(bench, program, url, requests, CONCURRENCY)["cpu_us"]
            for program in ["http_get", "http_get_multi"]
        }, bench.progress("http"))
    ours, peer = figures.values()
    pair = pairs.ratio(ours, peer)
    result = {"unit": "us", "rounds": len(ours), "concurrency": CONCURRENCY, "ours": pairs.summary(ours)}
    bench.report("http-get", {**result, "peer": {"name": "bare", **pairs.summary(peer)}, **pair}, pair["ratio"])


def sqlite(bench):
    """These programs take turns with the bare library by themselves, and come with medians."""
    with tempfile.TemporaryDirectory(prefix="resha-bench-") as folder:
        batch = output_of(bench, "sqlite_batch", cwd=folder)
        hop = output_of(bench, "sqlite_hop", cwd=folder)
    bench.report("sqlite-batch", batch, batch["ratio"])
    bench.report("sqlite-hop", {"unit": "us", **hop}, hop["us_1_in_flight"])
