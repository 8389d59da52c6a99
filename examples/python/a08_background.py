# SPDX-License-Identifier: MIT
"""A8: start something, do something else, then wait for the result."""
import asyncio
import time


async def make_report():
    print("report: started")
    await asyncio.sleep(2)
    return "Success"


async def main():
    start = time.monotonic()
    task = asyncio.create_task(make_report())
    print("main: goes on at once")
    await asyncio.sleep(1)
    print("main: other work done, report is", "done" if task.done() else "still being made")
    print(f"main: {await task} after {time.monotonic() - start:.1f} s")


asyncio.run(main())
