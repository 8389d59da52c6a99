# SPDX-License-Identifier: MIT
"""TLS servers, ours and bare loops of OpenSSL, as driver/net.py asks those without. See tls/load.c."""
import contextlib
import os
import statistics
import subprocess
import tempfile

from driver import net, pairs

# question: version, cipher, connections, bytes of a message, which are those of the buffers, too
ECHOES = {
    "tls-64": ("1.3", "AES128", 1000, 64),
    "tls-64-aes256": ("1.3", "AES256", 1000, 64),
    "tls-64-tls12": ("1.2", "AES128", 1000, 64),
    "tls-16k": ("1.3", "AES128", 1000, 16384),
    "tls-16k-aes256": ("1.3", "AES256", 1000, 16384),
    "tls-16k-tls12": ("1.2", "AES128", 1000, 16384),
}
# question: mode of the load, version
HANDSHAKES = {
    "tls-full": ("full", "1.3"),
    "tls-resumed": ("resumed", "1.3"),
    "tls-full-tls12": ("full", "1.2"),
    "tls-resumed-tls12": ("resumed", "1.2"),
}
WINDOW_MS, SHORT_MS = 500, 50
IDLE = 10000
BARE = ["bare socket", "bare memory"]


@contextlib.contextmanager
def certificate():
    """A certificate of the kind that most sites have, and its key: their paths."""
    with tempfile.TemporaryDirectory(prefix="resha-bench-") as folder:
        paths = [os.path.join(folder, name) for name in ("certificate.pem", "key.pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-out", paths[0], "-keyout", paths[1], "-days", "30", "-subj", "/CN=localhost"],
                       check=True, capture_output=True)
        yield paths


def servers(bench, size, paths):
    found = {name: ([net.program(bench, "peer-tls"), name.split()[1], str(size), *paths], {}) for name in BARE}
    for name in net.OURS:
        found[name] = ([net.program(bench, "tls-echo"), str(size), *paths], {"RESHA_BACKEND": name})
    return net.usable(bench, found)


def against_bare(bench, name, figures, extra):
    """Each of our backends against the better of the two bare loops."""
    medians = {server: statistics.median(values) for server, values in figures.items()}
    better = min((n for n in BARE if n in figures), key=medians.get)
    for backend in net.OURS:
        if backend in figures:
            net.compare(bench, f"{name}-{backend}", "us", figures, backend, better, medians=medians, **extra)


def ask(bench, name, size, mode, arguments, extra):
    with certificate() as paths:
        runs = net.measured(bench, name, servers(bench, size, paths), mode, *arguments, client="tls-load")
    figures = {server: [r["cpu_ns"] / 1000 for r in results] for server, results in runs.items()}
    rates = {server: round(1e9 / statistics.median(r["wall_ns"] for r in results)) for server, results in runs.items()}
    against_bare(bench, name, figures, {**extra, "a_second": rates, "cores": net.cores(bench)})


def echo(bench, name):
    version, cipher, connections, size = ECHOES[name]
    if bench.smoke:
        connections = min(connections, 50)
    ask(bench, name, size, "echo", [version, cipher, connections, size, SHORT_MS if bench.smoke else WINDOW_MS],
        {"version": version, "cipher": cipher, "connections": connections, "bytes": size})


def handshakes(bench, name):
    mode, version = HANDSHAKES[name]
    ask(bench, name, 1024, mode, [version, "AES128", SHORT_MS if bench.smoke else WINDOW_MS], {"version": version})


def idle(bench):
    """User memory of each of many connections that have done one echo and wait for more."""
    connections = 100 if bench.smoke else IDLE
    with certificate() as paths:
        for version, figure in [("1.3", "tls-idle"), ("1.2", "tls-idle-tls12")]:
            for name, server in servers(bench, 1024, paths).items():
                result = net.idle_once(bench, server, connections, "tls-load", version, "AES128")
                bench.report(f"{figure}-{name.replace(' ', '-')}", {
                    "unit": "bytes", "connections": connections, "ours": pairs.summary([result["user"]]), **result},
                    result["user"])


QUESTIONS = {**{name: lambda bench, name=name: echo(bench, name) for name in ECHOES},
             **{name: lambda bench, name=name: handshakes(bench, name) for name in HANDSHAKES},
             "tls-idle": idle}


def run(bench):
    for question in QUESTIONS.values():
        question(bench)
