#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""look.py [NAME...]: resha ps, tree, top, stack, trace and stats against an inspector that answers what the test wants:
recorded answers, whose pictures are files in look/ (UPDATE=1 writes them), answers that are cut, and hostile ones."""
import fcntl
import json
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import termios
import time

from harness import RESHA, Skip, environment, equal, has, main, matches, needs_little_memory, run, start, test, wait_for
from inspector import Inspector, folder, lines

ME = os.getpid()
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "look")
SECOND = 10**9


def loop(number=1, **more):
    return {"type": "loop", "loop": number, "backend": "epoll", "state": "sleeps", "for": 5, "mode": "loop", "tasks": 5,
            "ready": 0, "timers": 1, "polls": 10, "switches": 20, "jobs": 0, "open": 3, "pause": 1000, **more}


def task(number, name, **more):
    return {"type": "task", "loop": 1, "id": number, "name": name, "site": "bank.c:31", "age": 90 * SECOND,
            "state": "waits", "since": 12 * SECOND, **more}


def scope(at, of, **more):
    return {"type": "scope", "loop": 1, "at": at, "task": of, "kind": "group", "running": 2, **more}


def mutex(at, name, owner):
    return {"type": "object", "loop": 1, "at": at, "kind": "mutex", "name": name, "owner": owner, "waiting": 1}


DEADLOCK = lines(
    loop(),
    task(1, "main", site="bank.c:60", what="children", object="0x10"),
    scope("0x10", 1, limit=5, left=2 * SECOND, waiting=1),
    task(2, "transfer a", group="0x10", what="mutex", object="0x21", holders=[3]),
    task(3, "transfer b", group="0x10", what="mutex", object="0x20", holders=[2]),
    task(4, "audit", group="0x10", what="mutex", object="0x20", holders=[2], deadline=3 * SECOND),
    task(5, "clock", group="0x10", site="bank.c:70", what="sleep", due=SECOND // 2, since=SECOND // 2, cancelled="call",
         ignored=3),
    mutex("0x20", "accounts", 2), mutex("0x21", "ledger", 3),
    {"type": "object", "loop": 1, "at": "0x30", "kind": "pool", "name": "db", "held": 4, "limit": 4, "waiting": 2,
     "detail": "4 of 4 connections"},
    {"type": "handle", "loop": 1, "at": "0x40", "kind": "stream", "fd": 7, "opened_at": "serve+0x12 (bank.c:80)",
     "age": 60 * SECOND, "name": "tcp", "detail": "stream tcp 127.0.0.1:80, 5 bytes read ahead", "task": 5},
    {"type": "handle", "loop": 1, "at": "0x41", "kind": "listener", "fd": 6, "opened_at": "main+0x40 (bank.c:58)",
     "age": 90 * SECOND, "name": "127.0.0.1:8080"},
    {"type": "place", "loop": 1, "site": "bank.c:31", "name": "transfer a", "tasks": 3, "stack_high": 5000,
     "exact": True},
    {"type": "something new", "nested": {"a": [1, {"b": 2}]}},
    {"type": "note", "text": "as seen from here"})

MANY = lines(
    loop(tasks=10004),
    task(1, "main", site="", what="children", object="0x10"),
    scope("0x10", 1, running=10000),
    *[task(i + 2, "fetch", group="0x10", what="limiter", object="0x55", since=i) for i in range(10000)],
    task(20000, "odd", group="0x10", what="read", detail="127.0.0.1:80", doing="http: answer of slow.example"),
    task(20001, "busy", group="0x10", state="runs"),
    task(20002, "next", group="0x10", state="ready"))

PAIRS = lines(
    loop(tasks=301),
    task(1, "main", what="children", object="0x10"),
    scope("0x10", 1, running=100),
    *[line for i in range(100) for line in (
        task(10 + i, "connection", group="0x10", what="children", object=hex(0x1000 + i)),
        scope(hex(0x1000 + i), 10 + i),
        task(1000 + i, "reader", group=hex(0x1000 + i), what="read", since=i * SECOND),
        task(2000 + i, "writer", group=hex(0x1000 + i), what="queue"))])

HOSTS = lines(
    loop(tasks=61),
    task(1, "main", what="children", object="0x10"),
    scope("0x10", 1, running=60),
    *[task(10 + i, "fetch", group="0x10", what="read", detail=f"10.0.0.{i}:80") for i in range(60)])

BLOCKED = lines(
    loop(), loop(2, state="blocked", mode="blocked", current=7, **{"for": 3 * SECOND}),
    task(1, "main", what="sleep"),
    {**task(7, "parse", state="runs", site="demo.c:88"), "loop": 2},
    loops=2)

STACKS = lines(
    loop(),
    *[line for i in range(1, 6) for line in (
        task(i, "worker" if i > 1 else "main", what="event", since=i * SECOND),
        {"type": "frame", "loop": 1, "task": i, "depth": 0, "text": "resha_event_wait+0x20 (event.c:71)"},
        {"type": "frame", "loop": 1, "task": i, "depth": 1,
         "text": "worker+0x11 (demo.c:40)" if i > 1 else "program+0x9 (demo.c:60)"})],
    task(9, "new one", state="new"))

FRAME = lines({"type": "frame", "loop": 2, "task": 7, "depth": 0, "text": "parse+0x37 (demo.c:88)"})

SAMPLE = lines(
    loop(),
    {"type": "samples", "loop": 1, "of": 100, "sleeps": 25},
    {"type": "sample", "loop": 1, "site": "bank.c:31", "name": "transfer a", "hits": 60, "of": 100},
    {"type": "sample", "loop": 1, "site": "bank.c:70", "name": "clock", "hits": 15, "of": 100})


def caught(pid, number):
    """Whether a process has a handler for a signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        mask = int(re.search(r"SigCgt:\s*(\w+)", f.read()).group(1), 16)
    return mask >> (number - 1) & 1


