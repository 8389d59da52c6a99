# SPDX-License-Identifier: MIT
"""aiohttp_fetch.py LIST DATABASE CONCURRENCY: what one would write in Python: aiohttp, and aiosqlite with batches of
500 rows to a transaction."""
import asyncio
import datetime
import sys

import aiohttp
import aiosqlite

BATCH = 500
TABLE = """create table if not exists fetch (url text primary key, status integer, content_type text, etag text,
 last_modified text, body, error text, attempts integer not null, started_at text not null,
 finished_at text not null, failed_at text, run integer not null)"""
INSERT = """insert into fetch (url, status, content_type, etag, last_modified, body, error, attempts, started_at,
 finished_at, failed_at, run) values (?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, 1) on conflict (url) do update set
 content_type = excluded.content_type, etag = excluded.etag, last_modified = excluded.last_modified,
 body = excluded.body, error = excluded.error, failed_at = excluded.failed_at, status = excluded.status,
 attempts = excluded.attempts, started_at = excluded.started_at, finished_at = excluded.finished_at,
 run = excluded.run"""


def now():
    text = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    return text[:23] + "Z"


async def fetch(session, url):
    """The row of a URL."""
    started = now()
    try:
        async with session.get(url, allow_redirects=False) as r:
            body = await r.text("utf-8")
            h = r.headers
            return (url, r.status, h.get("Content-Type"), h.get("ETag"), h.get("Last-Modified"), body, None, started,
                    now(), None)
    except (aiohttp.ClientError, asyncio.TimeoutError) as e:
        finished = now()
        return (url, None, None, None, None, None, str(e), started, finished, finished)


async def worker(session, urls, rows):
    for url in urls:
        await rows.put(await fetch(session, url))


async def writer(db, rows):
    """Batches of 500; a smaller one at the end, which None announces."""
    batch = []
    while (row := await rows.get()) is not None:
        batch.append(row)
        if len(batch) == BATCH:
            await db.executemany(INSERT, batch)
            await db.commit()
            batch = []
    if batch:
        await db.executemany(INSERT, batch)
        await db.commit()


async def main(path, database, concurrency):
    with open(path, encoding="utf-8") as f:
        urls = iter(f.read().split())
    async with aiosqlite.connect(database) as db:
        await db.execute("pragma journal_mode=wal")
        await db.execute("pragma synchronous=normal")
        await db.execute(TABLE)
        connector = aiohttp.TCPConnector(limit=concurrency)
        timeout = aiohttp.ClientTimeout(total=30, connect=10)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            rows = asyncio.Queue(2 * BATCH)
            writing = asyncio.create_task(writer(db, rows))
            await asyncio.gather(*(worker(session, urls, rows) for _ in range(concurrency)))
            await rows.put(None)
            await writing


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
