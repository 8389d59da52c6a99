# SPDX-License-Identifier: MIT
"""A5: the same three greetings at once."""
import asyncio
import time


async def greet(name):
    print("Starting", name)
    await asyncio.sleep(2)
    print(f"Hello, {name}!")


async def main():
    start = time.monotonic()
    await asyncio.gather(*(greet(name) for name in ("Alice", "Bob", "Charlie")))
    print(f"{time.monotonic() - start:.1f} s")


asyncio.run(main())