def look(answers, *args, env=None, **kwargs):
    """The command's outcome, with our process's number replaced."""
    with Inspector(answers if isinstance(answers, dict) else {"snapshot": answers}):
        r = run(*[ME if a == "PID" else a for a in args], env=environment(**(env or {})), **kwargs)
    r.out = r.out.replace(str(ME), "PID")
    r.err = r.err.replace(str(ME), "PID")
    return r


def fails(code, answers, *args, **kwargs):
    """One line on stderr, nothing on stdout, and that exit code."""
    r = look(answers, *args, **kwargs)
    equal((r.code, r.out), (code, ""))
    equal(r.err.count("\n"), 1)
    return r.err.strip()


def picture(name, answers, *args, **kwargs):
    """Compares with look/NAME."""
    r = look(answers, *args, **kwargs)
    equal((r.code, r.err), (0, ""))
    path = os.path.join(GOLDEN, name)
    if os.environ.get("UPDATE"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(r.out)
    with open(path, encoding="utf-8") as f:
        wanted = f.read()
    assert r.out == wanted, f"{name}: is\n{r.out}\nexpected\n{wanted}"


@test
def tree_of_a_deadlock():
    picture("deadlock.tree", DEADLOCK, "tree", "PID")


@test
def what_is_full_is_told_of_once():
    def full(kind, **more):
        return {"type": "object", "loop": 1, "at": hex(id(kind)), "kind": kind, "held": 2, "limit": 2, **more}
    answer = lines(loop(), task(1, "main", what="sleep"),
                   full("queue", name="orders", waiting=3, detail="2 of 2 items, 3 wait to put, 0 to get"),
                   full("semaphore", waiting=1000, detail="2 of 2 permits are held"),
                   full("pool", waiting=1, detail="of mail"), full("limit", waiting=1))
    equal([line for line in look(answer, "tree", "PID").out.splitlines() if line[:1] == "!"],
          ["! queue orders is full: 2 of 2 items, 3 wait to put, 0 to get",
           "! semaphore is used up: 2 of 2 permits are held, 1,000+ tasks wait",
           "! pool is used up: 2 of 2 are held; of mail, 1 task waits",
           "! limit is used up: 2 of 2 are held, 1 task waits"])
    matches(look(answer, "ps", "PID").out, r"(?m)^  semaphore +2 +2 +1,000\+ +2 of 2 permits are held$")


@test
def tree_in_plain_letters():
    picture("deadlock-ascii.tree", DEADLOCK, "tree", "PID", env={"NO_COLOR": "1"})
    r = look(DEADLOCK, "tree", "PID", env={"LC_ALL": "C"})
    assert r.out.isascii(), r.out


@test
def tree_collapses_likes():
    picture("many.tree", MANY, "tree", "PID")
    r = look(MANY, "tree", "PID", "--all")
    equal(r.out.count("fetch"), 10000)


@test
def tree_collapses_branches_that_are_alike():
    picture("pairs.tree", PAIRS, "tree", "PID")


@test
def tree_collapses_kinds_where_details_differ():
    picture("hosts.tree", HOSTS, "tree", "PID")


@test
def tree_begins_with_the_blocked_loop_and_its_stack():
    picture("blocked.tree", {"snapshot": BLOCKED, "snapshot stacks task=2.7": FRAME}, "tree", "PID")


@test
def ps_shows_what_is_wrong_first():
    picture("deadlock.ps", DEADLOCK, "ps", "PID")


@test
def ps_groups_many_tasks():
    picture("many.ps", MANY, "ps", "PID")
    equal(look(MANY, "ps", "PID", "-a").out.count("fetch"), 10000)


@test
def ps_has_sections():
    picture("handles.ps", DEADLOCK, "ps", "PID", "--handles")
    picture("objects.ps", DEADLOCK, "ps", "PID", "--objects")
    picture("places.ps", DEADLOCK, "ps", "PID", "--places")
    picture("all.ps", DEADLOCK, "ps", "PID", "--all")


@test
def stacks_that_are_equal_are_shown_once():
    picture("stacks.stack", {"snapshot": STACKS}, "stack", "PID")
    equal(look({"snapshot": STACKS}, "stack", "PID", "--all").out.count("worker+0x11"), 4)


@test
def stack_of_one_task():
    with Inspector({"snapshot": STACKS}) as i:
        equal(run("stack", ME, "3").code, 0)
        equal(run("stack", ME, "2.3").code, 0)
    equal(i.requests, ["snapshot", "snapshot stacks task=1.3", "snapshot stacks task=2.3"])
    has(fails(2, {"snapshot": STACKS}, "stack", "PID", "77"), "there is no task 77 now")
    has(fails(2, {"snapshot": lines(loop())}, "stack", "PID", "9.9"), "there is no task 9.9 now")


@test
def top_in_a_pipe():
    first = b'resha_loop_seconds_total{loop="1"} 10\nresha_loop_idle_seconds_total{loop="1"} 5\n'
    r = look({"snapshot": DEADLOCK, "sample": SAMPLE, "stats": first}, "top", "PID", "-n", "1", "-d", "10ms")
    equal((r.code, r.err), (0, ""))
    has(r.out, "75 %")  # of the samples: the figures have not changed
    matches(r.out, r"60 %.*transfer a")
    matches(r.out, r"15 %.*clock")
    equal(look({"snapshot": DEADLOCK, "sample": SAMPLE, "stats": first}, "top", "PID", "-n2", "-d10ms")
          .out.count("fixture (pid PID)"), 2)


@test
def top_ends_with_q_on_a_terminal():
    pid, fd = pty.fork()
    if pid == 0:
        wait_for(lambda: os.path.exists(f"{folder()}/{ME}.sock"))
        os.execve(RESHA, [RESHA, "top", str(ME), "-d", "50ms"], environment(TERM="xterm"))
    with Inspector({"snapshot": DEADLOCK, "sample": SAMPLE, "stats": b"\n"}):
        seen = b""
        while seen.count(b"q ends") < 2:
            assert select.select([fd], [], [], 20)[0], seen
            seen += os.read(fd, 65536)
        os.write(fd, b"xq")
        while True:
            try:
                if not os.read(fd, 65536):
                    break
            except OSError:
                break
        equal(os.waitpid(pid, 0)[1], 0)
    os.close(fd)


@test
def top_gives_the_terminal_back():
    for how in (b"q", b"\x03", b"\x1c", signal.SIGHUP, signal.SIGTERM):
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        with Inspector({"snapshot": DEADLOCK, "sample": SAMPLE, "stats": b"\n"}):
            p = subprocess.Popen([RESHA, "top", str(ME), "-d", "50ms"], stdin=slave, stdout=slave, stderr=slave,
                                 start_new_session=True, env=environment(TERM="xterm"),
                                 preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
            wait_for(lambda: not termios.tcgetattr(slave)[3] & termios.ECHO)
            if isinstance(how, bytes):
                os.write(master, how)
            else:
                p.send_signal(how)
            while p.poll() is None:
                if select.select([master], [], [], 0.1)[0]:
                    os.read(master, 65536)
        equal((how, termios.tcgetattr(slave)), (how, before))
        os.close(master)
        os.close(slave)


@test
def a_second_ctrl_c_ends_it_at_once():
    master, slave = pty.openpty()
    with Inspector({"snapshot": lambda c: time.sleep(30)}):
        p = subprocess.Popen([RESHA, "top", str(ME)], stdin=slave, stdout=subprocess.PIPE, env=environment())
        wait_for(lambda: caught(p.pid, signal.SIGINT))
        p.send_signal(signal.SIGSTOP)
        p.send_signal(signal.SIGINT)
        p.send_signal(signal.SIGTERM)
        p.send_signal(signal.SIGCONT)
        p.wait(20)
    assert p.returncode in (-signal.SIGINT, -signal.SIGTERM), p.returncode
    p.stdout.close()
    os.close(master)
    os.close(slave)


@test
def top_ends_with_ctrl_c():
    with Inspector({"snapshot": DEADLOCK, "sample": SAMPLE, "stats": b"\n"}):
        p = start("top", ME, "-d", "20ms")
        p.stdout.readline()
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=20)
        equal(p.returncode, 0)


@test
def json_is_passed_through():
    for command in ("ps", "tree"):
        r = look(DEADLOCK, command, "PID", "--json")
        equal((r.code, r.err, r.raw), (0, "", DEADLOCK))
    equal(look({"snapshot": STACKS}, "stack", "PID", "--json").raw, STACKS)


@test
def stats_are_passed_through():
    text = b"# HELP x y\nx{loop=\"1\"} 1\n"
    r = look({"stats": text}, "stats", "PID")
    equal((r.code, r.raw), (0, text))
    has(fails(7, {"stats": b""}, "stats", "PID"), "hung up")
    equal(look({"stats": b"x 1\nx{lo"}, "stats", "PID").code, 7)


@test
def trace_is_written_in_one_step():
    trace = {"trace": b'[{"name":"a"}\n,{}\n]\n'}
    r = look(trace, "trace", "PID", "-o", "t.json", "-t", "10ms")
    equal((r.code, r.out), (0, ""))
    has(r.err, "t.json: 20 B; open it at https://ui.perfetto.dev")
    equal(os.listdir("."), ["t.json"])
    has(fails(3, trace, "trace", "PID", "-o", "t.json"), "t.json: is there already; -f replaces it")
    equal(look(trace, "trace", "PID", "-o", "t.json", "-f").code, 0)
    equal(look(trace, "trace", "PID", "-o", "-").raw, trace["trace"])


@test
def trace_goes_into_a_pipe_and_through_a_link():
    trace = {"trace": b'[{"name":"a"}]\n'}
    os.mkfifo("pipe")
    fd = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    equal(look(trace, "trace", "PID", "-f", "-o", "pipe", "-t", "10ms").code, 0)
    equal(os.read(fd, 100), trace["trace"])
    os.close(fd)
    equal(look(trace, "trace", "PID", "-o", "/dev/null", "-t", "10ms").code, 0)
    with open("here", "wb"):
        os.symlink("here", "link")
    has(fails(3, trace, "trace", "PID", "-o", "link"), "is there already")
    equal(look(trace, "trace", "PID", "-f", "-o", "link").code, 0)
    with open("here", "rb") as f:
        equal((f.read(), os.readlink("link")), (trace["trace"], "here"))
    equal(sorted(os.listdir(".")), ["here", "link", "pipe"])


@test
def trace_tells_of_notes_in_it_alone():
    trace = {"trace": b'[{"name":"left_out","a":"x"},\n{"left_out":1,"b":"y"},{"args":{"left_out":"loop 2\x1b"}}]\n'}
    equal(look(trace, "trace", "PID", "-o", "-", "-t", "10ms").err, "resha trace: loop 2?\n")
    equal(look(trace, "trace", "PID", "-o", "-", "-t", "10ms").raw, trace["trace"])


@test
def trace_that_is_cut_leaves_nothing():
    for cut in (b'[{"name":"a"},', b'[{"name":"a"}', b'[{"name":"a]', b'{"a":[1]', b'[{"name":"]\\"}]'):
        has(fails(7, {"trace": cut}, "trace", "PID", "-o", "t.json"), "stopped in the middle")
    refusal = b'{"type":"error","text":"another one traces"}\n{"type":"end","ok":false}\n'
    has(fails(6, {"trace": refusal}, "trace", "PID", "-o", "t.json"), "another one traces")
    has(fails(3, {"trace": b"[]\n"}, "trace", "PID", "-o", "no/such/t.json"), "no/such/t.json: No such file")
    equal(os.listdir("."), [])


@test
def trace_that_is_interrupted_leaves_nothing():
    def slowly(c):
        c.sendall(b"[\n")
        time.sleep(30)
    with Inspector({"trace": slowly}):
        p = start("trace", ME, "-o", "t.json", "-t", "60s")
        wait_for(lambda: os.listdir("."))
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=20)
        equal(p.returncode, 130)
        has(err.decode(), "nothing was kept")
    equal(os.listdir("."), [])


