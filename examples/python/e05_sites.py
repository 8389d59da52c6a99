# SPDX-License-Identifier: MIT
"""E5: the status of some sites: one by one takes the sum of their times, at once the longest."""
import asyncio
import sys
import time

import aiohttp


async def look(session, url):
    async with session.get(url) as response:
        return response.status


async def main(urls):
    async with aiohttp.ClientSession() as session:
        start = time.monotonic()
        for url in urls:
            await look(session, url)
        print(f"one by one: {time.monotonic() - start:.1f} s")
        start = time.monotonic()
        statuses = await asyncio.gather(*(look(session, url) for url in urls))
        print(f"at once:    {time.monotonic() - start:.1f} s")
        for status, url in zip(statuses, urls):
            print(f"{status}  {url}")


asyncio.run(main(sys.argv[1:]))
