# SPDX-License-Identifier: MIT
"""B1: a group of three workers: the first finishes, the second fails, the third is cancelled and cleans up."""
import asyncio
import time


async def work(n):
    print(f"worker {n} starts")
    try:
        await asyncio.sleep(n)
    except asyncio.CancelledError:
        print(f"worker {n} is cancelled and cleans up")
        raise
    if n == 2:
        raise OSError(f"worker {n} has dropped everything")
    print(f"worker {n} is done")


async def main():
    start = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            for n in (1, 2, 3):
                group.create_task(work(n))
    except* OSError as errors:
        print(f"after {time.monotonic() - start:.1f} s: {errors.exceptions[0]}")


asyncio.run(main())
