# SPDX-License-Identifier: MIT
"""E6: many URLs, ten at a time, at most so many seconds each: a result or an error for every one."""
# Differs: aiohttp's words for a connection that was closed too early, and for no answer in time.
# - {URL}/close: none, {...}closed{...}
# - {URL}/delay/9: none, deadline passed
# + {URL}/close: none, ServerDisconnectedError: Server disconnected
# + {URL}/delay/9: none, TimeoutError: {...}
# Differs: aiohttp's words for a refused connection.
# - http://127.0.0.1:1/: none, {...}refused{...}
# + http://127.0.0.1:1/: none, ClientConnectorError: {...}
import asyncio
import sys

import aiohttp


async def get(session, url):
    async with session.get(url) as response:
        return response.status, len(await response.read())


async def main(seconds, urls):
    permits = asyncio.Semaphore(10)

    async def get_in_time(url):
        async with permits, asyncio.timeout(seconds):
            return await get(session, url)

    async with aiohttp.ClientSession() as session:
        results = await asyncio.gather(*map(get_in_time, urls), return_exceptions=True)
    failed = 0
    for url, result in zip(urls, results):
        if isinstance(result, Exception):
            failed += 1
            print(f"{url}: none, {type(result).__name__}: {result}")
        else:
            print(f"{url}: {result[0]}, {result[1]} bytes")
    print(f"{failed} of {len(urls)} failed")


asyncio.run(main(float(sys.argv[1]), sys.argv[2:]))
