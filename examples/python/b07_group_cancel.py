# SPDX-License-Identifier: MIT
"""B7: the first answer is enough: whoever has it ends the group, and that is no error."""
import asyncio
import time


class Enough(Exception):
    """Before Python 3.15 has TaskGroup.cancel(), a task that fails on purpose ends a group."""


async def ask(name, seconds, found, cancelled):
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        cancelled.append(name)
        raise
    found.append(name)
    raise Enough


async def main():
    start = time.monotonic()
    found, cancelled = [], []
    try:
        async with asyncio.TaskGroup() as group:
            for name, seconds in (("mirror 1", 0.5), ("mirror 2", 2), ("mirror 3", 0.8)):
                group.create_task(ask(name, seconds, found, cancelled))
    except* Enough:
        pass
    for name in sorted(cancelled):  # a group keeps a set of its tasks: they are cancelled in any order
        print(name, "is no longer needed")
    print(f"{found[0]} at {time.monotonic() - start:.1f} s; the group ended with success")


asyncio.run(main())
