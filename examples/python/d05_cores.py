# SPDX-License-Identifier: MIT
"""D5: a loop on each core: four heavy jobs on one loop, then each on a loop and a thread of its own."""
# On the real clock.
# Differs: a hundredth of the work, which takes about as long; and four loops are no faster, as the interpreter lets one
#   thread compute at a time.
# - one loop  : 41ee5e0a after {0.0..60.0} s
# - four loops: 41ee5e0a after {0.0..60.0} s
# + one loop  : 0fcba38a after {0.0..60.0} s
# + four loops: 0fcba38a after {0.0..60.0} s
import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

JOBS = 4


async def compute(seed):
    for _ in range(500 * 1000):
        seed = (seed * 1664525 + 1013904223) % 2**32
    return seed


async def all_here():
    return await asyncio.gather(*(compute(seed) for seed in range(1, JOBS + 1)))


def show(where, results, start):
    print(f"{where}: {sum(results) % 2**32:08x} after {time.monotonic() - start:.2f} s")


start = time.monotonic()
show("one loop  ", asyncio.run(all_here()), start)
start = time.monotonic()
with ThreadPoolExecutor(JOBS) as threads:
    show("four loops", list(threads.map(lambda seed: asyncio.run(compute(seed)), range(1, JOBS + 1))), start)
