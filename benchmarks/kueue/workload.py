"""What Kueue's published baseline submits, as requests to our queue: a cohort is a pool, a cluster queue a share.

The figures are those of Kueue's `test/performance/scheduler/configs/baseline`. It must not run anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.policy.settings import Policy, Share

JOBS = 15_000
POOLS = tuple(f"ml.g5.{size}xlarge" for size in ("", 2, 4, 8, 16))
SHARES_OF_A_POOL = 6
NOMINAL, BORROW = 20, 100
ROLE = "arn:aws:iam::111122223333:role/bench"


@dataclass(frozen=True, slots=True)
class Class:
    """Jobs of one class: how many each share submits, and what they are (Kueue, `configs/baseline`)."""

    name: str
    count: int
    units: int
    runs: float
    every: float
    priority: int


CLASSES = (
    Class("small", 350, 1, 0.2, 0.1, 50),
    Class("medium", 100, 5, 0.5, 0.5, 100),
    Class("large", 50, 20, 1.0, 1.2, 200),
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job: when it is submitted, in seconds, by whom, of which class."""

    at: float
    name: str
    share: str
    pool: str
    kind: Class


def arrivals(jobs: int) -> list[Arrival]:
    """The first jobs of every class and share, so many in all; in order of submission."""
    part = jobs / JOBS
    found = [
        Arrival(round(number * kind.every, 3), f"{share}-{kind.name}-{number:03d}", share, pool, kind)
        for pool, share in _shares()
        for kind in CLASSES
        for number in range(round(kind.count * part))
    ]
    return sorted(found, key=lambda arrival: (arrival.at, arrival.name))


def policy() -> Policy:
    """30 shares that lend and borrow; all else as it is by default."""
    shares = {share: Share(name=share, nominal={pool: NOMINAL}, borrows={pool: BORROW}) for pool, share in _shares()}
    return Policy(shares=shares)


def _shares() -> Iterator[tuple[str, str]]:
    for cohort, pool in enumerate(POOLS):
        for number in range(SHARES_OF_A_POOL):
            yield pool, f"cohort{cohort}-queue{number}"


def pools() -> dict[str, Pool]:
    """The cohorts: what six shares own together."""
    return {pool: Pool(pool, NOMINAL * SHARES_OF_A_POOL) for pool in POOLS}


def request_of(arrival: Arrival) -> dict[str, Any]:
    """The CreateTrainingJob request; its user knows how long it runs to the second."""
    kind = arrival.kind
    return {
        "TrainingJobName": arrival.name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": f"bench/{kind.name}:latest", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bench/output"},
        "ResourceConfig": {"InstanceType": arrival.pool, "InstanceCount": kind.units, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 1},
        "CheckpointConfig": {"S3Uri": f"s3://bench/checkpoints/{arrival.name}"},
        "Environment": {"SIMULATOR_TRAINING_SECONDS": repr(kind.runs)},
        "Tags": [
            {"Key": "priority", "Value": str(kind.priority)},
            {"Key": "trainmaster:share", "Value": arrival.share},
        ],
    }
