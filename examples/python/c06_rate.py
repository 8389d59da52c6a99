# SPDX-License-Identifier: MIT
"""C6: ten requests a second. asyncio has no limiter; this one gives each caller the next free instant."""
import asyncio
import time


class Limiter:
    def __init__(self, count, seconds):
        self.gap = seconds / count
        self.next = time.monotonic()

    async def __aenter__(self):
        mine = max(self.next, time.monotonic())
        self.next = mine + self.gap
        await asyncio.sleep(mine - time.monotonic())

    async def __aexit__(self, *error):
        pass


async def ask(limit, started):
    async with limit:
        started.append(time.monotonic())
        await asyncio.sleep(0.02)  # a quick answer


def busiest_second(started):
    return max(sum(start <= other < start + 1 - 1e-6 for other in started) for start in started)


async def run(what, limit):
    start = time.monotonic()
    started = []
    await asyncio.gather(*(ask(limit, started) for _ in range(35)))
    print(f"{what}: {len(started)} requests in {time.monotonic() - start:.1f} s,"
          f" at most {busiest_second(started)} in a second")


async def main():
    await run("10 permits  ", asyncio.Semaphore(10))
    await run("10 a second ", Limiter(10, 1))


asyncio.run(main())
