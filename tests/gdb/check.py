# SPDX-License-Identifier: MIT
"""check.py CASE: gdb's commands on subject.c, live and in core files; the program and gdb are named by the environment.
Exit 77 with a reason where gdb cannot look here."""
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SUBJECT, SCRIPT, GDB = (os.environ[name] for name in ("SUBJECT", "SCRIPT", "GDB"))
STATIC = os.environ.get("STATIC") == "1"
cases = {}


def case(fn):
    cases[fn.__name__.replace("_", "-")] = fn
    return fn


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def gdb(arguments, *commands, auto=False):
    """What gdb prints, its own banners left out. auto: it finds the script by itself."""
    argv = [GDB, "-q", "-nx", "-batch", "-ex", "set width 0", "-ex", "set debuginfod enabled off"]
    argv += ["-iex", "add-auto-load-safe-path " + os.path.dirname(SCRIPT)] if auto else ["-iex", "set auto-load off"]
    source = [] if auto else ["source " + SCRIPT]
    for command in [*source, *commands]:
        argv += ["-ex", command]
    p = subprocess.run([*argv, *arguments], capture_output=True, text=True, errors="replace", timeout=300, check=False)
    return p.stdout + p.stderr


def attach(p, *commands, **kwargs):
    text = gdb(["-p", str(p.pid)], *commands, **kwargs)
    if re.search("ptrace: Operation not permitted|Could not attach", text):
        skip("gdb may not attach here")
    return text


