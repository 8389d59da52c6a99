# SPDX-License-Identifier: MIT
"""What the tests of the command have in common: running it, databases, a folder of their own, and their main()."""
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback

from server import Server

RESHA = os.environ["RESHA"]
tests = []


def test(fn):
    tests.append(fn)
    return fn


class Skip(Exception):
    """The test cannot run here."""


class Result:
    def __init__(self, code, out, err):
        self.code, self.raw, self.err = code, out, err
        self.out = out.decode("utf-8", "replace")


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "DEMO_FAST", "XDG_CONFIG_HOME")}
    return {**env, "LC_ALL": "C.UTF-8", "HOME": os.getcwd(), **more}


def start(*args, **kwargs):
    """The command, running; its stdout and stderr are pipes."""
    env = kwargs.pop("env", environment())
    stdin = kwargs.pop("stdin", subprocess.DEVNULL)
    return subprocess.Popen([RESHA, *map(str, args)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=env, **kwargs)


def run(*args, text_in=None, timeout=60, **kwargs):
    """The command, to its end."""
    if text_in is not None:
        kwargs["stdin"] = subprocess.PIPE
    p = start(*args, **kwargs)
    try:
        out, err = p.communicate(text_in.encode() if isinstance(text_in, str) else text_in, timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
        raise AssertionError(f"still running after {timeout} s: {args}\n{err.decode()}") from None
    return Result(p.returncode, out, err.decode("utf-8", "replace"))


def query(db, sql):
    with contextlib.closing(sqlite3.connect(db, isolation_level=None)) as c:
        return c.execute(sql).fetchall()


def write(name, data):
    with open(name, "wb") as f:
        f.write(data.encode() if isinstance(data, str) else data)
    return name


def equal(a, b):
    assert a == b, f"\n  is       {a!r}\n  expected {b!r}"


def has(text, part):
    assert part in text, f"\n  {text!r}\n  has not {part!r}"


def matches(text, pattern):
    assert re.search(pattern, text), f"\n  {text!r}\n  does not match {pattern!r}"


@contextlib.contextmanager
def origin(*args):
    """`resha origin`, as its URL."""
    p = subprocess.Popen([RESHA, "origin", "--port", "0", *args], stdout=subprocess.PIPE, env=environment())
    try:
        yield p.stdout.readline().decode().strip()
    finally:
        p.terminate()
        p.wait()
        p.stdout.close()


@contextlib.contextmanager
def server():
    s = Server()
    try:
        yield s
    finally:
        s.close()


def needs_little_memory():
    """The command takes no more than it asks for: sanitizers reserve all that there is."""
    with open(RESHA, "rb") as f:
        if b"__asan_init" in f.read():
            raise Skip("AddressSanitizer needs more address space")


def wait_for(what, seconds=20):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def main():
    """Runs the tests, or those named, each in an empty folder; ends with "N passed, N failed"."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    failed = skipped = passed = 0
    for fn in tests:
        if sys.argv[1:] and not any(word in fn.__name__ for word in sys.argv[1:]):
            continue
        folder = tempfile.mkdtemp(prefix="resha-cli-")
        os.chdir(folder)
        begin = time.monotonic()
        try:
            fn()
            passed += 1
            result = "ok"
        except Skip as e:
            skipped += 1
            result = f"skipped: {e}"
        except Exception:  # noqa: one failed test does not end the others
            failed += 1
            result = "FAILED"
            traceback.print_exc(file=sys.stdout)
        print(f"{fn.__name__}: {result} ({time.monotonic() - begin:.1f} s)", flush=True)
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed + skipped else 0
