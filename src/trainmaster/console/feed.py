"""Reads the API for all open pages together, and tells each page what has changed.

It reads only while a page watches; a page that is hidden closes its stream. The last values are kept for a while: a
page that opens shows them at once, with the time at which they were read, until the new ones come.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from threading import Condition, Thread
from typing import Any, Final

from trainmaster.client.api.errors import ApiError
from trainmaster.console.differences import differences
from trainmaster.console.forward import error_body
from trainmaster.console.routes import Read
from trainmaster.domain.compat import UTC

POLL_SECONDS: Final = 5.0
QUICK_SECONDS: Final = 1.0
QUICK_FOR_SECONDS: Final = 10.0
"""Time after an action in which the feed reads every second, so that the page shows what follows from it."""
KEPT_SECONDS: Final = 300.0
"""Time for which the last value of a read is kept that no page watches."""
MAX_WATCHED: Final = 6
"""Reads of one page, and reads of the API at a time: a person who goes through pages quickly must not flood it."""
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Reading:
    """The newest result of a read: its value or error, when it was read, and how many there have been.

    `busy` is whether the API is being asked.
    """

    value: Any = None
    error: dict[str, Any] | None = None
    as_of: str | None = None
    number: int = 0
    at: float = float("-inf")
    busy: bool = False


@dataclass(slots=True)
class _Page:
    """A page that watches, and the value of each read that it was sent."""

    watched: tuple[Read, ...]
    sent: dict[Read, Any] = field(default_factory=dict)
    numbers: dict[Read, int] = field(default_factory=dict)


class Feed:
    """One poll of the API for all pages. `read` calls the API; it may raise ApiError. Thread-safe."""

    def __init__(
        self,
        read: Callable[[Read], Any],
        *,
        poll_seconds: float = POLL_SECONDS,
        quick_seconds: float = QUICK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._read, self._poll_seconds, self._quick_seconds = read, poll_seconds, quick_seconds
        self._clock, self._now = clock, now
        self._changed = Condition()
        self._pages: list[_Page] = []
        self._readings: dict[Read, _Reading] = {}
        self._thread: Thread | None = None
        self._quick_until = float("-inf")
        self._closed = False

    def events(self, watched: tuple[Read, ...]) -> Iterator[bytes]:
        """Yield server-sent events for a page, until it stops iterating or the feed is closed."""
        page = _Page(watched)
        with self._changed:
            self._forget(self._clock())
            self._pages.append(page)
            self._start()
            self._changed.notify_all()
        try:
            yield b"retry: 2000\n\n"
            while (messages := self._next(page)) is not None:
                for message in messages:
                    yield f"data: {json.dumps(message, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
        finally:
            with self._changed:
                self._pages.remove(page)
                self._changed.notify_all()

    def hurry(self) -> None:
        """Read at once, and every second for a while: something was changed."""
        with self._changed:
            self._quick_until = self._clock() + QUICK_FOR_SECONDS
            for reading in self._readings.values():
                reading.at = float("-inf")
            self._changed.notify_all()

    def close(self) -> None:
        """End all streams."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = Thread(target=self._poll, name="console-feed", daemon=True)
            self._thread.start()

    def _next(self, page: _Page) -> list[dict[str, Any]] | None:
        """Wait for news of a page, and return them; None if the feed is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._news(page))
            if self._closed:
                return None
            news = [(read, self._readings[read]) for read in self._news(page)]
            page.numbers |= {read: reading.number for read, reading in news}
            return [_message(page, read, reading) for read, reading in news]

    def _news(self, page: _Page) -> list[Read]:
        return [
            read
            for read in page.watched
            if read in self._readings and self._readings[read].number > page.numbers.get(read, 0)
        ]

    def _poll(self) -> None:
        """Read whatever is due, all at once, while there are pages. No read waits for another, slower one."""
        while (due := self._due()) is not None:
            for read in due:
                Thread(target=self._update, args=(read,), name="console-read", daemon=True).start()

    def _update(self, read: Read) -> None:
        self._store(read, *self._result(read))

    def _due(self) -> list[Read] | None:
        """Wait until a read is due, and return those that are; None if no page watches."""
        with self._changed:
            while self._pages and not self._closed:
                now = self._clock()
                watched = {read: self._readings.setdefault(read, _Reading()) for read in self._watched()}
                pause = self._quick_seconds if now < self._quick_until else self._poll_seconds
                waits = {read: reading.at + pause - now for read, reading in watched.items() if not reading.busy}
                room = MAX_WATCHED - sum(reading.busy for reading in self._readings.values())
                if due := [read for read, seconds in waits.items() if seconds <= 0][:room]:
                    for read in due:
                        watched[read].busy = True
                    return due
                self._changed.wait(min(waits.values(), default=None) if room else None)
            self._thread = None
            return None

    def _watched(self) -> dict[Read, None]:
        """Return the reads that pages watch."""
        return dict.fromkeys(read for page in self._pages for read in page.watched)

    def _forget(self, now: float) -> None:
        """Forget readings that no page watches: errors, and those that are old or precede a change."""
        watched = self._watched()
        self._readings = {
            read: reading
            for read, reading in self._readings.items()
            if read in watched or (reading.error is None and (reading.busy or now - reading.at < KEPT_SECONDS))
        }

    def _result(self, read: Read) -> tuple[Any, dict[str, Any] | None]:
        try:
            return self._read(read), None
        except ApiError as error:
            return None, error_body(error)
        except Exception as error:
            log.exception("A read of the console failed")
            return None, {"type": type(error).__name__, "message": str(error), "field": None, "hint": None}

    def _store(self, read: Read, value: Any, error: dict[str, Any] | None) -> None:
        as_of = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._changed:
            reading = self._readings.setdefault(read, _Reading())
            reading.at, reading.error, reading.busy = self._clock(), error, False
            reading.number += 1
            if error is None:
                reading.value, reading.as_of = value, as_of
            self._changed.notify_all()


def _message(page: _Page, read: Read, reading: _Reading) -> dict[str, Any]:
    """Return what a page is told of a read, by its place in the page's list: an error, the value, or its changes."""
    message: dict[str, Any] = {"watch": page.watched.index(read), "asOf": reading.as_of}
    if reading.error is not None:
        return message | {"error": reading.error}
    before = page.sent.get(read)
    page.sent[read] = reading.value
    return message | ({"value": reading.value} if before is None else {"changes": differences(before, reading.value)})
