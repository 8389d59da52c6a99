# SPDX-License-Identifier: MIT
"""D2: the same call on a thread: the task that made it waits, the others go on."""
# On the real clock.
import asyncio
import time


def load():  # on a thread: it may block as long as it likes
    time.sleep(1)
    return 42


async def hum():
    while True:
        await asyncio.sleep(0.4)
        print("    la la la")


async def main():
    humming = asyncio.create_task(hum())
    await asyncio.sleep(0)
    print("loading")
    print("loaded", await asyncio.to_thread(load))
    humming.cancel()


asyncio.run(main())
