# SPDX-License-Identifier: MIT
"""E2: a session keeps its connections open for the next request. Ten requests by ten sessions, then by one."""
import asyncio
import sys

import aiohttp


async def connections(session, base):
    async with session.get(base + "/stats") as response:
        return (await response.json())["connections"]


async def get(session, base):
    async with session.get(base + "/v0/item/1001.json") as response:
        await response.read()


async def main(base):
    async with aiohttp.ClientSession() as shared:
        before = await connections(shared, base)
        for _ in range(10):
            async with aiohttp.ClientSession() as session:
                await get(session, base)
        print(f"a session for each of ten: {await connections(shared, base) - before} new connections")
        before = await connections(shared, base)
        for _ in range(10):
            await get(shared, base)
        print(f"one session for all      : {await connections(shared, base) - before} new connections")


asyncio.run(main(sys.argv[1]))
