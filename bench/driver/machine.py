# SPDX-License-Identifier: MIT
"""What a figure must be read with: processor, kernel, compiler, Go, Python."""
import json
import os
import platform
import re
import shutil
import subprocess


def output(*command, cwd=None):
    """What the command says, on one line; "" if there is no such command."""
    if not shutil.which(command[0]):
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        text = f.read()
    m = re.search(r"^model name\s*:\s*(.*)", text, re.M)
    return m[1] if m else platform.machine()


def compiler(build):
    """What built it: compiler, version, optimization, sanitized."""
    with open(os.path.join(build, "bench", "build.json"), encoding="utf-8") as f:
        return json.load(f)


def describe(source, build):
    c = compiler(build)
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "arch": platform.machine(),
        "kernel": platform.release(),
        "compiler": f"{c['compiler']} {c['version']} -O{c['optimization']}",
        "go": output("go", "version").replace("go version ", ""),
        "resha": output("git", "describe", "--always", "--dirty", cwd=source),
    }
