# SPDX-License-Identifier: MIT
"""C3: thirty requests to a server that takes 200 ms for each: all at once, then five at a time under a semaphore."""
import asyncio
import contextlib
import time


class Server:
    def __init__(self):
        self.now = self.most = 0

    async def answer(self, reader, writer):
        await reader.readline()
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.2)
        self.now -= 1
        writer.write(b"OK\n")
        writer.close()


async def ask(address, permits):
    async with permits or contextlib.nullcontext():
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET\n")
        await reader.readline()
        writer.close()


async def main():
    counts = Server()
    async with await asyncio.start_server(counts.answer, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        for what, permits in (("all at once   ", None), ("five at a time", asyncio.Semaphore(5))):
            start = time.monotonic()
            counts.most = 0
            await asyncio.gather(*(ask(address, permits) for _ in range(30)))
            print(f"{what}: {time.monotonic() - start:.1f} s, the server saw {counts.most} at once")


asyncio.run(main())
