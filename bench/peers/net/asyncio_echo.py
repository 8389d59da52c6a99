# SPDX-License-Identifier: MIT
"""asyncio_echo.py asyncio|uvloop: an echo server on a protocol, the fastest way that there is there."""
import asyncio
import socket
import sys


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


async def main():
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if sys.argv[1] == "uvloop":
    import uvloop
    uvloop.install()
asyncio.run(main())
