# SPDX-License-Identifier: MIT
"""to_thread.py [JOBS [IN_FLIGHT]]: the peer of bench/hop.c: asyncio.to_thread() of an empty function."""
import asyncio
import json
import sys
import time


def nothing():
    pass


async def ask(jobs):
    for _ in range(jobs):
        await asyncio.to_thread(nothing)


async def hop(jobs, in_flight):
    await asyncio.gather(*(ask(jobs // in_flight) for _ in range(in_flight)))


async def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 6400
    in_flight = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    await hop(jobs // 10, in_flight)
    start = time.monotonic_ns()
    await hop(jobs, in_flight)
    print(json.dumps({"operations": jobs, "wall_ns": (time.monotonic_ns() - start) / jobs}))


asyncio.run(main())
