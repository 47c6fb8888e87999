"""A kind of jobs of the tests' own, for tests of the core about jobs that are not training jobs: batches of calls."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar

import builders as b
from trainmaster.domain.capacity.units import Demand
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.work import OTHER_KINDS, Progress, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchWork(Work):
    """Calls to a service, of which some are done.

    Attributes:
        service: the service's name.
        calls: number of calls, all of which may be made at once.
        done, failed: number of such calls.
    """

    service: str = "echo"
    calls: int = 1
    done: int = 0
    failed: int = 0

    kind: ClassVar[str] = "batch"
    pool_prefix: ClassVar[str] = "batch/"
    at_work_reason: ClassVar[str] = "its calls are being made"
    request_field: ClassVar[str] = "service"

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> BatchWork:
        service, calls, done, failed, *_ = values
        return cls(service=service, calls=calls, done=done, failed=failed)

    def values(self) -> list[Any]:
        return [self.service, self.calls, self.done, self.failed]

    @classmethod
    def pool_problem(cls, pool: str) -> tuple[str, str] | None:
        return None if pool.removeprefix(cls.pool_prefix) else (f"{pool} names no service", "Name it batch/<service>.")

    @property
    def pool(self) -> str:
        return self.pool_prefix + self.service

    @property
    def needed(self) -> int:
        return max(self.calls - self.done, 1)

    @property
    def settled(self) -> int:
        return self.done + self.failed

    @property
    def completed(self) -> int:
        return self.done

    @property
    def similarity(self) -> Hashable:
        return self.calls

    @property
    def run_time_classes(self) -> tuple[str, ...]:
        return f"{OTHER_KINDS}batch/{self.service}", f"{OTHER_KINDS}batch"

    def demand(self, cap: int | None = None) -> Demand:
        return Demand(({self.pool: self.needed if cap is None else max(min(self.needed, cap), 1)},))

    def restarted(self) -> BatchWork:
        return replace(self, failed=0)

    def advanced(self, seen: Progress) -> BatchWork:
        return self if seen.done + seen.failed < self.settled else replace(self, done=seen.done, failed=seen.failed)

    def note_since(self, before: Work) -> str:
        return "a call failed" if self.failed and before.settled == before.completed else ""

    @classmethod
    def run_name(cls, job: str, attempt: int) -> str:
        return f"batch:{job}" if attempt == 1 else f"batch:{job}-qstamp-{attempt}"

    def length(self, given: int) -> float:
        return self.calls / given

    def prior_run_time(self, given: int, elapsed: float, quantile: float) -> float:
        return max(60.0 * self.calls / given, elapsed)

    def seconds_left(self, given: int, so_far: float, quantile: float) -> float | None:
        return so_far / self.done * (self.calls - self.done) if self.done else None

    def details(self, expected_end: datetime | None) -> dict[str, Any]:
        return {"service": self.service, "calls": {"total": self.calls, "done": self.done, "failed": self.failed}}


def a_batch(name: str = "batch1", calls: int = 8, *, service: str = "echo", **fields: Any) -> Job:
    """A waiting job of this kind that makes so many calls at once."""
    work = BatchWork(service=service, calls=calls)
    return b.a_job(name, demand=work.demand(), work=work, **fields)
