# SPDX-License-Identifier: MIT
"""B5: the same stories, but one failure does not lose the others."""
import asyncio


async def fetch(story):
    await asyncio.sleep(0.5 if story < 0 else 1)
    if story < 0:
        raise LookupError(f"story {story}: no such story")
    return f"Story {story}"


async def main():
    results = await asyncio.gather(*map(fetch, [1, 2, -1, 3, 4]), return_exceptions=True)
    for result in results:
        print(result)
    failed = sum(isinstance(result, Exception) for result in results)
    print(f"Got {len(results) - failed} stories, {failed} failed")


asyncio.run(main())
