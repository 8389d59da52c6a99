# SPDX-License-Identifier: MIT
"""E7: retry with exponential back-off and jitter; three attempts, and only for what may pass.
e07_retry.py FIRST-DELAY-IN-MS URL..."""
import asyncio
import random
import sys

import aiohttp

ATTEMPTS = 3


async def get_with_retry(session, url, base):
    for attempt in range(1, ATTEMPTS + 1):
        async with session.get(url) as response:
            if response.status == 200:
                return "fetched", attempt
            if response.status not in (429, 503) or attempt == ATTEMPTS:
                return f"status {response.status}", attempt
        await asyncio.sleep(random.uniform(0, base * 2 ** (attempt - 1)))


async def main(base, urls):
    async with aiohttp.ClientSession() as session:
        results = await asyncio.gather(*(get_with_retry(session, url, base) for url in urls))
    for url, (result, attempts) in zip(urls, results):
        print(f"{url}: {result}, attempts: {attempts}")
    good = sum(result == "fetched" for result, _ in results)
    print(f"Successful: {good}, Failed: {len(urls) - good}")


asyncio.run(main(float(sys.argv[1]) / 1000, sys.argv[2:]))
