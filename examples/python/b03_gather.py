# SPDX-License-Identifier: MIT
"""B3: three different calls at once. The results stand in the order given, whoever was first."""
import asyncio
import time


async def ask_api():
    await asyncio.sleep(2)
    print("api has answered")
    return "200 OK"


async def ask_database():
    await asyncio.sleep(3)
    print("database has answered")
    return 7


async def ask_cache():
    await asyncio.sleep(1)
    print("cache has answered")
    return True


async def main():
    start = time.monotonic()
    status, rows, hit = await asyncio.gather(ask_api(), ask_database(), ask_cache())
    print(f"[{status}, {rows} rows, {'hit' if hit else 'miss'}] after {time.monotonic() - start:.1f} s")


asyncio.run(main())
