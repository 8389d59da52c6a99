# SPDX-License-Identifier: MIT
"""D4: four functions that compute: in tasks, in threads, in processes."""
# On the real clock.
# Differs: a worker that dies breaks the whole pool: the results of the others are lost, too.
# - below 100: 25 primes
# - below -1: worker process: killed by signal 6 (SIGABRT); {...}
# - below 1000: 168 primes
# + the pool is broken
import asyncio
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

JOBS, LARGE = 4, 20000


def count_primes(below):
    if below < 0:
        os.abort()
    return sum(all(i % k for k in range(2, int(i**0.5) + 1)) for i in range(2, below))


def show(how, primes, start):
    print(f"{how}: {' '.join(map(str, primes))} after {time.monotonic() - start:.2f} s")


async def in_task(below):
    return count_primes(below)


async def main(processes):
    loop = asyncio.get_running_loop()
    start = time.monotonic()
    show("tasks    ", await asyncio.gather(*(in_task(LARGE) for _ in range(JOBS))), start)
    for how, pool in (("threads  ", ThreadPoolExecutor()), ("processes", processes)):  # only processes help
        start = time.monotonic()
        jobs = (loop.run_in_executor(pool, count_primes, LARGE) for _ in range(JOBS))
        show(how, await asyncio.gather(*jobs), start)
    try:
        await asyncio.gather(*(loop.run_in_executor(processes, count_primes, n) for n in (-1, 100, 1000)))
    except BrokenProcessPool:
        print("the pool is broken")


if __name__ == "__main__":
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as executor:
        asyncio.run(main(executor))