@test
def errors_have_a_code_each():
    has(fails(4, b"", "tree", "2147483647"), "there is no process 2147483647")
    r = run("tree", ME)
    equal((r.code, r.out), (5, ""))
    has(r.err, "RESHA_INSPECT=1")
    matches(r.err, rf"gdb -p {ME}( -ex 'source /\S+/libresha\.so\.\S+-gdb\.py')? -ex 'resha tree'")
    has(fails(2, b"", "tree", "x"), "a process is a number")
    has(fails(2, b"", "tree"), "which process?")
    has(fails(2, b"", "tree", "PID", "--josn"), "did you mean '--json'?")
    has(fails(2, b"", "stack", "PID", "a.b"), "a task is a number")
    has(fails(2, b"", "trace", "PID"), "where to?")
    has(fails(2, b"", "top", "PID", "-d", "1ms"), "10ms at least")
    refusal = lines({"type": "error", "text": "too many look at it"}, {"type": "end", "ok": False}, end=False)
    has(fails(6, refusal, "tree", "PID"), "too many look at it")


class TurnsAway(Inspector):
    """Says no to whoever comes, before it has heard what he wants."""
    def talk(self, c):
        with c:
            c.sendall(self.answers)


@test
def who_is_turned_away_unheard_is_told_why():
    with TurnsAway(b'{"type":"error","text":"too many look at it"}\n{"type":"end","ok":false}\n'):
        for _ in range(20):
            for command in (("tree", ME), ("stats", ME), ("trace", ME, "-f", "-o", "t.json")):
                r = run(*command)
                equal((r.code, r.out), (6, ""))
                has(r.err, "too many look at it")


