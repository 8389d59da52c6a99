# SPDX-License-Identifier: MIT
"""An inspector that answers what a test says: a socket of this very process, where `resha ps PID` looks for it."""
import json
import os
import socket
import threading


def folder():
    """Where inspectors of this user put their sockets."""
    uid = os.geteuid()
    run = f"/run/user/{uid}"
    if os.path.isdir(run) and not os.path.islink(run) and os.stat(run).st_uid == uid:
        return f"{run}/resha"
    return f"/tmp/resha-{uid}"


def lines(*records, end=True, **head):
    """An answer, of dictionaries; head: changes of the first line."""
    first = {"type": "resha", "protocol": 1, "version": "9.9.9", "pid": os.getpid(), "program": "fixture", "loops": 1,
             "debug": False, **head}
    all_of_it = [first, *records, *([{"type": "end", "ok": True}] if end else [])]
    return "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in all_of_it).encode()


class Inspector:
    """answers: of each request (its first words) the bytes; a function gets the connection and does as it likes."""

    def __init__(self, answers):
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        self.path = f"{folder()}/{os.getpid()}.sock"
        self.answers, self.requests = answers, []
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                c, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(c,), daemon=True).start()

    def talk(self, c):
        with c:
            try:
                request = b""
                while not request.endswith(b"\n"):
                    more = c.recv(256)
                    if not more:
                        return
                    request += more
                words = request.decode().strip()
                self.requests.append(words)
                found = [k for k in self.answers if words == k or words.startswith(k + " ")]
                answer = self.answers[max(found, key=len)] if found else lines({"type": "error", "text": "no such"})
                if callable(answer):
                    answer(c)
                else:
                    c.sendall(answer)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client has had enough

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        os.unlink(self.path)
        self.thread.join(5)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