class Subject:
    """The program, until it is ready."""

    def __init__(self, *arguments, **env):
        self.process = subprocess.Popen([SUBJECT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env={**os.environ, "RESHA_BLOCKED": "0", **env})
        self.lines = 2 if arguments[0] == "loops" else 1

    def __enter__(self):
        for _ in range(self.lines):
            line = self.process.stdout.readline()
            assert line == "ready\n", line
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def has(text, *patterns):
    """They occur, in this order."""
    at = 0
    for pattern in patterns:
        m = re.compile(pattern, re.M).search(text, at)
        if not m:
            raise AssertionError("no /%s/ behind what came before, in:\n%s" % (pattern, text))
        at = m.end()


def has_not(text, pattern):
    assert not re.search(pattern, text, re.M), "/%s/ in:\n%s" % (pattern, text)


MARK = r"\*\* in a circle of waits \*\*$"
CIRCLE = (r"^circle of waits, .*: #2 \"left_then_right\" -> #3 \"right_then_left\" -> #2 \"left_then_right\"$",
          r"^#1 main: waits for 33 children, for [\d.]+ .?s$",
          r"^  #2 left_then_right \(\S*subject.c:\d+\): waits for mutex \w+, held by #3 \"right_then_left\".* " + MARK,
          r"^  #3 right_then_left \(\S*subject.c:\d+\): waits for mutex \w+, held by #2 \"left_then_right\".* " + MARK,
          r"^  #4 parent \(\S*subject.c:\d+\): waits for the end of #\d+ \"with_deadline\"",
          r"^    #\d+ with_deadline \(\S*subject.c:\d+\): sleeps, 16.\d min left, .*deadline in 8.[234] min$",
          r"(^  #\d+ sleeper \(\S*subject.c:\d+\): sleeps, 16.\d min left.*\n){10}",
          r"^  \.\.\. 20 more like these$")


@case
def tree_of_a_deadlock():
    with Subject("deadlock") as p:
        text = attach(p, "resha tree")
        has(text, r"^loop 1, thread \d+: 35 tasks$", *CIRCLE)
        assert p.poll() is None, "it must go on"


@case
def found_by_gdb_itself():
    if STATIC:
        skip("gdb finds it by the name of the shared library")
    with Subject("deadlock") as p:
        text = attach(p, "help resha", "resha tree", auto=True)
        has(text, "^Tasks of libresha: `resha tasks`", "^resha bt ", *CIRCLE)


@case
def tasks_one_a_line():
    with Subject("deadlock") as p:
        text = attach(p, "resha tasks")
        assert len(re.findall(r"^  #\d+ sleeper ", text, re.M)) == 30, text
        has(text, r"^  #1 main: ", r"^  #2 left_then_right ", r"^  #4 parent ")


@case
def stack_of_one():
    with Subject("deadlock") as p:
        text = attach(p, "resha bt 2", "resha bt 1.4", "bt 1")
        has(text, r"^#2 left_then_right \(\S*subject.c:\d+\): waits for mutex",
            r"^    #0 resha_mutex_lock \(mutex=0x\w+ <right>\) at .*mutex.c:\d+$",
            r"^    #1 take_both \(one=.*, other=0x\w+ <right>\) at .*subject.c:\d+$",
            r"^    #2 left_then_right \(arg=.*\) at .*subject.c:\d+$",
            r"^#4 parent ", r"^    #\d wait_one \(", r"^    #\d parent \(",
            r"^#0 ")
        has_not(text, r"rs_wait|rs_switch|rs_task_entry")


@case
def stacks_of_all_are_counted():
    with Subject("deadlock") as p:
        has(attach(p, "resha bt all"), r"^#1 main: ", r"^    #\d rs_group_close ", r"^    #\d deadlock \(",
            r"^#\d+ sleeper .*, and 29 more like it$", r"^    #\d resha_sleep \(", r"^    #\d sleeper \(")


@case
def frames_of_a_task_are_frames():
    with Subject("deadlock") as p:
        task = re.search(r"#(\d+) with_deadline", attach(p, "resha tasks"))[1]
        text = attach(p, "resha task " + task, "bt", "frame function sleeper", "info locals", "resha task", "bt")
        has(text, r"^#0 ", r"in (park|transfer|rs_wait|sleep_until) ", r"resha_sleep \(", r" sleeper \(arg",
            r" with_deadline \(", r"^forty_two = 42$", r"^#0 ")
        shown, after = text.split("forty_two = 42")
        has_not(after, "sleeper")
        has_not(shown, r"Backtrace stopped|previous frame")


@case
def several_loops_of_which_one_computes():
    with Subject("loops") as p:
        time.sleep(0.2)  # from "ready" to the computing task; if that has not begun, it is said to wait for its turn
        text = attach(p, "resha tree", "resha bt all", "resha bt 2")
        has(text, r"^loop \d, thread \d: [24] tasks$", r"^#\d\.1 main: ", r"^  #\d\.2 sleeper ",
            r"^loop \d, thread \d: [24] tasks$", r"^#\d\.1 main: ", r"^  #\d\.2 sleeper ")
        has(text, r"^  #\d\.3 overdue \(\S*subject.c:\d+\): sleeps, due \d+\.\d m?s ago, for ",
            r"^  #\d\.4 computes \(\S*subject.c:\d+\): runs")
        has(text, r"^#\d\.4 computes .*: runs", r"^    #0 computes \(")
        has(text, r"^several loops have a task 2: \d\.2, \d\.2$")


@case
def what_is_wrong_is_said():
    with Subject("deadlock") as p:
        text = attach(p, "resha bt 777", "resha bt", "resha bt x", "resha tree 3", "resha task y")
    for pattern in (r"^no task 777 \(any more\)", r"^resha bt ID, or resha bt all: whose stack\?", r"^\"x\" is no task",
                    r"^resha tree takes no argument", r"^\"y\" is no task"):
        has(text, pattern)
    has_not(text, "Traceback|Python Exception")


@case
def programs_without_it():
    text = gdb(["/bin/true"], "resha tasks")
    has(text, "^libresha is not loaded: is the process running")
    text = gdb([SUBJECT], "resha tasks")
    has(text, "^(libresha is not loaded|no loop runs)")
    has_not(text, "Traceback|Python Exception")


@case
def programs_without_debug_information():
    with tempfile.TemporaryDirectory() as folder:
        for source in ([SUBJECT] if STATIC else [SUBJECT, os.path.join(os.path.dirname(SCRIPT), "libresha.so.0")]):
            subprocess.run(["strip", "-o", os.path.join(folder, os.path.basename(source)), source], check=True)
        program = os.path.join(folder, os.path.basename(SUBJECT))
        with subprocess.Popen([program, "deadlock"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env={**os.environ, "LD_LIBRARY_PATH": folder}) as p:
            try:
                assert p.stdout.readline() == "ready\n"
                text = attach(p, "resha tasks")
            finally:
                p.kill()
    has(text, "^libresha (has no debug information|is not loaded.*stripped)")
    has_not(text, "Traceback|Python Exception")


def normal(text):
    """Without what differs from run to run, or build to build; which calls the library has is the compiler's affair."""
    text = re.sub(r"^    .*\(libresha.*\n|^    #\d+ .*/src/.*\n", "", text, flags=re.M)
    text = re.sub(r"process \d+", "process N", re.sub(r"\+?0x[0-9a-f]+", "N", text))
    text = re.sub(r"[\d.]+ (ms|s|min)( left|\b)", "T", text)
    return re.sub(r"^(    )#\d+ ", r"\1", text, flags=re.M)


@case
def the_page():
    """docs/debugging.md shows what its program prints, and gdb of it."""
    with open(os.path.join(os.environ["RESHA_SOURCE"], "docs", "debugging.md"), encoding="utf-8") as f:
        page = f.read()
    program = re.search(r"^```c\n(.*?)^```", page, re.M | re.S)[1]
    dump, _, _, tree, stack = re.findall(r"^```text\n(.*?)^```", page, re.M | re.S)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "shop.c"), "w", encoding="utf-8") as f:
            f.write(program)
        library = os.path.dirname(SCRIPT)
        subprocess.run([*os.environ.get("CC", "cc").split(), "-std=gnu17", "-g", "-Wall", "-Wextra", "-Werror",
                        "-I" + os.path.join(os.environ["RESHA_SOURCE"], "include"), "shop.c", "-o", "shop",
                        "-L" + library, "-Wl,-rpath," + library, "-lresha"], cwd=folder, check=True)
        shop = os.path.join(folder, "shop")
        printed = subprocess.run([shop], env={**os.environ, "RESHA_BACKEND": "sim:0"}, capture_output=True, text=True,
                                 check=True).stdout
        assert normal(printed).startswith(normal(dump)), printed
        assert printed.count("wait_for_customers\" from") == 15, printed
        with subprocess.Popen([shop], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
            try:
                time.sleep(1)
                text = attach(p, "echo TREE\\n", "resha tree", "echo STACK\\n", "resha bt 2", "echo END\\n")
            finally:
                p.kill()
    shown = re.search(r"^TREE\n(.*)^STACK\n(.*)^END$", text, re.M | re.S)
    assert shown and normal(shown[1]) == normal(tree) and normal(shown[2]) == normal(stack), text


# ---- another processor ----

@case
def emulated():
    """AArch64: one that does not sign return addresses, whose mask the emulator does not tell."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    root = "/usr/aarch64-linux-gnu"
    argv = ["qemu-aarch64", "-cpu", "cortex-a72", "-L", root, "-g", port, SUBJECT, "many", "20"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        try:
            text = gdb([], "set sysroot " + root, "file " + SUBJECT, "set tcp connect-timeout 20",
                       "target remote 127.0.0.1:" + port, "break abort", "continue", "resha tree", "resha bt 3",
                       "resha bt all", "resha task 4", "bt", "kill")
        finally:
            p.kill()
    if "not supported" in text or "Truncated register" in text:
        skip("this gdb is not for that processor")
    stack = (r"^    #0 resha_event_wait \(", r"^    #1 inner \(", r"^    #2 waiter \(")
    has(text, r"^loop 1.*: 21 tasks$", r"^#1 main: runs", r"(^  #\d+ waiter .*\n){10}", r"^  \.\.\. 10 more like these",
        r"^#3 waiter ", *stack, r"^#1 main: runs$", r"^    #\d many \(", r"^#2 waiter .*, and 19 more like it$", *stack,
        r" in resha_event_wait \(", r" in inner \(", r" in waiter \(")


# ---- core files ----

def core_of(folder, n):
    """Made by the kernel, where it puts them into the folder of the process."""
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
        pattern = f.read().strip()
    if pattern.startswith(("|", "/")) or resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        skip("core files go elsewhere: " + pattern)
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
    p = subprocess.run([SUBJECT, "many", str(n)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=False)
    assert p.returncode == -6, p.returncode
    cores = [os.path.join(folder, f) for f in os.listdir(folder)]
    if not cores:
        skip("no core file was made")
    return cores[0]


def look_at_core(n):
    with tempfile.TemporaryDirectory(dir=os.environ.get("RESHA_BUILD")) as folder:
        core = core_of(folder, n)
        start = time.monotonic()
        text = gdb([SUBJECT, core], "python import time; began = time.monotonic()", "resha tree",
                   "python print('tree: %.1f s' % (time.monotonic() - began)); began = time.monotonic()",
                   "resha bt all",
                   "python print('bt all: %.1f s' % (time.monotonic() - began))")
        print("%d tasks, all of gdb: %.1f s" % (n, time.monotonic() - start))
    has(text, r"^loop 1.*: %d tasks$" % (n + 1), r"^#1 main: runs$",
        r"(^  #\d+ waiter \(\S*subject.c:\d+\): waits for event 0x\w+.*\n){10}",
        r"^  \.\.\. %s more like these$" % format(n - 10, ",d"),
        r"^tree: .*$", r"^#1 main: runs$", r"^    #\d .*abort \(", r"^    #\d many \(",
        r"^#\d+ waiter .*, and %s more like it$" % format(n - 1, ",d"), r"^    #0 resha_event_wait \(",
        r"^    #1 inner \(", r"^    #2 waiter \(", r"^bt all: ")
    print(*re.findall(r"^(?:tree|bt all): .*", text, re.M), sep="\n")


@case
def core_of_a_crash():
    look_at_core(500)


@case
def core_with_100000_tasks():
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as f:
        few = int(f.read()) < 250000
    if few and tuple(map(int, os.uname().release.split(".")[:2])) < (6, 13):
        skip("this kernel has no stacks for 100,000 tasks")
    if shutil.disk_usage(os.environ.get("RESHA_BUILD", "/tmp")).free < 4e9:
        skip("less than 4 GB of disk")
    look_at_core(100000)


@case
def core_made_by_gdb():
    """Its gcore gives up at guards that are no mappings of their own; and then that is said."""
    with tempfile.TemporaryDirectory() as folder:
        core = os.path.join(folder, "core")
        for guards in ("mprotect", ""):
            with Subject("deadlock", RESHA_GUARDS=guards) as p:
                attach(p, "gcore " + core)
                if not os.path.exists(core):
                    skip("gdb makes no core files here")
            text = gdb([SUBJECT, core], "resha tree", "resha bt 2")
            if guards == "mprotect" or "note: the stacks" not in text:
                has(text, *CIRCLE)
                has(text, r"^    #1 take_both \(")
            else:
                has(text, r"^note: the stacks of \d+ are not in this file.* RESHA_GUARDS=mprotect",
                    r"its stack is not in the core file")
            os.unlink(core)


def main():
    cases[sys.argv[1]]()
    print("ok")


main()
