# SPDX-License-Identifier: MIT
"""C4: an event. Two tasks wait for it until it is set; who comes later does not wait at all."""
import asyncio
import time


async def wait_at(gate, who, start):
    print(who, "waits")
    await gate.wait()
    print(f"{who} goes through at {time.monotonic() - start:.1f} s")


async def open_gate(gate, start):
    await asyncio.sleep(2)
    print("the gate opens")
    gate.set()
    await asyncio.sleep(1)
    await wait_at(gate, "late", start)


async def main():
    gate = asyncio.Event()
    start = time.monotonic()
    async with asyncio.TaskGroup() as group:
        group.create_task(wait_at(gate, "first", start))
        group.create_task(wait_at(gate, "second", start))
        await open_gate(gate, start)


asyncio.run(main())
