"""Keeps the example queue busy: submits jobs where those of a sort have ended."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import httpx

_STEP_SECONDS: Final = 4.0
_MAX_AT_ONCE: Final = 2
"""Submissions of a step once the queue is full, so that jobs arrive one after another."""


class Sort(Protocol):
    """Jobs of one sort, such as `Example`."""

    @property
    def stem(self) -> str:
        """Beginning of their names."""
        ...

    @property
    def alive(self) -> int:
        """Jobs that have not ended, at most."""
        ...

    @property
    def pause(self) -> float:
        """Seconds between two submissions, at least."""
        ...

    @property
    def team(self) -> str:
        """The team that submits them."""
        ...

    @property
    def path(self) -> str:
        """Route of the API."""
        ...

    @property
    def hold(self) -> bool:
        """True if the team holds them."""
        ...

    def body(self, number: int, rng: random.Random, now: datetime) -> Mapping[str, Any]:
        """Return the request for the job with this number."""
        ...


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to submit: its name, the team, the route of the API and the request; `hold` holds the job afterwards."""

    name: str
    team: str
    path: str
    body: Mapping[str, Any]
    hold: bool = False


class Player:
    """Submits jobs of each sort, up to the number of it that shall be alive.

    Args:
        unfinished: returns the names of the jobs that have not ended.
        submit: submits a job; raises httpx.HTTPError if the queue does not accept it.
        now: the time.
    """

    def __init__(
        self,
        sorts: Iterable[Sort],
        *,
        unfinished: Callable[[], Iterable[str]],
        submit: Callable[[Submission], None],
        rng: random.Random,
        now: Callable[[], datetime],
    ) -> None:
        self._sorts, self._unfinished, self._submit = tuple(sorts), unfinished, submit
        self._rng, self._now = rng, now
        self._numbers: Counter[str] = Counter()
        self._last: dict[str, datetime] = {}

    def fill(self) -> None:
        """Submit all jobs that shall be alive. Raises httpx.HTTPError."""
        for sort in self._sorts:
            for _ in range(sort.alive):
                self._add(sort)

    def step(self) -> None:
        """Submit a few jobs of the sorts of which too few are alive. Raises httpx.HTTPError."""
        for sort in self._due()[:_MAX_AT_ONCE]:
            self._add(sort)

    @contextmanager
    def playing(self, on_problem: Callable[[str], None], seconds: float = _STEP_SECONDS) -> Iterator[None]:
        """Take a step every few seconds, in a thread, until the block ends."""
        ended = threading.Event()
        thread = threading.Thread(target=self._play, args=(ended, on_problem, seconds), name="example-queue")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _play(self, ended: threading.Event, on_problem: Callable[[str], None], seconds: float) -> None:
        while not ended.wait(seconds):
            try:
                self.step()
            except httpx.HTTPError as error:
                on_problem(f"A job of the example queue was not submitted: {error}")

    def _due(self) -> list[Sort]:
        alive = Counter(name.rpartition("-")[0] for name in self._unfinished())
        due = [sort for sort in self._sorts if alive[sort.stem] < sort.alive and self._rested(sort)]
        return self._rng.sample(due, len(due))

    def _rested(self, sort: Sort) -> bool:
        last = self._last.get(sort.stem)
        return last is None or (self._now() - last).total_seconds() >= sort.pause

    def _add(self, sort: Sort) -> None:
        self._last[sort.stem] = self._now()
        self._numbers[sort.stem] += 1
        number = self._numbers[sort.stem]
        body = sort.body(number, self._rng, self._now())
        self._submit(Submission(f"{sort.stem}-{number}", sort.team, sort.path, body, sort.hold))