@test
def answers_that_are_cut_are_refused():
    for end in range(0, len(DEADLOCK), 97):
        for command in ("ps", "tree", "stack"):
            code = look({"snapshot": DEADLOCK[:end]}, command, "PID").code
            equal((end, code), (end, 7))
    has(fails(7, b"", "tree", "PID"), "hung up without an answer")
    has(fails(7, lines(loop(), end=False), "tree", "PID"), "ends early")


@test
def answers_that_are_given_up_say_why():
    why = b'\n{"type":"error","text":"given up: too slow"}\n{"type":"end","ok":false}\n'
    for part in (b'{"type":"task","loop":1,"na', b'{"type":"task","loo', b"{", b""):
        for command in ("ps", "tree", "stack"):
            has(fails(6, lines(loop(), end=False) + part + why, command, "PID"), "given up: too slow")


@test
def json_that_is_cut_is_passed_and_told():
    r = look(lines(loop(), end=False), "ps", "PID", "--json")
    equal((r.code, r.raw), (7, lines(loop(), end=False)))
    has(r.err, "stopped in the middle")


@test
def other_users_are_refused():
    if os.geteuid() != 0:
        raise Skip("only root can be another user")
    p = subprocess.Popen(["sleep", "60"], user=65533)
    try:
        r = subprocess.run([RESHA, "tree", str(p.pid)], user=65534, capture_output=True, text=True, check=False)
        equal(r.returncode, 6)
        has(r.stderr, "belongs to another user (uid 65533)")
    except PermissionError as e:
        raise Skip("other users cannot run the command here") from e
    finally:
        p.kill()
        p.wait()


