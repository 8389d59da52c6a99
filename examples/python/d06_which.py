# SPDX-License-Identifier: MIT
"""D6: which tool for which work: waiting, a call that blocks, computing, each by four tools."""
# On the real clock.
import asyncio
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

TIMES = 4


async def waits():
    await asyncio.sleep(0.1)


def blocks(_=None):
    time.sleep(0.1)


def computes(_=None):  # until its thread has had 0.1 s of processor time
    start = time.thread_time()
    while time.thread_time() < start + 0.1:
        pass


def on_a_loop(work):
    async def task():
        await work() if work is waits else work()

    return task


def as_tasks(work, _):
    async def main():
        await asyncio.gather(*(on_a_loop(work)() for _ in range(TIMES)))

    asyncio.run(main())


def in_pool(work, pool):
    if work is waits:
        return "-"
    list(pool.map(work, range(TIMES)))
    return None


def on_loops(work, threads):  # the interpreter lets one of them compute at a time
    list(threads.map(lambda _: asyncio.run(on_a_loop(work)()), range(TIMES)))


def main():
    with (ProcessPoolExecutor(TIMES, multiprocessing.get_context("fork")) as processes,
          ThreadPoolExecutor(TIMES) as threads):
        list(processes.map(blocks, range(TIMES)))  # starts them
        ways = {"tasks": (as_tasks, None), "threads": (in_pool, threads), "processes": (in_pool, processes),
                "loops": (on_loops, threads)}
        for name, work in {"waiting": waits, "blocking": blocks, "computing": computes}.items():
            times = []
            for how, (way, pool) in ways.items():
                start = time.monotonic()
                refused = way(work, pool)
                times.append(f"{how} -" if refused else f"{how} {time.monotonic() - start:.1f} s")
            print(f"{name:9}", ", ".join(times))


if __name__ == "__main__":
    main()
