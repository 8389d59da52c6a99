# SPDX-License-Identifier: MIT
"""B11: a timeout for each of many requests; one that is too slow costs the others nothing."""
import asyncio
import time


async def ask(request):
    await asyncio.sleep(5 if request % 3 == 0 else 0.3 * request)  # every third server hangs
    return f"answer {request}"


async def ask_in_time(request):
    try:
        async with asyncio.timeout(2):
            return await ask(request)
    except TimeoutError:
        return "failed, no answer within 2 s"


async def main():
    start = time.monotonic()
    for i, result in enumerate(await asyncio.gather(*map(ask_in_time, range(1, 7)))):
        print(f"request {i + 1}: {result}")
    print(f"{time.monotonic() - start:.1f} s in all")


asyncio.run(main())
