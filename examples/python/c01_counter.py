# SPDX-License-Identifier: MIT
"""C1: a hundred tasks add one to a counter, with a wait between reading and writing."""
import asyncio


class Counter:
    def __init__(self):
        self.value = 0
        self.lock = asyncio.Lock()

    async def add_one(self):
        value = self.value
        await asyncio.sleep(0.001)  # here the others run
        self.value = value + 1

    async def add_one_locked(self):
        async with self.lock:
            await self.add_one()


async def main():
    counter = Counter()
    await asyncio.gather(*(counter.add_one() for _ in range(100)))
    print("without a lock:", counter.value)
    counter = Counter()
    await asyncio.gather(*(counter.add_one_locked() for _ in range(100)))
    print("under a lock  :", counter.value)


asyncio.run(main())
