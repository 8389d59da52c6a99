# SPDX-License-Identifier: MIT
"""A7: five tasks of a second, one by one, then as a group."""
import asyncio
import time


async def work():
    await asyncio.sleep(1)


async def main():
    start = time.monotonic()
    for _ in range(5):
        await work()
    print(f"one by one: {time.monotonic() - start:.1f} s")

    start = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(work())
    print(f"together:   {time.monotonic() - start:.1f} s")


asyncio.run(main())
