"""The seam to other kinds of jobs: the work of a job that is not a training job (docs/explanation/kinds-of-jobs.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from trainmaster.domain.capacity.units import Demand, Units

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a run.

    Attributes:
        done, failed: parts of the work that are.
        left: units that the remaining parts use at once.
    """

    done: int = 0
    failed: int = 0
    left: int = 0


class Work(ABC):
    """The work of a job of another kind than training, as a frozen value of its job.

    Such a job draws on one pool, which its kind discovers, and an attempt of it is a run instead of a training job. Its
    units are concurrent requests to a service. A subclass registers itself under its `kind` when it is defined;
    `import_kind` imports the kinds of stored jobs that this process has not imported yet.
    """

    __slots__ = ()

    kind: ClassVar[str]
    """Name of the kind: in stored rows, in API responses, and before the colon in names of runs."""
    pool_prefix: ClassVar[str]
    """First part of the names of its pools; it ends with a slash, which no other pool's name contains."""
    at_work_reason: ClassVar[str]
    """The line in a job's history when an attempt begins to work."""
    request_field: ClassVar[str]
    """The field of a request that names the pool, for errors."""
    import_kind: ClassVar[Callable[[str], object]] = staticmethod(lambda _: None)
    """Imports the module that defines a kind, if there is one; `bootstrap` sets it."""
    _registered: ClassVar[dict[str, type[Work]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        """Register the kind."""
        super().__init_subclass__(**options)
        Work._registered[cls.kind] = cls

    @staticmethod
    def kinds() -> Mapping[str, type[Work]]:
        """Return the kinds that this process knows, by name."""
        return Work._registered

    @staticmethod
    def of_kind(kind: str) -> type[Work]:
        """Return the work of a kind, also of one that the deployment no longer has. Raises `KeyError`."""
        if kind not in Work._registered:
            Work.import_kind(kind)
        return Work._registered[kind]

    @classmethod
    @abstractmethod
    def of_values(cls, values: Sequence[Any]) -> Self:
        """Return the work that `values` made these values of; values that a newer version added are ignored."""

    @abstractmethod
    def values(self) -> list[Any]:
        """Return the work as a compact JSON list."""

    @classmethod
    @abstractmethod
    def pool_problem(cls, pool: str) -> tuple[str, str] | None:
        """Return what is wrong with a name that begins with `pool_prefix`, and a hint; None for a good one."""

    @property
    @abstractmethod
    def pool(self) -> str:
        """The pool that the job takes its units from."""

    @property
    @abstractmethod
    def needed(self) -> int:
        """Units that the next attempt asks for; at least 1."""

    @property
    @abstractmethod
    def settled(self) -> int:
        """Parts of the work that are done or failed."""

    @property
    @abstractmethod
    def completed(self) -> int:
        """Parts of the work that are done, which a later attempt does not repeat."""

    @property
    @abstractmethod
    def similarity(self) -> Hashable:
        """Equal for works that are expected to run equally long."""

    @property
    @abstractmethod
    def run_time_classes(self) -> tuple[str, ...]:
        """Classes for learned run times, narrowest first, at most three.

        Each begins with `OTHER_KINDS`, and the last holds all.
        """

    @abstractmethod
    def demand(self, cap: int | None = None) -> Demand:
        """Return the demand of the next attempt, cut to `cap` units; None if the cap is unknown."""

    @abstractmethod
    def restarted(self) -> Work:
        """Return the work as a new attempt begins."""

    @abstractmethod
    def advanced(self, seen: Progress) -> Work:
        """Return the work after a report; the same if an earlier report has told more."""

    @abstractmethod
    def note_since(self, before: Work) -> str:
        """Return the line of history for the progress since `before`; empty if people need none."""

    @classmethod
    @abstractmethod
    def run_name(cls, job: str, attempt: int) -> str:
        """Return the name of a job's run; it begins with `kind` and a colon."""

    @abstractmethod
    def length(self, given: int) -> float:
        """Return the length relative to the standard job whose run time is remembered, with this many units."""

    @abstractmethod
    def prior_run_time(self, given: int, elapsed: float, quantile: float) -> float:
        """Return the expected seconds in all if no job of the kind has ended yet."""

    @abstractmethod
    def seconds_left(self, given: int, so_far: float, quantile: float) -> float | None:
        """Return the seconds left, estimated from the progress; None if there is none yet."""

    @abstractmethod
    def details(self, expected_end: datetime | None) -> dict[str, Any]:
        """Return the member `details` of the job's views in the API: the work and its progress.

        Args:
            expected_end: when the job is expected to end, UTC; None while it holds no units.
        """


OTHER_KINDS = "@"
"""First character of run-time classes of other kinds; no share's name begins with it."""


def work_of_values(kind: str, values: Sequence[Any]) -> Work:
    """Return stored work. Raises `KeyError` for an unknown kind."""
    return Work.of_kind(kind).of_values(values)


def kind_of_run(name: str) -> str:
    """Return the kind that the name of a run tells; empty for a training job, whose name cannot contain a colon."""
    return name.partition(":")[0] if ":" in name else ""


def still_held(held: Units, seen: Progress) -> dict[str, int]:
    """Return what an attempt holds after a report; never more than before it."""
    return {pool: min(count, seen.left) for pool, count in held.items()}
