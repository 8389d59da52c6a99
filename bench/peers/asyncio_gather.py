# SPDX-License-Identifier: MIT
"""asyncio_gather.py [TASKS [GATHERS]]: the peer of bench/core/gather.c."""
import asyncio
import json
import sys
import time


async def empty():
    pass


async def one_gather(tasks):
    start = time.process_time_ns()
    await asyncio.gather(*[empty() for _ in range(tasks)])
    return (time.process_time_ns() - start) / 1e3


async def main():
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    gathers = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    cold = await one_gather(tasks)
    warm = min([await one_gather(tasks) for _ in range(gathers)])
    print(json.dumps({"tasks": tasks, "cold_us": cold, "warm_us": warm}))


asyncio.run(main())
