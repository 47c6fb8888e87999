"""Reads an image by byte ranges through the queue's own clients: never whole, and without redirects.

GDAL's own HTTP client resolves hosts again and follows redirects, and has no option against that; and rasterio holds
Python's lock during some of GDAL's reads, which would stop all threads of a worker until the server answers. So GDAL
reads files of this module. They raise nothing, since GDAL is not Python: callers get the errors afterwards.
"""

from __future__ import annotations

import io
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import groupby

from trainmaster.domain.errors import InvalidRequest, Throttled, Unavailable
from trainmaster.images.pixels.http.url_policy import ImageLocation
from trainmaster.images.pixels.http.versions import Version

BLOCK = 32 * 1024
"""Minimum bytes of a request: most headers have fewer."""
_MIB = 1024 * 1024
MAX_CACHED = 64 * _MIB
"""Bytes of an image that are cached for all its threads; the least recently used go first."""
_AHEAD = _MIB
"""Maximum read-ahead of sequential reads in bytes."""
_AT_ONCE = 8 * _MIB
"""Maximum bytes of one request."""
_MAX_READ = 512 * _MIB
"""Maximum bytes of a read by GDAL: larger blocks are rejected unpacked, and packed ones are hardly larger."""
_PAUSES = (0.2, 0.4, 0.8)
"""Seconds before each retry."""
_FIELD = "imageUrls"


Parts = Callable[[int, int], tuple[bytes, Version]]
"""Returns the bytes of an image from a first one up to, and without, another, fewer at its end, and its version.

Raises `InvalidRequest` if they cannot be read by ranges, `NotPermitted`, `Throttled` or `Unavailable`.
"""


