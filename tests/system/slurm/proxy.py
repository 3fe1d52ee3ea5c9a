"""A proxy on the login host of the tests' cluster, which leads into this machine's network.

    nsenter --target PID --net -- python -m tests.system.slurm.proxy FD

It listens in the network of the process PID, and connects in the network that is open as FD.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import sys
from urllib.parse import urlsplit

CLONE_NEWNET = 0x40000000  # linux/sched.h


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until one side ends."""
    with contextlib.suppress(ConnectionError), contextlib.closing(writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Connect to the server that the first request names, and pass on all bytes."""
    head = await reader.readuntil(b"\r\n\r\n")
    method, target, rest = head.split(b" ", 2)
    url = urlsplit(f"//{target.decode()}" if method == b"CONNECT" else target.decode())
    try:
        other, onward = await asyncio.open_connection(url.hostname, url.port or 80)
    except OSError:
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        return
    if method == b"CONNECT":
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    else:
        _, _, path = target.partition(url.netloc.encode())
        first, _, fields = rest.partition(b"\r\n")
        onward.write(b" ".join((method, path, first)) + b"\r\nConnection: close\r\n" + fields)
    await asyncio.gather(pump(reader, onward), pump(other, writer))


async def main(network: int) -> None:
    """Listen on a free port, print it, and serve until the input ends."""
    listening = socket.create_server(("", 0))
    if ctypes.CDLL(None, use_errno=True).setns(network, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    async with await asyncio.start_server(answer, sock=listening):
        print(listening.getsockname()[1], flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
