# SPDX-License-Identifier: MIT
"""A small origin for examples and usage programs, on a free port of loopback: the story API, slow, broken and missing
pages. Each connection is a thread; what the server saw is counted."""
import http.server
import json
import threading
import time

DELAY = 0.05  # of each answer
TITLES = ["It's \"quoted\", and stored as it is", "Coroutines in C", "A clock that does not tick", "नमस्ते, दुनिया"]


def story(number):
    return {"by": f"user{number % 7}", "descendants": number % 50, "id": number, "kids": [number + 1, number + 2],
            "score": number * 37 % 500, "time": 1700000000 + number, "title": f"{TITLES[number % 4]} {number}",
            "type": "story", "url": f"https://example.org/{number}"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.counts["connections"] += 1

    def log_message(self, *args):
        pass

    def answer(self, body, status=200, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, value):
        self.answer(json.dumps(value, ensure_ascii=False).encode(), headers=[("Content-Type", "application/json")])

    def do_GET(self):
        counts, parts = self.server.counts, self.path.strip("/").split("/")
        if parts[0] == "stats":
            self.answer_json(counts)
            return
        with self.server.lock:
            counts["requests"] += 1
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
        try:
            time.sleep(float(parts[1]) if parts[0] == "delay" else DELAY)
            self.serve(parts)
        finally:
            with self.server.lock:
                counts["now"] -= 1

    def serve(self, parts):
        counts = self.server.counts
        if parts[:2] == ["v0", "topstories.json"]:
            self.answer_json(list(range(1001, 1501)))
        elif parts[:2] == ["v0", "item"]:
            number = int(parts[2].split(".")[0])
            self.answer_json(story(number) if 1000 < number <= 1500 else None)
        elif parts[0] == "status":
            self.answer(b"x" * 10, int(parts[1]))
        elif parts[0] == "delay":
            self.answer(b"late\n")
        elif parts[0] == "flaky":  # /flaky/N/KEY: 503 so many times, then 200
            with self.server.lock:
                seen = counts.setdefault("/".join(parts), 0)
                counts["/".join(parts)] += 1
            self.answer(b"up again\n" if seen >= int(parts[1]) else b"down\n", 200 if seen >= int(parts[1]) else 503)
        elif parts[0] == "close":
            self.close_connection = True
        elif parts[0] == "page":
            self.answer(b"<html>" + b"." * int(parts[1]) + b"</html>\n", headers=[("Content-Type", "text/html")])
        else:
            self.answer(b"no such page\n", 404)


class Httpd(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


class Server:
    """with Server(True) as s: s.url"""
    def __init__(self, wanted=True):
        self.httpd, self.url = None, ""
        if wanted:
            self.httpd = Httpd(("127.0.0.1", 0), Handler)
            self.httpd.lock = threading.Lock()
            self.httpd.counts = {"requests": 0, "connections": 0, "now": 0, "most": 0}
            self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"

    def __enter__(self):
        if self.httpd:
            threading.Thread(target=self.httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        if self.httpd:
            self.httpd.shutdown()
            self.httpd.server_close()
