# SPDX-License-Identifier: MIT
"""B8: cancel a task in the middle of its work; the release always runs."""
# Differs: a CancelledError does not know who has cancelled.
# - releasing: cancelled by task "main"
# + releasing
import asyncio
import time


async def work():
    try:
        for step in range(1, 11):
            print("step", step)
            await asyncio.sleep(1)
    finally:
        print("releasing")


async def main():
    start = time.monotonic()
    task = asyncio.create_task(work())
    await asyncio.sleep(2.5)
    print("main: cancel")
    task.cancel()  # asks, and does not wait
    await asyncio.wait([task])
    print(f"main: the task was {'cancelled' if task.cancelled() else 'not cancelled'}"
          f" after {time.monotonic() - start:.1f} s")


asyncio.run(main())
