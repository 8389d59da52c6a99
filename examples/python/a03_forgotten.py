# SPDX-License-Identifier: MIT
"""A3: the forgotten await, and the task that nobody waits for."""
# Differs: calling a coroutine runs nothing; it only makes an object.
# - fetching
# - fetched
# + (nothing happened)
# Differs: a task has no owner: it goes on after the function that started it, until somebody ends the loop.
# - cancelled, cleaning up
# - nothing is left running
# + it is still running
# + cancelled, cleaning up
import asyncio


async def fetch():
    print("fetching")
    try:
        await asyncio.sleep(2)
        print("fetched")
    except asyncio.CancelledError:
        print("cancelled, cleaning up")
        raise


async def forgetful():
    task = asyncio.create_task(fetch())
    await asyncio.sleep(1)
    return task


async def main():
    print("a call that looks like a call is one:")
    coroutine = fetch()  # no await
    print("(nothing happened)")
    coroutine.close()  # or it warns
    print("a task that nobody waits for:")
    task = await forgetful()
    if not task.done():
        print("it is still running")


asyncio.run(main())  # cancels what is left over
