# SPDX-License-Identifier: MIT
"""B2: all errors of a group: the second of four fails at once, and one of the others in its clean-up."""
import asyncio


async def work(n):
    print("n =", n)
    if n == 2:
        raise ValueError("n = 2 is not allowed")
    try:
        await asyncio.sleep(n)
    except asyncio.CancelledError:
        if n == 4:
            raise OSError("n = 4 cannot put its tools away") from None
        raise


async def main():
    try:
        async with asyncio.TaskGroup() as group:
            for n in (1, 2, 3, 4):
                group.create_task(work(n))
    except* (ValueError, OSError) as errors:
        flat = [e for e in unfold(errors)]
        print("the group failed:", flat[0])
        for i, error in enumerate(flat):
            print(f"error {i + 1}: {error}")


def unfold(error):
    """except* may have put groups into the group."""
    return [e for inner in error.exceptions for e in unfold(inner)] if isinstance(error, ExceptionGroup) else [error]


asyncio.run(main())
