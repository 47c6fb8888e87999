"""Acts of a story: what people, administrators, AWS and other users do, each at its second of the day.

Acts are plain frozen values, so that a story prints as Python and a failing one can be shrunk act by act.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from builders import G5, P5

G6 = "ml.g6.12xlarge"
TYPES = (P5, G5, G6)
SPOT = ".spot"
"""Suffix of the names of spot pools."""
PLAN = "plan"
"""Name of the training plan, and of its pool."""


class Printed:
    """Prints only the fields that differ from their defaults."""

    def __repr__(self) -> str:
        shown = [f"{f.name}={value!r}" for f in fields(self) if (value := getattr(self, f.name)) != f.default]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Act(Printed):
    """Something that happens at a second of the day."""

    at: float


@dataclass(frozen=True, repr=False)
class Submit(Act):
    """A user submits a training job.

    Attributes:
        instance_type: the type that its request names.
        count: instances.
        seconds: work of its script.
        outcome: of its script; `internal_errors` runs before that end with an error of SageMaker.
        checkpoints: whether it has a CheckpointConfig.
        groups: instances of the other types in InstanceGroups.
        preferences: further types that it accepts, as InstancePreferences.
        plan: whether it runs in the training plan.
        hook: of an elastic job, with `least` and `most` instances.
        not_before: second of the day before which it does not enter the queue.
        options: further `trainmaster:` options, `_` for `-`.
    """

    name: str = ""
    instance_type: str = P5
    count: int = 1
    seconds: int = 600
    priority: int = 0
    outcome: str = "completed"
    internal_errors: int = 0
    checkpoints: bool = True
    spot: bool = False
    keep_alive: int = 0
    groups: tuple[tuple[str, int], ...] = ()
    preferences: tuple[str, ...] = ()
    plan: bool = False
    hook: str = ""
    least: int = 1
    most: int = 1
    max_pending: int = 0
    not_before: int = 0
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, repr=False)
class Cancel(Act):
    """A user cancels a job."""

    name: str = ""


@dataclass(frozen=True, repr=False)
class Hold(Act):
    """A user holds a job, or releases it."""

    name: str = ""
    hold: bool = True


@dataclass(frozen=True, repr=False)
class Reprioritize(Act):
    """A user changes a job's priority."""

    name: str = ""
    priority: int = 0


@dataclass(frozen=True, repr=False)
class Scale(Act):
    """A user changes the size bounds of an elastic job."""

    name: str = ""
    least: int = 1
    most: int = 1


@dataclass(frozen=True, repr=False)
class ConsoleStop(Act):
    """A person stops the job's open training job in the SageMaker console."""

    name: str = ""


@dataclass(frozen=True, repr=False)
class Stray(Act):
    """A create call of a waiting job's refused start takes effect after all, and is stopped at once.

    That is what remains where another manager's call of that start got through.
    """

    name: str = ""


@dataclass(frozen=True, repr=False)
class ChangePool(Act):
    """An administrator changes the cap of a pool, or drains it."""

    pool: str = ""
    cap: int | None = None
    draining: bool | None = None


@dataclass(frozen=True, repr=False)
class RemovePool(Act):
    """An administrator removes a pool."""

    pool: str = ""
    force: bool = False


@dataclass(frozen=True, repr=False)
class AddPool(Act):
    """An administrator adds a pool that the story began with, with another cap."""

    pool: str = ""
    cap: int = 1


@dataclass(frozen=True, repr=False)
class ChangeSettings(Act):
    """An administrator changes members of the settings document."""

    document: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, repr=False)
class External(Act):
    """Another user of the account, or another queue, runs a training job."""

    name: str = ""
    instance_type: str = P5
    count: int = 1
    seconds: int = 600
    queue: str = ""


@dataclass(frozen=True, repr=False)
class Capacity(Act):
    """EC2's capacity of a type changes; None for unlimited."""

    instance_type: str = P5
    count: int | None = None
    spot: bool = False


@dataclass(frozen=True, repr=False)
class Quota(Act):
    """The account's quota of a type changes."""

    instance_type: str = P5
    limit: int = 1


@dataclass(frozen=True, repr=False)
class Interrupt(Act):
    """AWS takes the instances of the spot jobs that run."""


@dataclass(frozen=True, repr=False)
class Redeploy(Act):
    """A new version is deployed with another `Pools` parameter; the old one may overtake it until the end."""

    parameter: str = ""


@dataclass(frozen=True, repr=False)
class Kill(Act):
    """The next manager that makes n calls dies after the last of them, `hang` seconds later."""

    call: int = 1
    hang: int = 0


@dataclass(frozen=True, repr=False)
class Overtake(Act):
    """Another manager runs a whole tick after the n-th call of the next one that makes so many, which hangs first."""

    call: int = 1
    hang: int = 0


@dataclass(frozen=True, repr=False)
class StoreFault(Act):
    """The n-th call of a manager's store fails: `throttled`, `unavailable`, or `lost` after its effect."""

    call: int = 1
    how: str = "throttled"


@dataclass(frozen=True, repr=False)
class CallFault(Act):
    """The next call of a verb of SageMaker fails; `lost` carries it out and loses the answer."""

    verb: str = "CreateTrainingJob"
    code: str = "ThrottlingException"
    lost: bool = False


@dataclass(frozen=True, repr=False)
class Forge(Act):
    """A forged or mistaken event reports a status of a job's open training job that it does not have."""

    name: str = ""
    status: str = "Completed"


@dataclass(frozen=True, repr=False)
class BadMessage(Act):
    """A message that means nothing arrives."""

    body: str = "{}"
