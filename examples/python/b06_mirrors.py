# SPDX-License-Identifier: MIT
"""B6: the first of three mirrors is enough; the others are cancelled and waited for."""
import asyncio
import time


async def ask(mirror, seconds):
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        print(f"mirror {mirror}: cancelled")
        raise
    return f"page from mirror {mirror}"


async def main():
    start = time.monotonic()
    tasks = [asyncio.create_task(ask(i + 1, seconds)) for i, seconds in enumerate((0.5, 2.0, 0.8))]
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    print(f"{done.pop().result()} at {time.monotonic() - start:.1f} s")
    print(f"Cancelling {len(pending)} pending")
    for task in filter(pending.__contains__, tasks):  # pending is a set, and has no order
        task.cancel()
    await asyncio.wait(pending)
    print(f"all ended at {time.monotonic() - start:.1f} s")


asyncio.run(main())
