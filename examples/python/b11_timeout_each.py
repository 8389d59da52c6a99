# SPDX-License-Identifier: MIT
"""B11: a timeout for each of many requests; one that is too slow costs the others nothing.
Results and errors are shown as they come."""
import asyncio
import time


async def ask(request):
    await asyncio.sleep(5 if request == 3 else 0.3 * request)  # this server hangs
    return f"answer {request}"


async def ask_in_time(request):
    try:
        async with asyncio.timeout(2):
            return request, await ask(request)
    except TimeoutError:
        return request, "failed, no answer within 2 s"


async def main():
    start = time.monotonic()
    for first in asyncio.as_completed(map(ask_in_time, range(1, 6))):
        request, result = await first
        print(f"{time.monotonic() - start:.1f} s: request {request}: {result}")


asyncio.run(main())
