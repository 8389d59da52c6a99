# SPDX-License-Identifier: MIT
"""E3: the ids of the top stories, and the fields of the first."""
import asyncio
import json
import sys

import aiohttp


async def get(session, path):
    async with session.get(f"{sys.argv[1]}/v0/{path}") as response:
        return await response.json()


async def main():
    async with aiohttp.ClientSession() as session:
        ids = await get(session, "topstories.json")
        print(f"{len(ids)} ids, the first is {ids[0]}")
        for key, value in (await get(session, f"item/{ids[0]}.json")).items():
            print(f"{key:>12}  {value if isinstance(value, str) else json.dumps(value, separators=(',', ':'))}")


asyncio.run(main())
