# SPDX-License-Identifier: MIT
"""A1: a blocking call stops the whole thread; a task that sleeps stops only itself."""
import asyncio
import time


async def brew_blocking():
    print("the kettle is on")
    time.sleep(2)  # nothing else can run
    print("tea is ready")


async def brew():
    print("the kettle is on")
    await asyncio.sleep(2)  # the others can
    print("tea is ready")


async def hum():
    while True:
        await asyncio.sleep(0.6)
        print("    la la la")


async def brew_and_hum(brew_function):
    humming = asyncio.create_task(hum())
    await brew_function()
    humming.cancel()


async def main():
    print("blocking:")
    await brew_and_hum(brew_blocking)
    print("as a task:")
    await brew_and_hum(brew)


asyncio.run(main())
