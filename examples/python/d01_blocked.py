# SPDX-License-Identifier: MIT
"""D1: a call that blocks, in a task: nobody else runs meanwhile."""
# On the real clock.
import asyncio
import time


def load():
    time.sleep(1)  # asyncio.sleep() would let the others run
    return 42


async def hum():
    while True:
        await asyncio.sleep(0.4)
        print("    la la la")


async def main():
    humming = asyncio.create_task(hum())
    await asyncio.sleep(0)
    print("loading")
    print("loaded", load())
    humming.cancel()


asyncio.run(main())
