# SPDX-License-Identifier: MIT
"""A server that misbehaves on request, for the tests of the command. The path says how; it counts its requests."""
import base64
import collections
import json
import socket
import socketserver
import struct
import threading
import time


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while self.one_request():
                pass
        except (ConnectionError, ValueError, OSError):
            pass

    def one_request(self):
        line = self.rfile.readline(65537).decode("latin-1")
        if not line.strip():
            return False
        method, path, _ = line.split()
        headers = {}
        while (h := self.rfile.readline(65537).decode("latin-1").strip()):
            name, _, value = h.partition(":")
            headers[name.lower()] = value.strip()
        server = self.server
        with server.lock:
            server.seen[path] += 1
            server.headers[path] = headers
            server.now += 1
            server.most = max(server.most, server.now)
            nth = server.seen[path]
        try:
            return self.answer(path, headers, nth)
        finally:
            with server.lock:
                server.now -= 1

    def send(self, status, body=b"", headers=(), length=None):
        if isinstance(body, str):
            body = body.encode()
        head = f"HTTP/1.1 {status} Reason\r\nContent-Length: {len(body) if length is None else length}\r\n"
        self.wfile.write((head + "".join(h + "\r\n" for h in headers) + "\r\n").encode() + body)
        return length is None

    def answer(self, path, headers, nth):
        what, *rest = path.strip("/").split("/")
        arg = rest[0] if rest else ""
        json_type = "Content-Type: application/json"
        if what == "ok":
            return self.send(200, json.dumps({"id": arg, "path": path}), [json_type])
        if what == "status":
            return self.send(int(arg), f"status {arg}")
        if what == "flaky":  # /flaky/TIMES/KEY
            return self.send(503 if nth <= int(arg) else 200, json.dumps({"id": 1, "nth": nth}), [json_type])
        if what == "wait":  # /wait/SECONDS/KEY: 429 once
            return self.send(429, "", [f"Retry-After: {arg}"]) if nth == 1 else self.send(200, "at last")
        if what == "slow":
            time.sleep(float(arg))
            return self.send(200, f"after {arg}")
        if what == "never":
            self.server.end.wait(60)
            return False
        if what == "loop":
            return self.send(302, "", [f"Location: /loop/{int(arg or 0) + 1}"])
        if what == "big":
            return self.send(200, b"x" * int(arg))
        if what == "bytes":
            return self.send(200, base64.urlsafe_b64decode(arg), ["Content-Type: application/octet-stream"])
        if what == "cut":
            return self.send(200, "only a part", length=1000)
        if what == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return False
        if what == "etag":
            tag = f'"{self.server.version}"'
            if headers.get("if-none-match") == tag:
                return self.send(304, "", [f"ETag: {tag}"])
            return self.send(200, json.dumps({"id": arg, "version": self.server.version}), [json_type, f"ETag: {tag}"])
        if what == "ids":
            items = [{"id": i, "sku": f"s{i}"} for i in range(1, int(arg) + 1)]
            return self.send(200, json.dumps({"items": items}), [json_type])
        if what == "text":
            return self.send(200, arg)
        return self.send(404, "no such path")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.end = threading.Event()
        self.seen = collections.Counter()
        self.headers = {}
        self.now = self.most = 0
        self.version = 1
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that has gone is no news

    def close(self):
        self.end.set()
        self.shutdown()
        self.server_close()
