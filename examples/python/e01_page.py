# SPDX-License-Identifier: MIT
"""E1: fetch one page.   e01_page.py http://example.org/"""
import asyncio
import sys

import aiohttp


async def main(url):
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        body = await response.text()
        print(f"status {response.status}, {response.headers['Content-Type']}")
        print(f"{len(body)} bytes: {body[:12]}...")


asyncio.run(main(sys.argv[1]))
