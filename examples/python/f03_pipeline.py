# SPDX-License-Identifier: MIT
"""F3: the whole pipeline: the top stories, twenty of them, five at a time, into SQLite; the best five by score."""
import asyncio
import sys

import aiohttp
import aiosqlite


async def get(session, path):
    async with session.get(f"{sys.argv[1]}/v0/{path}") as response:
        return await response.json()


async def fetch_and_store(session, db, permits, number):
    async with permits:
        story = await get(session, f"item/{number}.json")
        await db.execute("insert or replace into stories (id, title, url, score) values (?, ?, ?, ?)",
                         (story["id"], story["title"], story["url"], story["score"]))
        await db.commit()


async def main(path):
    async with aiohttp.ClientSession() as session, aiosqlite.connect(path) as db:
        await db.execute("create table if not exists stories (id integer primary key, title text, url text,"
                         " score integer, fetched_at text default current_timestamp)")
        ids = (await get(session, "topstories.json"))[:20]
        permits = asyncio.Semaphore(5)
        await asyncio.gather(*(fetch_and_store(session, db, permits, number) for number in ids))
        print(f"Saved {len(ids)} stories. Top 5 by score:")
        async with db.execute("select score, title from stories order by score desc, id limit 5") as rows:
            async for score, title in rows:
                print(f"  [{score}] {title}")


asyncio.run(main(sys.argv[2]))
