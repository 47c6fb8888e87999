"""A TCP proxy between agents and a server that delays and counts requests, and can be cut.

While it is cut, nothing is answered and no connection is refused, as when packets are lost; data sent meanwhile arrives
late.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from typing import Self

_OPERATION = re.compile(rb"DynamoDB_\d{8}\.(\w+)\r\n")
_MAX_HEADER_BYTES = 64
"""Maximum bytes of the header of an operation."""


class Proxy:
    """Forwards connections to a port of this machine.

    Args:
        target: the server's port.
        delay: seconds that every message to the server takes longer.
    """

    def __init__(self, target: int, delay: float = 0.0) -> None:
        self.counts: Counter[str] = Counter()
        self.port = 0
        self._target = target
        self._delay = delay
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise TimeoutError("the proxy has not started")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def requests(self) -> int:
        """Number of DynamoDB requests so far."""
        return self.counts.total()

    def cut(self) -> None:
        """Forward nothing until `restore`."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def restore(self) -> None:
        """Forward again, starting with the data sent meanwhile."""
        self._loop.call_soon_threadsafe(self._open.set)

    async def _serve(self) -> None:
        self._loop, self._open, self._stop = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._open.set()
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        ways = (self._carry(reader, to_writer, self._delay, Operations()), self._carry(to_reader, writer, 0.0, None))
        await asyncio.gather(*ways)

    async def _carry(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, delay: float, operations: Operations | None
    ) -> None:
        try:
            while data := await source.read(65536):
                await self._open.wait()
                if operations is not None:
                    self.counts.update(operations.names_in(data))
                    await asyncio.sleep(delay)
                target.write(data)
                await target.drain()
        except OSError:
            pass
        finally:
            target.close()


class Operations:
    """Finds the DynamoDB operations in a stream of bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def names_in(self, data: bytes) -> list[str]:
        """Return the operations whose names are complete with this piece."""
        text, end, names = self._rest + data, 0, []
        for match in _OPERATION.finditer(text):
            end = match.end()
            names.append(match[1].decode())
        self._rest = text[end:][-_MAX_HEADER_BYTES:]
        return names
