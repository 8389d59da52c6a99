# SPDX-License-Identifier: MIT
"""process_pool.py [ITEMS [PROCESSES]]: the peer of bench/process/map.c: ProcessPoolExecutor.map() with chunks of 1, and
with the best of several sizes."""
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor

CHUNKS = [1, 16, 64, 256, 1024, 2500, 5000]


def square(item):
    return item * item


def once(pool, items, chunk):
    start = time.monotonic_ns()
    results = list(pool.map(square, range(items), chunksize=chunk))
    took = time.monotonic_ns() - start
    assert results[-1] == (items - 1) ** 2
    return took / items


def main():
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    processes = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    with ProcessPoolExecutor(processes) as pool:
        once(pool, items // 10, 1)
        each = {chunk: min(once(pool, items, chunk) for _ in range(1 if chunk == 1 else 3)) for chunk in CHUNKS}
    best = min(each, key=each.get)
    print(json.dumps({"operations": items, "wall_ns": each[1], "best_ns": each[best], "best_chunk": best}))


if __name__ == "__main__":
    main()
