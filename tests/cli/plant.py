#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plant.py write NAME SOURCE OUT    SOURCE with the bug NAME planted in it
plant.py find NAME PROGRAM        runs PROGRAM, the pipeline's test with that bug; passes if the test finds it

The bugs are of the kinds that the pipeline could really have: each is a change of a line or two."""
import os
import re
import subprocess
import sys

# name: ([(what is written, what a mistake would make of it)], what the test says about it)
BUGS = {
    "limit": ([("p->n_fetchers == p->o.concurrency ", "p->n_fetchers == p->o.concurrency + 1 ")],
              "w->most <= w->concurrency"),
    "told": ([("        if (rc >= 0)\n                *counts = b.counts;\n", "        *counts = b.counts;\n")],
             "p->counts.rows"),
    "stop": ([("        if (rc == -ECANCELED) {\n", "        if (rc == -ECANCELED || p->stopping) {\n")],
             "was answered and is not there"),
    "again": ([("if (s->resumed && resha_rows_int(rows, r, 3))", "if (s->resumed && r && resha_rows_int(rows, r, 3))")],
              "was saved and asked for again"),
    "rate": ([("host->open_at.ns <= now.ns && (waited", "(waited")],
             "sooner than the rate allows"),
}


def write(name, source, out):
    with open(source, encoding="utf-8") as f:
        text = f.read()
    for old, new in BUGS[name][0]:
        if text.count(old) != 1:
            sys.exit(f"plant.py: {name}: {source} has {text.count(old)} times:\n{old}")
        text = text.replace(old, new)
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)


def find(name, program):
    env = {**os.environ, "PIPELINE_SEEDS": "300", "RESHA_TEST_BACKEND": "sim:0"}
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    seed = re.search(r"RESHA_TEST_BACKEND=sim:(\d+)", said)
    if done.returncode and seed and BUGS[name][1] in said:
        print(f"{name}: found by seed {seed[1]}")
        return 0
    print(f"{name}: not found\n{said}")
    return 1


if sys.argv[1] == "write":
    write(*sys.argv[2:])
else:
    sys.exit(find(*sys.argv[2:]))
