# SPDX-License-Identifier: MIT
"""F2: insert or replace with bound parameters: quotes need no care."""
import asyncio
import sys

import aiosqlite

TITLE = "It's a \"quoted\" title; drop table stories --"


async def main(path):
    async with aiosqlite.connect(path) as db:
        await db.execute("create table if not exists stories (id integer primary key, title, score)")
        for row in ((1, TITLE, 10), (2, "Another", 20), (1, TITLE, 11)):
            await db.execute("insert or replace into stories (id, title, score) values (?, ?, ?)", row)
            await db.commit()
        async with db.execute("select id, title, score from stories order by id") as rows:
            async for number, title, score in rows:
                print(f"{number}  {title}  [{score}]")


asyncio.run(main(sys.argv[1]))