@test
def a_socket_of_another_process_is_not_asked():
    p = subprocess.Popen(["sleep", "60"])
    try:
        with Inspector({"snapshot": DEADLOCK}) as i:
            os.symlink(i.path, f"{folder()}/{p.pid}.sock")
            r = run("tree", p.pid)
            os.unlink(f"{folder()}/{p.pid}.sock")
        equal((r.code, i.requests), (6, []))
        has(r.err, "another program's")
    finally:
        p.kill()
        p.wait()


HOSTILE = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\u2066\u200b\u061c\ufeff\x7f\t"


@test
def names_cannot_move_the_cursor():
    evil = lines(
        loop(state=HOSTILE, backend=HOSTILE),
        task(1, HOSTILE, site=HOSTILE, what=HOSTILE, detail=HOSTILE, doing=HOSTILE, cancelled=HOSTILE, ignored=1),
        task(2, "x", state=HOSTILE, group="0x1"),
        scope("0x1", 1, kind=HOSTILE),
        {"type": "object", "loop": 1, "at": "0x2", "kind": HOSTILE, "name": HOSTILE, "detail": HOSTILE, "waiting": 1,
         "held": 1, "limit": 1},
        {"type": "handle", "loop": 1, "at": "0x3", "kind": HOSTILE, "opened_at": HOSTILE, "name": HOSTILE,
         "detail": HOSTILE},
        {"type": "place", "loop": 1, "site": HOSTILE, "name": HOSTILE, "tasks": 1, "stack_high": 1},
        {"type": "frame", "loop": 1, "task": 1, "depth": 0, "text": HOSTILE},
        {"type": "note", "text": HOSTILE}, program=HOSTILE, version=HOSTILE)
    raw = evil.replace(b"\\u001b", b"\x1b").replace(b"\\u0007", b"\x07").replace(b"\\r", b"\xff")
    for answer in (evil, raw):
        for args in (["ps"], ["ps", "--all"], ["tree"], ["stack"], ["top", "-n1", "-d10ms"], ["ps", "--json"]):
            r = look({"snapshot": answer, "sample": SAMPLE, "stats": b""}, *args, "PID")
            equal((args, r.code), (args, 0))
            text = r.raw.decode()  # is UTF-8, too
            bad = re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u061c\ufeff]", text)
            equal((args, bad), (args, []))
    refusal = lines({"type": "error", "text": HOSTILE}, end=False)
    equal(look(refusal, "tree", "PID").err.count("\x1b"), 0)
    equal(look({"stats": HOSTILE.encode() + b"\n"}, "stats", "PID").out.count("\x1b"), 0)


