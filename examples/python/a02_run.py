# SPDX-License-Identifier: MIT
"""A2: run a coroutine on a loop and take its result."""
# Differs: each says it in its own words.
# - inside a run: a loop runs on this thread already: call the function, or spawn it in a group
# + inside a run: asyncio.run() cannot be called from a running event loop
import asyncio


async def answer():
    print("thinking")
    await asyncio.sleep(1)
    return 42


async def nested():
    coroutine = answer()
    try:
        asyncio.run(coroutine)
    except RuntimeError as error:
        print(f"inside a run: {error}")
    coroutine.close()  # or it warns that it was never awaited


print("result:", asyncio.run(answer()))
asyncio.run(nested())
