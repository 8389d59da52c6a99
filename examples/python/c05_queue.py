# SPDX-License-Identifier: MIT
"""C5: producers and consumers: a bounded queue makes producers wait; join waits until all was processed."""
import asyncio
import time


async def produce(queue, producer, start):
    for i in range(1, 5):
        job = 10 * producer + i
        await queue.put(job)  # waits while two are inside
        print(f"{time.monotonic() - start:.1f} s: {job} put")


async def consume(queue, seconds, done):
    while True:
        job = await queue.get()
        try:
            await asyncio.sleep(seconds)
            done.append(job)
        finally:
            queue.task_done()


async def main():
    queue = asyncio.Queue(2)
    start = time.monotonic()
    done = []
    consumers = [asyncio.create_task(consume(queue, n, done)) for n in (1, 1.7)]
    async with asyncio.TaskGroup() as group:
        for n in (1, 2):
            group.create_task(produce(queue, n, start))
    await queue.join()
    print(f"{time.monotonic() - start:.1f} s: all processed")
    for consumer in consumers:  # Queue.shutdown() came with Python 3.13
        consumer.cancel()
    await asyncio.wait(consumers)
    print("finished:", *done)


asyncio.run(main())
