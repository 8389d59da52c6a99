# SPDX-License-Identifier: MIT
"""B3: three sources at once. The results stand in the order given, whoever was first."""
import asyncio
import time


async def fetch(name, seconds, result):
    await asyncio.sleep(seconds)
    print(name, "has answered")
    return result


async def main():
    start = time.monotonic()
    api, database, cache = await asyncio.gather(
        fetch("api", 2, "200 OK"), fetch("database", 3, "7 rows"), fetch("cache", 1, "3 hits"))
    print(f"[{api}, {database}, {cache}] after {time.monotonic() - start:.1f} s")


asyncio.run(main())
