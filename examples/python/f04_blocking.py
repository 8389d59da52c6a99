# SPDX-License-Identifier: MIT
"""F4: a blocking database driver inside a task stops everybody; aiosqlite works on a thread of its own."""
# Differs: aiosqlite, where ours says resha.
# - resha's module : another task ran {3..1000} times meanwhile
# + aiosqlite      : another task ran {3..1000} times meanwhile
import asyncio
import sqlite3

import aiosqlite

COUNTING = ("with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000)"
            " select count(*) from n")


async def with_the_driver():
    with sqlite3.connect(":memory:") as db:
        db.execute(COUNTING).fetchall()  # the loop stands still


async def with_aiosqlite():
    async with aiosqlite.connect(":memory:") as db, db.execute(COUNTING) as rows:
        await rows.fetchall()  # only this task waits


async def count_ticks(what, work):
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    await work()
    print(f"{what}: another task ran {ticks} times meanwhile")
    ticking.cancel()


async def main():
    await count_ticks("blocking driver", with_the_driver)
    await count_ticks("aiosqlite      ", with_aiosqlite)


asyncio.run(main())
