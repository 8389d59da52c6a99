# SPDX-License-Identifier: MIT
"""C2: a semaphore with three permits and five tasks: at most three are inside, first come, first served."""
import asyncio
import time


class Room:
    def __init__(self):
        self.seats = asyncio.Semaphore(3)
        self.inside = self.most = 0

    async def visit(self, guest):
        async with self.seats:
            self.inside += 1
            self.most = max(self.most, self.inside)
            print(f"guest {guest} comes in, {self.inside} inside")
            await asyncio.sleep(guest)
            self.inside -= 1


async def main():
    room = Room()
    start = time.monotonic()
    await asyncio.gather(*(room.visit(guest) for guest in range(1, 6)))
    print(f"never more than {room.most}; {time.monotonic() - start:.1f} s in all")


asyncio.run(main())