class Ranges:
    """A cache of one image's bytes for any threads; no cached byte is requested twice.

    Args:
        parts: requests bytes.
        place: of the image.
        wait: sleeps for seconds.
        pauses: seconds before each retry.
        kept: maximum bytes in the cache.
    """

    def __init__(
        self,
        parts: Parts,
        place: ImageLocation,
        *,
        wait: Callable[[float], None] = time.sleep,
        pauses: Sequence[float] = _PAUSES,
        kept: int = MAX_CACHED,
    ) -> None:
        self._parts = parts
        self._place = place
        self._wait = wait
        self._pauses = pauses
        self._max_blocks = kept // BLOCK
        self._lock = threading.Lock()
        self._blocks: OrderedDict[int, Future[bytes]] = OrderedDict()
        self._version: Version | None = None
        self._met = threading.local()

    @property
    def size(self) -> int:
        """Bytes of the image. Raises as `read` does."""
        while self._version is None:
            self._take(0, 0, 0)  # Every answer includes the size.
        return self._version.size

    def read(self, start: int, length: int, ahead: int = 0) -> bytes:
        """Return the image's bytes from `start`, fewer at its end.

        Raises `InvalidRequest` if they cannot be read by ranges, also for an image that has changed since its first
        bytes; `NotPermitted`; `Throttled` or `Unavailable` if a retry may help.

        Args:
            start: first byte.
            length: number of bytes.
            ahead: further bytes to read with any that are missing.
        """
        if length > _MAX_READ:
            raise InvalidRequest(f"{self._place.shown} has parts of more than {_MAX_READ} bytes", field=_FIELD)
        end = min(start + length, self.size)
        found = io.BytesIO()
        while start < end:
            upto = min(end, start + _AT_ONCE)
            first, last = start // BLOCK, (upto - 1) // BLOCK
            blocks = self._take(first, last, ahead // BLOCK if upto == end else 0)
            for number, block in enumerate(blocks, first):
                found.write(memoryview(block)[max(0, start - number * BLOCK) : upto - number * BLOCK])
            start = upto
        return found.getvalue()

    def open(self, path: str = "", mode: str = "rb") -> RangedFile:  # noqa: ARG002 - as fsspec has it
        """Return a file with its own position."""
        return RangedFile(self)

    def meet(self, error: Exception) -> None:
        """Record an error of a file of this thread."""
        self._met.error = error

    def met(self) -> Exception | None:
        """Return the last error of this thread's files since the last call."""
        error: Exception | None = getattr(self._met, "error", None)
        self._met.error = None
        return error

    def _take(self, first: int, last: int, ahead: int) -> list[bytes]:
        """Return blocks by number; blocks that another thread requests are awaited."""
        with self._lock:
            mine = self._missing(first, last, ahead)
            asked: dict[int, Future[bytes]] = {number: Future() for number in mine}
            self._blocks |= asked
            wanted = [self._blocks[number] for number in range(first, last + 1)]
            for number in range(first, last + 1):
                self._blocks.move_to_end(number)
            while len(self._blocks) > self._max_blocks:
                self._blocks.popitem(last=False)
        try:
            for run in _runs(mine):
                data = self._request_with_retries(run[0] * BLOCK, (run[-1] + 1) * BLOCK)
                for index, number in enumerate(run):
                    asked[number].set_result(data[index * BLOCK : (index + 1) * BLOCK])
        except BaseException as error:
            self._forget(asked, error)
            raise
        return [each.result() for each in wanted]

    def _missing(self, first: int, last: int, ahead: int) -> list[int]:
        mine = [number for number in range(first, last + 1) if number not in self._blocks]
        if mine and self._version is not None:
            further = range(last + 1, min(last + ahead, (self._version.size - 1) // BLOCK) + 1)
            known = next((number for number in further if number in self._blocks), further.stop)
            mine += range(last + 1, known)
        return mine

    def _forget(self, asked: dict[int, Future[bytes]], error: BaseException) -> None:
        """Pass the error to waiting threads; later ones request the blocks again."""
        failed = {number: each for number, each in asked.items() if not each.done()}
        with self._lock:
            for number, each in failed.items():
                if self._blocks.get(number) is each:
                    del self._blocks[number]
        for each in failed.values():
            each.set_exception(error)

    def _request_with_retries(self, start: int, stop: int) -> bytes:
        for pause in self._pauses:
            try:
                return self._request(start, stop)
            except (Throttled, Unavailable):
                self._wait(pause)
        return self._request(start, stop)

    def _request(self, start: int, stop: int) -> bytes:
        data, answered = self._parts(start, stop)
        with self._lock:
            version = self._version.with_(answered) if self._version is not None else answered
            self._version = version or self._version
        if version is None:
            hint = "Submit it again when the image no longer changes."
            raise InvalidRequest(f"{self._place.shown} has changed while it was read", field=_FIELD, hint=hint)
        return data


def _runs(numbers: list[int]) -> Iterator[list[int]]:
    """Yield consecutive numbers as groups."""
    for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0]):
        yield [number for _, number in run]


class RangedFile:
    """A read-only file of an image's bytes, for one thread at a time; errors are recorded, not raised.

    Sequential reads have a growing read-ahead, as with GDAL's own HTTP client.
    """

    mode = "rb"
    path = ""

    def __init__(self, ranges: Ranges) -> None:
        self.fs = ranges
        self._at = 0
        self._read_from = self._read_to = 0

    def read(self, length: int) -> bytes:
        """Return the next bytes; fewer at the end, and after an error."""
        try:
            found = self.fs.read(self._at, length, self._read_ahead(length))
        except Exception as error:  # noqa: BLE001 - GDAL cannot handle it; the caller of GDAL reads it
            self.fs.meet(error)
            return b""
        self._at += len(found)
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position of the next read."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence)
        try:
            self._at = offset + (self.fs.size if base is None else base)
        except Exception as error:  # noqa: BLE001 - as above
            self.fs.meet(error)
        return self._at

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._at

    def _read_ahead(self, length: int) -> int:
        """Return the bytes to read ahead: as many as were read sequentially before."""
        if self._at != self._read_to:
            self._read_from = self._at
        self._read_to = self._at + length
        return min(_AHEAD, self._at - self._read_from)