@test
def what_does_not_hang_together_is_shown_all_the_same():
    ring = lines(
        loop(), scope("0x1", 1), scope("0x2", 2), scope("0x3", 99), scope("0x4", 1, parent="0x4"),
        scope("0x5", 1, parent="0x6"), scope("0x6", 1, parent="0x5"),
        task(1, "one", group="0x2", holders=[1, 2, 77]), task(2, "two", group="0x1", holders=[1]),
        task(3, "three", group="0x3"), task(3, "again", group="0x77"), {**task(9, "elsewhere"), "loop": 12})
    r = look(ring, "tree", "PID")
    equal(r.code, 0)
    for name in ("one", "two", "three", "again", "elsewhere"):
        has(r.out, name)
    for command in ("ps", "stack"):
        equal(look(ring, command, "PID").code, 0)


@test
def a_very_deep_tree_is_no_trouble():
    deep = lines(loop(), *[line for i in range(1, 5001) for line in (
        task(i, "deep", group=hex(i - 1), what="children", object=hex(i)), scope(hex(i), i))])
    r = look(deep, "tree", "PID", env={"NO_COLOR": "1"})
    equal((r.code, r.out.count("deep")), (0, 5000))
    assert len(r.raw) < 10 * 10**6, len(r.raw)


@test
def nonsense_is_refused():
    for answer in (b"\n", b"hello\n", b"[]\n", b"{}\n", b"\x00" * 1000 + b"\n", b'{"type":"resha"\n',
                   b"{" * 100000 + b"\n", lines()[:-1] + b"x\n",
                   b'{"type":"task","loop":1,"id":1}\n{"type":"end","ok":true}\n'):
        for command in ("ps", "tree", "stack"):
            equal((answer[:30], look(answer, command, "PID").code), (answer[:30], 7))


