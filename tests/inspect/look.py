# SPDX-License-Identifier: MIT
"""Looking at a program from outside: it is started, and a command is run again and again until it prints what is
expected, or a deadline passes. Nobody sleeps and hopes."""
import contextlib
import os
import re
import subprocess
import tempfile
import time

SECONDS = 30 * float(os.environ.get("RESHA_TEST_SLOWER", "1"))


class Program:
    """One that runs, with an inspector; what it prints is kept in files."""

    def __init__(self, path, backend=None, **env):
        more = {"RESHA_INSPECT": "1", "LC_ALL": "C.UTF-8", **env}
        if backend:
            more["RESHA_BACKEND"] = backend
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(path)], stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        env={**os.environ, **more})
        self.pid = self.process.pid

    def said(self):
        """What came on stderr so far."""
        return os.pread(self.err.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.out.close()
        self.err.close()


@contextlib.contextmanager
def program(path, backend=None, **env):
    p = Program(path, backend, **env)
    try:
        yield p
    finally:
        p.end()


def have_uring(two_locks):
    """Whether the kernel has io_uring: that program says something on it, or ends."""
    with program(two_locks, "uring") as p:
        until(".", lambda: p.said() or ("ended" if p.process.poll() is not None else ""))
        return p.process.poll() is None


def within(seconds, condition):
    """Whether it becomes true in so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def until(pattern, text):
    """Calls text() until a match of the pattern is in it: the match and the text."""
    end = time.monotonic() + SECONDS
    while True:
        seen = text()
        found = re.search(pattern, seen, re.M)
        if found:
            return found, seen
        assert time.monotonic() < end, f"\nnothing matches\n  {pattern}\nin\n{seen}"
        time.sleep(0.05)


def command(resha, *words):
    """What the command prints, errors too."""
    run = subprocess.run([resha, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False)
    return run.stdout + run.stderr


# ---- what pages show ----

TIME = r"\d+(?:\.\d+)? (?:ns|us|ms|s|m|h|d)\b(?: \d+ (?:s|m|h)\b)?"
VARIES = re.compile(rf"(?P<time>{TIME})|(?P<any>\.\.\.+|…)|(?P<hex>0x[0-9a-f]+)|(?P<pid>\bpid \d+)|"
                    r"(?P<port>127\.0\.0\.1:\d+)|(?P<fd>\bdescriptor \d+)|(?P<share>\b\d+ %)|(?P<space>[ ─]{2,}| $)")
FORMS = {"time": TIME, "any": ".*", "hex": "0x[0-9a-f]+", "pid": r"pid \d+", "port": r"127\.0\.0\.1:\d+",
         "fd": r"descriptor \d+", "share": r"\d+ %", "space": "[ ─]*"}


def line_pattern(line):
    """What a line of a page stands for: times, addresses, ports, numbers of processes and descriptors (somebody may be
    looking just then) differ, and so do widths of columns; "..." is anything."""
    pattern, at = "", 0
    for m in VARIES.finditer(line):
        pattern += re.escape(line[at:m.start()]) + FORMS[m.lastgroup]
        at = m.end()
    return pattern + re.escape(line[at:]) + "[ ]*"


def text_pattern(text):
    """The same of several lines; a line of "..." alone is any number of lines."""
    pattern = ""
    for line in text.rstrip("\n").split("\n"):
        pattern += r"(?:.*\n)*?" if line.strip() in ("...", "…") else line_pattern(line) + r"\n"
    return r"\A" + pattern + r"\Z"
