# SPDX-License-Identifier: MIT
"""D3: downloads by a library that blocks, one second each: three by to_thread(), then a map of five over a pool."""
# On the real clock.
import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

URLS = ["/a", "/b", "/c", "/d", "/e"]


def download(url):  # on a thread
    time.sleep(1)
    return 1000 * (URLS.index(url) + 1)


def show(sizes, start):
    pages = " ".join(f"{url} {size}" for url, size in zip(URLS, sizes))
    print(f"{len(sizes)} pages after {time.monotonic() - start:.1f} s: {pages}")


async def main():
    start = time.monotonic()
    show(await asyncio.gather(*(asyncio.to_thread(download, url) for url in URLS[:3])), start)
    start = time.monotonic()
    with ThreadPoolExecutor(5) as pool:
        show(list(pool.map(download, URLS)), start)


asyncio.run(main())
