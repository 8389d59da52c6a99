# SPDX-License-Identifier: MIT
"""A4: three greetings, one after another."""
import asyncio
import time


async def greet(name):
    print("Starting", name)
    await asyncio.sleep(2)
    print(f"Hello, {name}!")


async def main():
    start = time.monotonic()
    for name in ("Alice", "Bob", "Charlie"):
        await greet(name)
    print(f"{time.monotonic() - start:.1f} s")


asyncio.run(main())
