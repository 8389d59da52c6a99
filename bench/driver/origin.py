# SPDX-License-Identifier: MIT
"""The origin of the fetch benchmark: nginx on a free port of loopback, serving small files of JSON."""
import contextlib
import grp
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

CONFIG = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
{user}
events {{ worker_connections 1024; }}
http {{
    types {{ application/json json; }}
    access_log off;
    keepalive_requests 1000000;
    sendfile off; # head and body in one segment
    open_file_cache max=20000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; root {folder}/items; }}
}}
"""


def write_items(folder, count):
    """Files 1.json, 2.json, ... of about 500 bytes, each different, always the same."""
    r = random.Random(1)
    os.mkdir(folder)
    for i in range(1, count + 1):
        words = " ".join("".join(r.choices("abcdefghijklmnopqrstuvwxyz", k=r.randint(3, 9))) for _ in range(48))
        item = {"id": i, "type": "story", "by": f"user{r.randrange(5000)}", "time": 1700000000 + i,
                "score": r.randrange(1000), "url": f"https://example.org/{i}", "title": words[:60],
                "text": words[60:320], "kids": [r.randrange(10 ** 8) for _ in range(5)]}
        with open(os.path.join(folder, f"{i}.json"), "w", encoding="utf-8") as f:
            json.dump(item, f)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def user_line():
    """Whom root's nginx works for. Others need not say."""
    if os.getuid() != 0:
        return ""
    nobody = pwd.getpwnam("nobody")
    return f"user {nobody.pw_name} {grp.getgrgid(nobody.pw_gid).gr_name};"


def wait_for(port, process):
    for _ in range(500):
        if process.poll() is not None:
            raise RuntimeError(f"nginx ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.01)
    raise RuntimeError("nginx does not listen")


def nginx():
    path = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if not path:
        raise RuntimeError("there is no nginx: tools/setup bench")
    return path


@contextlib.contextmanager
def serving(count):
    """A folder to work in, with a list of URLs in it, while nginx serves them."""
    folder = tempfile.mkdtemp(prefix="resha-bench-")
    process = None
    try:
        os.chmod(folder, 0o755)  # the worker of a root's nginx is nobody
        write_items(os.path.join(folder, "items"), count)
        port = free_port()
        config = os.path.join(folder, "nginx.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(folder=folder, port=port, user=user_line()))
        with open(os.path.join(folder, "urls"), "w", encoding="utf-8") as f:
            f.writelines(f"http://127.0.0.1:{port}/{i}.json\n" for i in range(1, count + 1))
        process = subprocess.Popen([nginx(), "-p", folder, "-c", config, "-e", os.path.join(folder, "error.log")])
        wait_for(port, process)
        yield folder
    finally:
        if process and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()
        shutil.rmtree(folder)
