# SPDX-License-Identifier: MIT
"""The Python twin of an example: examples/python/NAME.py does with asyncio what examples/NAME.c does with resha, and
prints the same lines, but for differences that it names itself:

    # Differs: why
    # - a line of the C program
    # + the line that stands there instead
"""
import functools
import os
import re
import shutil
import subprocess
import sys

OLDEST = (3, 11)  # TaskGroup, timeout, except*
VIRTUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "virtual.py")


class Difference:
    def __init__(self, why):
        self.why, self.ours, self.theirs = why, [], []

    def apply(self, lines):
        """The lines with ours replaced by theirs; None if ours are not there."""
        for at in range(len(lines) - len(self.ours) + 1):
            if lines[at:at + len(self.ours)] == self.ours:
                return lines[:at] + self.theirs + lines[at + len(self.ours):]
        return None


def differences(text):
    found = []
    for line in text.splitlines():
        if m := re.match(r"# Differs: (.*)", line):
            found.append(Difference(m[1]))
        elif m := re.match(r"# ([-+]) ?(.*)", line):
            (found[-1].ours if m[1] == "-" else found[-1].theirs).append(m[2])
        elif found and (m := re.match(r"#   (.*)", line)):
            found[-1].why += " " + m[1]
    return found


def expected(text, lines):
    """What the twin whose source is `text` must print, where the C program prints `lines`."""
    for difference in differences(text):
        lines = difference.apply(lines)
        if lines is None:
            raise ValueError(f"names a difference that is not there: {difference.why}")
    return lines


@functools.lru_cache(None)
def has(python, modules):
    code = f"import sys; assert sys.version_info >= {OLDEST}; import asyncio, {', '.join(modules)}"
    return not subprocess.run([python, "-c", code], capture_output=True, check=False).returncode


def command(path, words):
    """How to run it, and None; or None, and why it cannot be run here."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    modules = tuple(re.findall(r"^import (aio\w+)", text, re.M))
    others = map(shutil.which, ("/usr/bin/python3", "python3.14", "python3.13", "python3.12", "python3.11"))
    for python in filter(None, [sys.executable, *others]):
        if has(python, ("sys", *modules)):
            # Answers of other processes and threads take real time.
            real = modules or "\n# On the real clock.\n" in text
            return [python, "-B", *([] if real else [VIRTUAL]), path, *words], None
    needs = " with ".join(["Python 3.11 or newer", *[" and ".join(modules)][:len(modules)]])
    return None, f"needs {needs}; there is only {'.'.join(map(str, sys.version_info[:3]))} here"
