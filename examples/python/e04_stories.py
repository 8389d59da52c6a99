# SPDX-License-Identifier: MIT
"""E4: ten stories, one by one, then all at once."""
import asyncio
import sys
import time

import aiohttp


async def fetch(session, story):
    async with session.get(f"{sys.argv[1]}/v0/item/{story}.json") as response:
        return len(await response.read())


async def main():
    async with aiohttp.ClientSession() as session:
        async with session.get(sys.argv[1] + "/v0/topstories.json") as response:
            ids = (await response.json())[:10]
        start = time.monotonic()
        sizes = [await fetch(session, story) for story in ids]
        print(f"one by one: {time.monotonic() - start:.1f} s ({sum(sizes)} bytes)")
        start = time.monotonic()
        sizes = await asyncio.gather(*(fetch(session, story) for story in ids))
        print(f"all at once: {time.monotonic() - start:.1f} s ({sum(sizes)} bytes)")


asyncio.run(main())
