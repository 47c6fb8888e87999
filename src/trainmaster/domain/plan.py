"""What a pass reads and what it decides, as values.

A snapshot is all that a pass read; a plan is its decisions, each with a typed reason. Doing, explaining and
dry-running read the same plan. It must not contain logic beyond putting a reason into words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.domain.capacity import Pool, Units
from trainmaster.domain.job import Hold, Job


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of the queue that a pass obeys.

    Attributes:
        hold_for: how long freed capacity is kept for the job that it was freed for.
        most_actions: most starts and preemptions of one pass, so that a Lambda call ends in time.
    """

    hold_for: timedelta = timedelta(hours=1)
    most_actions: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a pass read.

    Attributes:
        pass_number: the fence; commits of an older pass fail.
        waiting: heads of all lanes, in queue order; lanes may hold more behind them.
        cut_lanes: lanes with more waiting jobs than were read.
        foreign: units held by training jobs that did not come from the queue, in pools that count them.
    """

    pass_number: int
    pools: Mapping[str, Pool]
    active: tuple[Job, ...] = ()
    waiting: tuple[Job, ...] = ()
    cut_lanes: frozenset[str] = frozenset()
    foreign: Units = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True)
class WaitsForCapacity:
    """Busy now: other jobs of no lower priority hold what it needs."""

    pool: str
    needed: int
    free: int

    def words(self) -> str:
        """The reason as a sentence."""
        return f"waits for {self.needed} x {self.pool}: {self.free} free for it now"


@dataclass(frozen=True, slots=True)
class WaitsForRelease:
    """Enough capacity is on the way: jobs are stopping."""

    pools: tuple[str, ...]
    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        names = ", ".join(self.pools)
        return f"waits for jobs that are stopping on {names}; kept for it until {_clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Preempts:
    """Enough capacity is being taken from jobs of lower priority."""

    victims: tuple[str, ...]
    until: datetime

    def words(self) -> str:
        """The reason as a sentence."""
        return f"preempts {', '.join(self.victims)}; the capacity is kept for it until {_clock(self.until)}"


@dataclass(frozen=True, slots=True)
class Behind:
    """First in, first out: an earlier job of no lower priority waits for the same pool."""

    job: str
    pool: str

    def words(self) -> str:
        """The reason as a sentence."""
        return f"waits behind {self.job}, which is before it in the queue for {self.pool}"


@dataclass(frozen=True, slots=True)
class KeptForOther:
    """Capacity is there, but it was freed for another job."""

    job: str
    pool: str
    until: datetime | None

    def words(self) -> str:
        """The reason as a sentence."""
        end = "" if self.until is None else f" until {_clock(self.until)}"
        return f"waits: the free {self.pool} is kept for {self.job}{end}"


@dataclass(frozen=True, slots=True)
class BackingOff:
    """Its last start met no capacity at AWS."""

    until: datetime
    cause: str

    def words(self) -> str:
        """The reason as a sentence."""
        return f"tried again at {_clock(self.until)}: {self.cause}"


@dataclass(frozen=True, slots=True)
class NextPass:
    """It can start, but this pass has done as much as one pass may."""

    def words(self) -> str:
        """The reason as a sentence."""
        return "starts with the next pass"


@dataclass(frozen=True, slots=True)
class CanNeverFit:
    """No pool, even when empty, could hold it; only a changed cap helps."""

    pool: str
    needed: int
    cap: int

    def words(self) -> str:
        """The reason as a sentence."""
        if self.cap == 0:
            return f"can never fit: there is no pool for {self.pool}"
        return f"can never fit: needs {self.needed} x {self.pool}, the pool's cap is {self.cap}"


Reason = WaitsForCapacity | WaitsForRelease | Preempts | Behind | KeptForOther | BackingOff | NextPass | CanNeverFit


@dataclass(frozen=True, slots=True)
class Start:
    """Start the job on these units; `choices` are the types that SageMaker may still choose from."""

    job: Job
    units: Units
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop these jobs for the sake of `job`, and keep what they free for it."""

    job: Job
    victims: tuple[Job, ...]
    hold: Hold


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave the job where it is, and say why."""

    job: Job
    reason: Reason


Decision = Start | Preempt | Wait


@dataclass(frozen=True, slots=True)
class Plan:
    """The decisions of a pass, in queue order; every considered job has exactly one Start or Wait."""

    decisions: tuple[Decision, ...] = ()

    @property
    def starts(self) -> tuple[Start, ...]:
        """What is to be started."""
        return tuple(d for d in self.decisions if isinstance(d, Start))

    @property
    def preemptions(self) -> tuple[Preempt, ...]:
        """What is to step aside, and for whom."""
        return tuple(d for d in self.decisions if isinstance(d, Preempt))

    @property
    def waits(self) -> tuple[Wait, ...]:
        """What stays, and why."""
        return tuple(d for d in self.decisions if isinstance(d, Wait))


def _clock(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
