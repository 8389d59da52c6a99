# SPDX-License-Identifier: MIT
"""B10: ten seconds of work under a timeout of two, as a call and as a block, and cancelled from outside."""
import asyncio
import time


async def long_work():
    await asyncio.sleep(10)


async def as_call():
    await asyncio.wait_for(long_work(), 2)


async def as_block():
    async with asyncio.timeout(2):
        await asyncio.sleep(1)  # any number of calls
        await long_work()


async def from_outside():
    task = asyncio.create_task(as_block())
    await asyncio.sleep(1)
    task.cancel()
    await task


async def main():
    for what, work in (("as a call", as_call), ("as a block", as_block), ("from outside", from_outside)):
        start = time.monotonic()
        result = "done"
        try:
            await work()
        except TimeoutError:
            result = "timed out"
        except asyncio.CancelledError:
            result = "cancelled"
        print(f"{what}: {result} after {time.monotonic() - start:.1f} s")


asyncio.run(main())
