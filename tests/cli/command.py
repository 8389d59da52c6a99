#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""command.py [NAME...]: the command as people use it: what it prints, what it stores, how it ends."""
import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

from harness import (Skip, equal, environment, has, main, matches, origin, query, run, server, start, test, wait_for,
                     write)

OWN = "resha fetch: "


def lines(result):
    return [json.loads(line) for line in result.out.splitlines()]


def complaint(*args):
    """What a command that cannot begin says: one line, and exit code 2."""
    r = run(*args)
    equal((r.code, r.out), (2, ""))
    equal(r.err.count("\n"), 1)
    return r.err.strip()


@test
def usage_errors_are_one_line():
    equal(complaint("fetch"), OWN + "nothing to fetch: give URLs, -i LIST or a preset; see resha fetch --help")
    equal(complaint("fetch", "--concurency", "5"),
          OWN + "unknown option '--concurency'; did you mean '--concurrency'?")
    equal(complaint("fetch", "-c", "0", "http://h/"), OWN + "-c 0: a whole number from 1 to 4096 is needed")
    equal(complaint("fetch", "-c", "many", "http://h/"), OWN + "-c many: a whole number from 1 to 4096 is needed")
    equal(complaint("fetch", "foo"), OWN + "no preset 'foo'; a URL starts with http:// or https://")
    equal(complaint("fetch", "-i", "missing.txt"), OWN + "missing.txt: No such file or directory")
    equal(complaint("fetch", "-i", "/"), OWN + "/: Is a directory")
    equal(complaint("fetch", "--each", "no-ids.txt", "http://h/{}"),
          OWN + "no-ids.txt: No such file or directory")
    equal(complaint("fetch", ""), OWN + "no preset ''; a URL starts with http:// or https://")
    write("bad.json", '{"a": [1, 2')
    equal(complaint("fetch", "--each", "bad.json", "http://h/{}"), OWN + "bad.json: malformed JSON")
    write("utf16", "7\n8\n".encode("utf-16-le"))
    equal(complaint("fetch", "--each", "utf16", "http://h/{}"),
          OWN + "utf16: has a 0 byte in it; save it as UTF-8")
    equal(complaint("fetch", "http://h/", "-H", "s3cret"),
          OWN + "-H: 'NAME: VALUE' is needed, or @FILE with one a line")
    equal(complaint("fetch", "http://h/", "--db", "x.db", "--columns", "a..b"),
          OWN + "--columns: 'a..b' is not NAME, a.b.c or NAME=a.b[0].c")
    equal(complaint("fetch", "http://h/", "--db", "x.db", "--columns", "a,b"),
          OWN + "--key id: is not one of --columns (id is the key unless --key says another)")
    equal(complaint("fetch", "http://h/", "--db", "x.db", "--columns", "a,b", "--key", "c"),
          OWN + "--key c: is not one of --columns")
    equal(complaint("fetch", "--each", "http://h/", "--ids", "items[*].id", "http://h/{}"),
          OWN + "--ids items[*].id: begins with $, as '$.items[*].id'")
    equal(complaint("fetch", "http://h/", "--db", "x.db", "--columns", "id,a,A=b"),
          OWN + "--columns: two columns are named 'A'; NAME=a.b gives another name")
    equal(complaint("fetsh"), "resha: unknown command 'fetsh'; did you mean 'resha fetch'?")
    assert not os.path.exists("x.db")


@test
def help_and_version():
    r = run("fetch", "--help")
    equal((r.code, r.err), (0, ""))
    assert r.out.startswith("Usage: resha fetch [options] URL...") and len(r.out.splitlines()) < 60
    matches(run("--version").out, r"^resha \d+\.\d+\.\d+\n$")
    equal(run("--help").code, 0)
    equal(run().code, 2)