@test
def a_line_without_end_is_given_up():
    needs_little_memory()
    def endless(c):
        while True:
            c.sendall(b"x" * 65536)
    for args in (["tree"], ["tree", "--json"], ["stats"]):
        with Inspector({"snapshot": endless, "stats": endless}):
            r = run(*args, ME, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)))
        equal((args, r.code), (args, 7))
        has(r.err, "a line that does not end")


@test
def an_answer_without_end_has_bounded_memory():
    needs_little_memory()
    def endless(c):
        c.sendall(lines(loop(), end=False))
        i = 0
        while True:
            c.sendall(b"".join(b'{"type":"task","loop":1,"id":%d,"name":"%d%s"}\n' % (k, k, b"x" * 4000)
                               for k in range(i, i + 100)))
            i += 100
    with Inspector({"snapshot": endless}):
        r = run("tree", ME, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 27, 3 << 27)))
    equal(r.code, 1)
    has(r.err, "more than fits into memory")


@test
def a_stopped_process_is_named():
    p = subprocess.Popen([sys.executable, "-c", f"""
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind("{folder()}/%d.sock" % os.getpid())
s.listen(8)
print("here", flush=True)
time.sleep(60)
"""], stdout=subprocess.PIPE)
    try:
        p.stdout.readline()
        p.send_signal(signal.SIGSTOP)
        r = run("tree", p.pid)
        equal(r.code, 6)
        has(r.err, f"is stopped, and answers nobody: kill -CONT {p.pid}")
        listed = run("ps")
        matches(listed.out, rf"{p.pid} .*is stopped")
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
        os.unlink(f"{folder()}/{p.pid}.sock")


@test
def programs_are_listed():
    with Inspector({"snapshot loops": lines(loop(tasks=12345))}):
        r = run("ps")
        equal(r.code, 0)
        matches(r.out, rf"(?m)^ *{ME}  \S+ +1 +12,345 ")
        found = [json.loads(line) for line in run("ps", "--json").out.splitlines()]
        equal([(x["loops"], x["type"]) for x in found if x["pid"] == ME], [(1, "program")])


@test
def a_full_disk_is_told():
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    with Inspector({"snapshot": MANY}), open("/dev/full", "wb") as full:
        for args in (["tree"], ["tree", "--json"], ["ps"]):
            r = subprocess.run([RESHA, *args, str(ME)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
            equal(r.returncode, 3)
            has(r.stderr, "No space left")


@test
def a_narrow_terminal_gets_no_wide_lines():
    for args in (["ps", "PID"], ["tree", "PID"], ["ps", "PID", "--all"]):
        with Inspector({"snapshot": DEADLOCK}):
            pid, fd = pty.fork()
            if pid == 0:
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
                os.execve(RESHA, [RESHA, *[str(ME) if a == "PID" else a for a in args]], environment(TERM="xterm"))
            seen = b""
            while True:
                try:
                    more = os.read(fd, 65536)
                except OSError:
                    break
                if not more:
                    break
                seen += more
            equal(os.waitpid(pid, 0)[1], 0)
            os.close(fd)
        widest = max(len(line) for line in seen.decode().replace("\r", "").split("\n"))
        assert widest <= 60, seen.decode()


@test
def help_fits_80_columns():
    for command in ("ps", "tree", "top", "stack", "trace", "stats"):
        for option in ("--help", "-h"):
            r = run(command, option)
            equal((r.code, r.err), (0, ""))
            assert all(len(line) <= 80 for line in r.out.splitlines()), r.out
        has(run(command, "--version").out, "resha ")
        has(run("--help").out, f"resha {command}")


if __name__ == "__main__":
    sys.exit(main())
