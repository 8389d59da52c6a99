# SPDX-License-Identifier: MIT
"""A6: results come back in the order given."""
import asyncio
import time


async def times_ten(number):
    await asyncio.sleep(1)
    return number * 10


async def main():
    start = time.monotonic()
    results = await asyncio.gather(times_ten(1), times_ten(2), times_ten(3))
    print(f"{results} after {time.monotonic() - start:.1f} s")


asyncio.run(main())