@test
def json_lines_in_a_pipe():
    with server() as s:
        data = base64.urlsafe_b64encode(b"caf\xe9\0\xff").decode()
        urls = [s.url + p for p in ("/ok/1", "/status/404", "/bytes/" + data, '/text/"quoted"\\%00')]
        r = run("fetch", *urls)
        equal(r.code, 1)
        by = {e["url"]: e for e in lines(r)}
        equal(sorted(by), sorted(urls))
        ok = by[urls[0]]
        equal((ok["status"], ok["content_type"], ok["error"], ok["attempts"]), (200, "application/json", None, 1))
        equal(json.loads(ok["body"])["id"], "1")
        matches(ok["started_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        equal((by[urls[1]]["status"], by[urls[1]]["error"], by[urls[1]]["body"]), (404, "404 Not Found", None))
        equal(base64.b64decode(by[urls[2]]["body_base64"]), b"caf\xe9\0\xff")
        equal(by[urls[3]]["body"], '"quoted"\\%00')
        has(r.err, f"{OWN}{urls[1]}: 404 Not Found\n")
        matches(r.err, r"\n4 of 4  1 failed  [\d.]+ s\n$")


@test
def lists_in_all_their_forms():
    with server() as s:
        write("list", f"\ufeff{s.url}/ok/1\r\n\r\n# {s.url}/ok/no\r\n  {s.url}/ok/2  \r\nnonsense\r\n{s.url}/ok/3")
        r = run("fetch", "-i", "list", "--db", "x.db")
        equal((r.code, r.out), (1, ""))
        has(r.err, f"{OWN}nonsense: line 5 is no URL: it does not begin with http:// or https://\n")
        equal(query("x.db", "select url from fetch where failed_at is null order by url"),
              [(f"{s.url}/ok/{i}",) for i in (1, 2, 3)])
        equal(query("x.db", "select url, status, attempts from fetch where failed_at is not null"),
              [("nonsense", None, 0)])
        r = run("fetch", "-i", "-", "-q", text_in=f"{s.url}/ok/9\n")
        equal((r.code, r.err, len(lines(r))), (0, "", 1))
        write("utf16", "http://h/".encode("utf-16"))
        equal(run("fetch", "-i", "utf16").code, 2)
        write("empty", "# nothing\n")
        equal(run("fetch", "-i", "empty", "-q").code, 0)


@test
def a_list_is_followed_as_it_comes():
    with server() as s:
        p = start("fetch", "-i", "-", stdin=subprocess.PIPE)
        for i in range(3):
            p.stdin.write(f"{s.url}/ok/{i}\n".encode())
            p.stdin.flush()
            has(json.loads(p.stdout.readline())["url"], f"/ok/{i}")
        p.stdin.close()
        equal(p.wait(10), 0)


def no_host():
    """What is said of a name that does not exist: where no name server answers, nobody knows that."""
    try:
        socket.getaddrinfo("no-such-host.invalid", 80)
    except socket.gaierror as e:
        return "try later" if e.errno == socket.EAI_AGAIN else "no such host"
    return ""


@test
def bad_input_has_one_line_each_and_loses_nothing_else():
    with server() as s:
        expected = {
            s.url + "/ok/1": None,
            s.url + "/status/404": "404 Not Found",
            s.url + "/status/500": "500 Internal Server Error (2 attempts in ",
            s.url + "/loop/0": "redirect",
            s.url + "/big/5000": "larger than 4096 bytes; --max-body sets the limit",
            s.url + "/cut/1": "",
            s.url + "/reset/1": "",
            s.url + "/never/1": "",
            "http://127.0.0.1:1/": "refused",
            "http://no-such-host.invalid/": no_host(),
            "http://h:port/": "no URL: it has a port that is not a number up to 65535",
            s.url + "/ok/2": None,
        }
        r = run("fetch", *expected, "--db", "x.db", "--retries", "1", "--retry-for", "4s", "--timeout", "1s",
                "--max-body", "4k")
        equal(r.code, 1)
        errors = dict(query("x.db", "select url, error from fetch"))
        equal(sorted(errors), sorted(expected))
        for url, part in expected.items():
            told = [line for line in r.err.splitlines() if line.startswith(OWN + url + ": ")]
            if part is None:
                equal((errors[url], told), (None, []))
            else:
                equal(len(told), 1)
                has(errors[url].lower(), part.lower())
                equal(told[0], f"{OWN}{url}: {errors[url]}")
        matches(r.err, r"12 of 12  10 failed")


@test
def what_is_no_url_keeps_its_password_and_its_bytes():
    with server() as s:
        write("list", f"ftp://me:s3cret@h/\n{s.url}/ok/1\n{s.url}/ok/1\0x\n")
        r = run("fetch", "-i", "list", "--db", "x.db")
        equal((r.code, r.out), (1, ""))
        assert "s3cret" not in r.err, r.err
        with open("x.db", "rb") as f:
            assert b"s3cret" not in f.read()
        equal(query("x.db", "select failed_at is null from fetch where url like '%/ok/1'"), [(1,)])
        equal(query("x.db", "select count(*) from fetch"), [(3,)])
        for option in ("--base-url", "--each"):
            r = run("fetch", s.url + "/{}", "--each", "-", option, "http://me:s3cret@h:port/")
            equal(r.code, 2)
            assert "s3cret" not in r.err, r.err
        r = run("fetch", "-i", "list", "-i", "list")
        equal((r.code, r.err.count("\n")), (2, 1))
        write("controls", "ftp://h/\x1b[31m\n" + "ftp://h/\u009b31m\n")
        r = run("fetch", "-i", "controls", "-q")
        equal((r.code, "\x1b" in r.err, "\u009b" in r.err), (1, False, False))
        equal(r.err.count("\ufffd"), 2)


def shell(command):
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)


@test
def standard_files_that_are_closed():
    with server() as s:
        fetch = f"{os.environ['RESHA']} fetch {s.url}/ok/1"
        equal(shell(f"{fetch} -o out.jsonl 2>&-").returncode, 0)
        with open("out.jsonl", encoding="utf-8") as f:
            equal(len([json.loads(line) for line in f]), 1)
        r = shell(f"{fetch} >&-")
        equal(r.returncode, 3)
        has(r.stderr, "stdout: Bad file descriptor")
        r = shell(f"{os.environ['RESHA']} fetch -i - <&-")
        equal(r.returncode, 2)
        has(r.stderr, "stdin: Bad file descriptor")


@test
def too_few_files_are_called_so():
    with server() as s:
        urls = " ".join(f"{s.url}/slow/0.2/{i}" for i in range(30))
        r = shell(f"ulimit -n 16; {os.environ['RESHA']} fetch {urls} -c 30 --retries 0")
        equal(r.returncode, 1)
        has(r.stderr, "Too many open files; raise 'ulimit -n'")
        assert "refused" not in r.stderr, r.stderr


@test
def databases_that_cannot_be_written():
    with server() as s:
        write("text.db", "this is not a database, only a file of text that is long enough for a header " * 20)
        os.mkdir("folder.db")
        for db in ("text.db", "folder.db", "no/such/folder/x.db"):
            r = run("fetch", s.url + "/ok/1", "--db", db)
            equal((r.code, r.out, r.err.count("\n")), (3, "", 1))
            has(r.err, db)
        run("fetch", s.url + "/ok/2", "--db", "newer.db")
        query("newer.db", "pragma user_version = 99")
        r = run("fetch", s.url + "/ok/1", "--db", "newer.db")
        equal((r.code, r.err.count("\n")), (3, 1))
        has(r.err, "user_version is 99")
        query("other.db", "create table fetch (a)")
        r = run("fetch", s.url + "/ok/1", "--db", "other.db")
        equal((r.code, r.err), (3, OWN + "other.db: has a table fetch or run of another program; take another file\n"))
        equal(query("other.db", "select name from sqlite_master"), [("fetch",)])
        r = run("fetch", s.url + "/ok/1", "--summary", "no/such/folder/x")
        equal((r.code, r.err.count("\n")), (3, 1))
        r = run("fetch", s.url + "/ok/1", "-o", "no/such/folder/x")
        equal((r.code, r.err.count("\n")), (3, 1))
        equal(s.seen["/ok/1"], 0)  # all that was found before anything was asked for


def full_disk(command):
    """Runs the shell command in a folder on a disk of 1 MB."""
    mount = 'mount -t tmpfs -o size=1m none . && cd "$PWD" && '
    r = subprocess.run(["unshare", "-m", "sh", "-c", mount + command], capture_output=True, text=True,
                       env=environment(), check=False)
    if "unshare" in r.stderr or "mount" in r.stderr:
        raise Skip("cannot mount a small disk")
    return r


@test
def a_full_disk_keeps_what_was_committed():
    with server() as s:
        write("list", "".join(f"{s.url}/big/{20000 + i}\n" for i in range(200)))
        folder = os.getcwd()
        os.mkdir("disk")
        os.chdir("disk")
        r = full_disk(f"{os.environ['RESHA']} fetch -i {folder}/list -v --rate 400/s --db x.db; "
                      f"echo $? >{folder}/code; "
                      f"sqlite3 x.db 'pragma integrity_check; select count(*) from fetch' >{folder}/rows")
        os.chdir(folder)
        equal(open("code").read(), "3\n")
        saved = [int(n) for n in re.findall(r"^saved (\d+)$", r.stderr, re.M)]
        check, rows = open("rows").read().split()
        equal(check, "ok")
        assert saved and saved[-1] <= int(rows) < 200, (saved, rows)
        matches(r.stderr, r"resha fetch: .*full")


@test
def a_file_that_may_not_grow():
    with server() as s:
        write("list", "".join(f"{s.url}/big/{20000 + i}\n" for i in range(200)))
        command = f"ulimit -f 600; exec {os.environ['RESHA']} fetch -i list --db x.db"
        r = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
        equal(r.returncode, 3)
        has(r.stderr, "x.db")
        equal(query("x.db", "pragma integrity_check"), [("ok",)])


@test
def hn_stores_and_tells_the_best_five():
    with origin("--delay", "20ms") as url:
        r = run("fetch", "hn", "--top", "20", "--db", "stories.db", "--base-url", url)
        equal(r.code, 0)
        matches(r.err, r"^21 of 21  0 failed  [\d.]+ s\n$")
        best = query("stories.db",
                     "select '  [' || score || '] ' || title from stories order by score desc, id limit 5")
        equal(r.out, "Saved 20 stories. Top 5 by score:\n" + "".join(line + "\n" for line, in best))
        equal(query("stories.db", "select count(*), count(distinct id) from stories"), [(20, 20)])
        equal(query("stories.db", "select typeof(id), typeof(title), typeof(score) from stories limit 1"),
              [("integer", "text", "integer")])
        equal(query("stories.db", "select count(*) from fetch"), [(21,)])
        equal(query("stories.db", "pragma user_version"), [(1,)])
        command = f"resha fetch '/v0/item/{{}}.json' --each /v0/topstories.json --base-url {url}" \
                  " --table stories --columns id,title,url,score --key id --first 20"
        equal(query("stories.db", "select command, outcome, done, failed from run"), [(command, "complete", 21, 0)])
        stats = json.loads(lines(run("fetch", url + "/stats"))[0]["body"])
        equal(stats["most_at_once"], 5)
        r = run("fetch", "hn", "--first", "20", "--db", "stories.db", "--base-url", url + "/v0", "-q")
        equal((r.code, r.out, r.err), (0, "", ""))
        equal(query("stories.db", "select count(*) from stories"), [(20,)])


@test
def a_bad_day_of_hn():
    faults = [word for fault in ("7=busy", "11=never", "14=null", "3=reset") for word in ("--fault", fault)]
    with origin("--delay", "20ms", *faults) as url:
        r = run("fetch", "hn", "--top", "20", "--db", "s.db", "--base-url", url, "--timeout", "1s", "--retry-for", "2s",
                "--retries", "2")
        equal(r.code, 1)
        has(r.out, "Saved 18 stories. Top 5 by score:")
        matches(r.err, r"item/1011\.json: .* \(\d attempts in [\d.]+ s\)\n")
        matches(r.err, r"21 of 21  1 empty  1 failed  ")
        equal(query("s.db", "select count(*) from stories where id in (1007, 1003)"), [(2,)])
        equal(query("s.db", "select count(*) from stories where id in (1011, 1014)"), [(0,)])


@test
def the_second_time_only_what_changed():
    with server() as s:
        urls = [f"{s.url}/etag/{i}" for i in range(5)]
        args = ("fetch", *urls, "--db", "x.db", "--columns", "id,version", "--table", "thing")
        equal(run(*args).code, 0)
        r = run(*args)
        has(r.err, "5 of 5  5 unchanged (304)  0 failed")
        equal(query("x.db", "select count(*), min(status), min(length(body)) > 0 from fetch where failed_at is null"),
              [(5, 200, 1)])
        s.version = 2
        query("x.db", "drop table thing")
        has(run(*args).err, "5 of 5  0 failed")
        equal(query("x.db", "select distinct version from thing"), [(2,)])
        query("x.db", "drop table thing")  # made again from what is stored, though the server sends nothing
        has(run(*args).err, "5 unchanged (304)")
        equal(query("x.db", "select count(*), max(version) from thing"), [(5, 2)])
        equal(query("x.db", "select count(*), sum(unchanged) from run"), [(4, 10)])


@test
def a_failure_leaves_the_last_good_answer():
    with server() as s:
        url = s.url + "/flaky/0/x"
        equal(run("fetch", url, "--db", "x.db").code, 0)
        body = query("x.db", "select body from fetch")
        query("x.db", "update fetch set url = replace(url, '/flaky/0/x', '/status/410')")
        equal(run("fetch", s.url + "/status/410", "--db", "x.db").code, 1)
        equal(query("x.db", "select status, error, body is not null, failed_at is not null from fetch"),
              [(410, "410 Gone", 1, 1)])
        equal(query("x.db", "select body from fetch"), body)


@test
def answers_that_make_no_row_fail_alone():
    with server() as s:
        r = run("fetch", s.url + "/ok/1", s.url + "/text/hello", s.url + "/text/[1]", s.url + "/text/null",
                s.url + '/text/{"a":1}', "--db",
                "x.db", "--columns", "id,path,deep=path.x", "--table", "t")
        equal(r.code, 1)
        has(r.err, "/text/hello: the answer is not JSON\n")
        has(r.err, "/text/[1]: the answer is no JSON object that could be a row, but: array\n")
        has(r.err, '/text/{"a":1}: the answer has no value for the key \'id\'\n')
        matches(r.err, r"5 of 5  1 empty  3 failed")
        equal(query("x.db", "select id, path, deep, fetched_at is not null from t"), [("1", "/ok/1", None, 1)])


@test
def ids_from_files_urls_and_queries():
    with server() as s:
        template = s.url + "/ok/{}"
        write("ids", "a\n# b\nc d\n")
        r = run("fetch", template, "--each", "ids")
        equal(sorted(e["url"] for e in lines(r)), [s.url + "/ok/a", s.url + "/ok/c%20d"])
        r = run("fetch", template, "--each", s.url + "/ids/3", "--ids", "$.items[*].sku")
        equal(sorted(e["url"] for e in lines(r)), [f"{s.url}/ok/s{i}" for i in (1, 2, 3)])
        has(r.err, "4 of 4")
        write("ids.json", "[7, 8]")
        r = run("fetch", template, "--each", "ids.json", "--db", "x.db", "-q")
        r = run("fetch", template, "--each", "sql:select substr(url, -1) from fetch", "--db", "x.db")
        has(r.err, "2 of 2")
        r = run("fetch", template, "--each", "sql:delete from fetch returning url", "--db", "x.db")
        equal(r.code, 2)
        has(r.err, "x.db: a cursor is for SQL that reads rows; SQL: delete from fetch")
        equal(query("x.db", "select count(*) from fetch"), [(2,)])
        r = run("fetch", template, "--each", s.url + "/ids/3")
        equal(r.code, 1)
        has(r.err, "no list of ids: ")
        r = run("fetch", template, "--each", s.url + "/status/404")
        equal(r.code, 1)


@test
def retries_are_made_when_it_may_help():
    with server() as s:
        equal(run("fetch", s.url + "/flaky/1/a", "--retry-for", "20s").code, 0)
        equal(s.seen["/flaky/1/a"], 2)
        for status in (401, 403, 404, 410, 501):
            run("fetch", f"{s.url}/status/{status}")
            equal(s.seen[f"/status/{status}"], 1)
        equal(run("fetch", s.url + "/status/503", "--retries", "0").code, 1)
        equal(s.seen["/status/503"], 1)
        begin = time.monotonic()
        equal(run("fetch", s.url + "/wait/1/a").code, 0)
        assert time.monotonic() - begin >= 1
        r = run("fetch", s.url + "/wait/3600/a")
        equal(r.code, 1)
        has(r.err, "429 Too Many Requests; asks to wait 1 h 0 m, longer than --retry-for leaves\n")


@test
def waiting_for_a_retry_holds_no_place():
    with server() as s:
        begin = time.monotonic()
        r = run("fetch", s.url + "/wait/2/b", *(f"{s.url}/ok/{i}" for i in range(10)), "-c", "1", "-v")
        equal(r.code, 0)
        assert time.monotonic() - begin < 4
        order = re.findall(r"^(\d+)  \S+ s  \S+/(\w+)$", r.err, re.M)
        equal(order[0], ("429", "b"))
        equal(order[-1], ("200", "b"))
        equal(len(order), 12)


@test
def limits_hold():
    with server() as s:
        run("fetch", *(f"{s.url}/slow/0.05/{i}" for i in range(24)), "-c", "3")
        equal(s.most, 3)
        begin = time.monotonic()
        run("fetch", *(f"{s.url}/ok/{i}" for i in range(11)), "--rate", "20/s")
        took = time.monotonic() - begin
        assert took >= 0.5, took


@test
def secrets_stay_where_they_belong():
    with server() as s:
        url = s.url.replace("http://", "http://me:pass-s3cret@")
        write("headers", "X-Key: file-s3cret\n")
        p = start("fetch", url + "/slow/0.5/x", url + "/status/404", "-H", "Authorization: Bearer s3cret",
                  "-H", "@headers", "--db", "x.db", "-v", "--summary", "sum.json", "-o", "out.json")
        wait_for(lambda: s.seen["/slow/0.5/x"])
        with open(f"/proc/{p.pid}/cmdline", encoding="utf-8") as f:
            assert "Bearer s3cret" not in f.read()
        out, err = p.communicate(timeout=20)
        sent = s.headers["/slow/0.5/x"]
        equal((sent["authorization"], sent["x-key"]), ("Bearer s3cret", "file-s3cret"))
        for name in ("x.db", "sum.json", "out.json"):
            with open(name, "rb") as f:
                assert b"s3cret" not in f.read(), name
        assert b"s3cret" not in out + err, err
        equal(query("x.db", "select count(*) from fetch"), [(2,)])


@test
def summary_is_json():
    with server() as s:
        run("fetch", s.url + "/ok/1", s.url + "/status/404", "--summary", "sum.json", "-q")
        with open("sum.json", encoding="utf-8") as f:
            got = json.load(f)
        equal((got["total"], got["done"], got["failed"], got["exit"], got["outcome"]), (2, 1, 1, 1, "complete"))
        equal(got["failures"], [{"url": s.url + "/status/404", "status": 404, "error": "404 Not Found", "attempts": 1}])


@test
def output_to_a_file_beside_the_database():
    with server() as s:
        r = run("fetch", s.url + "/ok/1", "--db", "x.db", "-o", "out.jsonl")
        equal((r.code, r.out), (0, ""))
        with open("out.jsonl", encoding="utf-8") as f:
            equal(json.loads(f.read())["status"], 200)


@test
def nobody_reads_any_more():
    with server() as s:
        write("list", "".join(f"{s.url}/big/{100000 + i}\n" for i in range(100)))
        p = start("fetch", "-i", "list")
        p.stdout.readline()
        p.stdout.close()
        equal(p.wait(20), 3)
        has(p.stderr.read().decode(), "stdout: Broken pipe")
        p.stderr.close()


@test
def on_a_terminal():
    with server() as s:
        command = f"{os.environ['RESHA']} fetch {s.url}/ok/1 {s.url}/status/404 {s.url}/slow/0.6/x"
        r = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, env=environment(),
                           check=False)
        equal(r.returncode, 1)
        seen = r.stdout.decode()
        matches(seen, rf"200  \d+ B +[\d.]+ s  {re.escape(s.url)}/ok/1")
        has(seen, f"{OWN}{s.url}/status/404: 404 Not Found")
        draws = len(re.findall(r"\r\x1b\[K2 of 3  1 failed", seen))
        assert 2 <= draws <= 7, draws  # at most ten a second
        matches(seen, r"3 of 3  1 failed  0\.\d+ s\r\n$")


