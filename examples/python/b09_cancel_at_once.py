# SPDX-License-Identifier: MIT
"""B9: cancel a task right after it was created."""
# Differs: a task that is cancelled before its first step never runs, so nothing of it does.
# - task: opens
# - task: cancelled, closes
# - main: the task was cancelled
# + main: the task was cancelled
import asyncio


async def work():
    print("task: opens")
    try:
        await asyncio.sleep(1)
        print("task: done, closes")
    except asyncio.CancelledError:
        print("task: cancelled, closes")
        raise


async def main():
    task = asyncio.create_task(work())
    print("main: spawned, and cancels at once")
    task.cancel()
    await asyncio.wait([task])
    print("main: the task was", "cancelled" if task.cancelled() else "not cancelled")


asyncio.run(main())
