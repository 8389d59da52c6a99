# SPDX-License-Identifier: MIT
"""B4: four good stories and a bad one, all or nothing."""
# Differs: gather raises the first failure and lets the others run; what they bring nobody gets.
# - story 1: cancelled
# - story 2: cancelled
# - story 3: cancelled
# - story 4: cancelled
# - after 0.5 s: story -1: no such story
# + after 0.5 s: story -1: no such story
# + story 1: fetched
# + story 2: fetched
# + story 3: fetched
# + story 4: fetched
import asyncio
import time


async def fetch(story):
    try:
        await asyncio.sleep(0.5 if story < 0 else story)
    except asyncio.CancelledError:
        print(f"story {story}: cancelled")
        raise
    if story < 0:
        raise LookupError(f"story {story}: no such story")
    print(f"story {story}: fetched")
    return f"Story {story}"


async def main():
    start = time.monotonic()
    try:
        await asyncio.gather(*map(fetch, [1, 2, -1, 3, 4]))
    except LookupError as error:
        print(f"after {time.monotonic() - start:.1f} s: {error}")
    await asyncio.sleep(5)


asyncio.run(main())