@test
def the_demo_in_a_pipe():
    picture = r"""resha demo: 20 stories from a built-in server that takes 200 ms for each

1  One at a time +(\d\.\d) s
   ▌id▌01▌02▌.*▌

2  Five at a time: gather\(fetch, ids, \.limit = 5\) +(\d\.\d) s
   ▌id▌01▌.*
      ▌02▌.*
      ▌03▌.*
      ▌04▌.*
      ▌05▌.*

3  All at once +(\d\.\d) s
   ▌id▌01\.*▌
      ▌02\.*▌
      ▌03\.*▌
   \.\.\. 17 more lanes like these: fast, and rude

4  A bad day: 07 answers 503, 11 never answers, 14 is null +(\d\.\d) s
(?: +▌.*\n){5}   07 tried again after 0\.4 s \(503, Retry-After\)   11 timed out after 1\.0 s
   18 stored, 1 empty, 1 failed; nobody else waited for them

5  The classic mistake: 03 is parsed by a call that blocks +(\d\.\d) s
(?: +▌.*\n){5}(?:   task "story 03" from cli/blocking\.c:\d+ blocks the loop, for \d+ ms by now.*
(?:      .*usleep.* <- parse .*\n)?)?   The same on a thread: resha_pool_run\(NULL, parse, \.\.\.\) +(\d\.\d) s
(?: +▌.*\n){5,6}
6  Who is waiting for what: resha tree, taken in act 4 after 1\.1 s
   group: \d+ running
(?:   [├│└ ].*\n)*   [├└]─ \d+ story 11 waits .* in http GET 127\.0\.0\.1:\d+: waits for the answer .*
(?:   [├│└ ].*\n)+
7  Work that computes, four times 0\.1 s, on \d+ processors?: the same map in four places
   gather       tasks +\d+\.\d s +▌01.*▌
   pool_map     threads +\d+\.\d s +▌0.*
(?: +▌.*\n)*   workers_map  processes +\d+\.\d s +▌[0x].*
(?: +▌.*\n)*   run_loops    loops +\d+\.\d s +▌0.*
(?: +▌.*\n)*   04 crashed, and the others did not notice: worker process: killed by signal 11 \(SIGSEGV\)

Saved 20 stories\. Top 5 by score:
(?:  \[\d+\] .*\n){5}Next: .* fetch hn --top 20 --db mine\.db .*
"""
    r = run("demo", env=environment(DEMO_FAST="1"))
    equal((r.code, r.err), (0, ""))
    m = re.fullmatch(picture, r.out)
    assert m, r.out
    times = [float(t) for t in m.groups()]
    assert times[0] > 3 * times[1] > 3 * times[2], times
    assert times[4] > times[5], times
    equal(query("stories.db", "select count(*) from stories"), [(20,)])
    p = start("demo", env=environment(NO_COLOR="1"))  # again, over the same file, in plain letters
    out = b""
    while b"\n3 " not in out:
        line = p.stdout.readline()
        assert line, p.communicate()
        out += line
    p.send_signal(signal.SIGINT)
    more, err = p.communicate(timeout=20)
    equal((p.returncode, err), (130, b""))
    assert (out + more).isascii() and b"|id|01|" in out, out
    equal(query("stories.db", "select count(*) from stories"), [(20,)])


sys.exit(main())
