# SPDX-License-Identifier: MIT
"""B12: clean-up on success, failure, timeout and cancel."""
# Differs: exceptions have names of their own.
# -   ended with EIO
# +   ended with OSError
# Differs: exceptions have names of their own.
# -   ended with ETIME
# +   ended with TimeoutError
# Differs: exceptions have names of their own.
# -   ended with ECANCELED
# +   ended with CancelledError
import asyncio


async def say_goodbye(user):
    await asyncio.sleep(0.1)  # a round trip
    print(f"{user}: said goodbye")


async def talk(user, seconds, error=None):
    try:
        await asyncio.sleep(seconds)
        if error:
            raise error
    finally:
        try:  # one cancel interrupts one wait: the clean-up may wait, until somebody cancels again
            await asyncio.wait_for(say_goodbye(user), 1)
        finally:
            print(f"{user}: closed")


async def run_out_of_time():
    async with asyncio.timeout(1):
        await talk("timeout", 10)


async def be_cancelled():
    task = asyncio.create_task(talk("cancel", 10))
    await asyncio.sleep(1)
    task.cancel()
    await task


async def main():
    for work in (talk("success", 1), talk("failure", 1, OSError("line broken")), run_out_of_time(), be_cancelled()):
        result = "success"
        try:
            await work
        except (OSError, asyncio.CancelledError) as error:  # TimeoutError is an OSError
            result = type(error).__name__
        print("  ended with", result)


asyncio.run(main())
