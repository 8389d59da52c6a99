#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""interrupt.py [NAME...]: Ctrl-C, a second Ctrl-C, and kill -9 at random moments ($KILLS of them, 5 by default;
$KILL_SEED repeats them). What the command said it had saved is there afterwards, the file is whole, and the same
command again asks for nothing it has."""
import os
import random
import re
import signal
import sys
import threading
import time

from harness import equal, has, main, matches, origin, query, run, server, start, test, wait_for, write


def drain(pipe, into):
    t = threading.Thread(target=lambda: into.extend(iter(pipe.readline, b"")), daemon=True)
    t.start()
    return t


def last_saved(said):
    numbers = [int(m[1]) for line in said if (m := re.match(rb"saved (\d+)\n$", line))]
    return numbers[-1] if numbers else 0


@test
def ctrl_c_once_saves_and_the_next_run_goes_on():
    with server() as s:
        write("list", "".join(f"{s.url}/slow/0.05/{i}\n" for i in range(100)))
        p = start("fetch", "-i", "list", "--db", "x.db", "-c", "4")
        wait_for(lambda: sum(s.seen.values()) >= 30)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=20)
        equal(p.returncode, 130)
        has(err.decode(), "stopping; what is in flight may finish")
        matches(err.decode(), r"\d+ of 100  0 failed")
        has(err.decode(), "the same command again goes on from here")
        done = query("x.db", "select count(*) from fetch where failed_at is null")[0][0]
        equal(done, sum(s.seen.values()))  # what was in flight was not thrown away
        assert 30 <= done < 100, done
        equal(query("x.db", "select outcome from run"), [("interrupted",)])
        r = run("fetch", "-i", "list", "--db", "x.db", "-c", "4")
        equal(r.code, 0)
        has(r.err, f"100 of 100  {done} already there  0 failed")
        equal(max(s.seen.values()), 1)
        equal(query("x.db", "select outcome, done from run"), [("complete", 100)])
        run("fetch", "-i", "list", "--db", "x.db", "-c", "50", "-q")  # complete: asks anew
        equal(min(s.seen.values()), 2)


@test
def ctrl_c_gives_up_what_never_answers():
    with server() as s:
        p = start("fetch", s.url + "/ok/1", s.url + "/never/1", "--db", "x.db", "--timeout", "60s")
        wait_for(lambda: s.seen["/never/1"])
        begin = time.monotonic()
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=20)
        equal(p.returncode, 130)
        assert time.monotonic() - begin < 8
        equal(query("x.db", "select url from fetch"), [(s.url + "/ok/1",)])


@test
def ctrl_c_twice_leaves_at_once():
    with server() as s:
        p = start("fetch", s.url + "/ok/1", s.url + "/never/1", "--db", "x.db", "--timeout", "60s")
        said = []
        t = drain(p.stderr, said)
        wait_for(lambda: s.seen["/never/1"])
        p.send_signal(signal.SIGINT)
        wait_for(lambda: any(b"stopping" in line for line in said))
        begin = time.monotonic()
        p.send_signal(signal.SIGINT)
        equal(p.wait(10), 130)
        assert time.monotonic() - begin < 1
        t.join()
        p.stdout.close()
        p.stderr.close()
        equal(query("x.db", "pragma integrity_check"), [("ok",)])


@test
def ctrl_c_while_waiting_for_retry_and_rate():
    with server() as s:
        for args in ((s.url + "/wait/60/x",), (s.url + "/ok/1", s.url + "/ok/2", "--rate", "1/m")):
            p = start("fetch", *args, "--db", "x.db")
            wait_for(lambda: s.seen["/wait/60/x"] and (len(args) == 1 or s.seen["/ok/1"]))
            time.sleep(0.1)
            begin = time.monotonic()
            p.send_signal(signal.SIGINT)
            p.communicate(timeout=20)
            equal(p.returncode, 130)
            assert time.monotonic() - begin < 2, args


@test
def kill_at_random_moments():
    seed = int(os.environ.get("KILL_SEED", random.randrange(10**6)))
    chance = random.Random(seed)
    kills = int(os.environ.get("KILLS", 5))
    items = 400
    with origin("--delay", "2ms", "--items", str(items)) as url:
        args = ("fetch", "hn", "--db", "x.db", "--base-url", url, "-c", "8", "-v")
        rounds = killed = 0
        while killed < kills:
            rounds += 1
            for name in ("x.db", "x.db-wal", "x.db-shm"):
                if os.path.exists(name):
                    os.unlink(name)
            goes_on = saved_before = 0
            while killed < kills:
                said = []
                p = start(*args)
                out = drain(p.stdout, [])
                t = drain(p.stderr, said)
                time.sleep(chance.uniform(0.0, 0.16))
                p.kill()
                p.wait()
                t.join(), out.join()
                p.stdout.close(), p.stderr.close()
                if p.returncode == 0:  # too late: it had ended, and the next run is a new one
                    saved_before = items
                    break
                killed += 1
                saved = last_saved(said)
                if not os.path.exists("x.db"):
                    equal(saved, 0)
                    continue
                equal(query("x.db", "pragma integrity_check"), [("ok",)])
                made = query("x.db", "select 1 from sqlite_master where name = 'stories'")
                rows = query("x.db", "select count(*) from stories")[0][0] if made else 0
                assert rows >= max(saved, saved_before), (f"KILL_SEED={seed}", saved, saved_before, rows)
                saved_before = rows
                goes_on += 1
            r = run(*args)
            equal(r.code, 0)
            equal(query("x.db", "select count(*), count(distinct id) from stories"), [(items, items)])
            if 0 < saved_before < items and goes_on:
                asked = len(re.findall(r"^200  .*/item/", r.err, re.M))
                equal(asked, items - saved_before)
    print(f"  {killed} kills in {rounds} rounds, seed {seed}")


sys.exit(main())
