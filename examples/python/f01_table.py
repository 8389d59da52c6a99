# SPDX-License-Identifier: MIT
"""F1: create a table; again is no error."""
import asyncio
import sys

import aiosqlite


async def create(path):
    async with aiosqlite.connect(path) as db:
        await db.execute("create table if not exists stories (id integer primary key, title text not null, url text,"
                         " score integer, fetched_at text default current_timestamp)")
        await db.commit()


async def main(path):
    for what in ("first", "again"):
        await create(path)
        print(f"{what}: table stories is there")


asyncio.run(main(sys.argv[1]))
