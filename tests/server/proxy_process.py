"""A proxy as companies have them, in a process of its own: proxy_process.py ROUTES [NAME:PASSWORD]

ROUTES is a JSON object of the ports of this machine that stand for hosts. It prints its port, then
a line for each request: the first of what it was asked, or ``refused``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from urllib.parse import urlsplit


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


class Proxy:
    def __init__(self, routes: dict[str, int], credentials: str) -> None:
        self._routes = routes
        self._wanted = f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self._free = not credentials

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *headers = head.split("\r\n")
        method, target, version = first.split()
        if not self._free and f"proxy-authorization: {self._wanted}".lower() not in map(
            str.lower, headers
        ):
            print("refused", flush=True)
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        print(first, flush=True)
        address = urlsplit(f"//{target}" if method == "CONNECT" else target)
        port = self._routes.get(address.hostname or "", 0)
        try:
            there, onward = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = target.split(address.netloc, 1)[1] or "/"
            onward.write("\r\n".join([f"{method} {path} {version}", *headers]).encode())
        await asyncio.gather(passed(reader, onward), passed(there, writer))


async def main() -> None:
    proxy = Proxy(json.loads(sys.argv[1]), "".join(sys.argv[2:]))
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
