"""The jobs of Kueue's published baseline as requests: a cohort is a pool, a cluster queue a share.

The figures are those of Kueue's `test/performance/scheduler/configs/baseline`.
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
class JobClass:
    """A class of jobs: how many each share submits, and their shape (Kueue, `configs/baseline`)."""

    name: str
    count: int
    units: int
    runs: float
    every: float
    priority: int


CLASSES = (
    JobClass("small", 350, 1, 0.2, 0.1, 50),
    JobClass("medium", 100, 5, 0.5, 0.5, 100),
    JobClass("large", 50, 20, 1.0, 1.2, 200),
)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One job: time of submission in seconds, share, pool, class."""

    at: float
    name: str
    share: str
    pool: str
    job_class: JobClass


def arrivals(jobs: int) -> list[Arrival]:
    """Return the first jobs of every class and share, about this many in total, at least one of each, as submitted."""
    part = jobs / JOBS
    found = [
        Arrival(round(number * job_class.every, 3), f"{share}-{job_class.name}-{number:03d}", share, pool, job_class)
        for pool, share in _shares()
        for job_class in CLASSES
        for number in range(max(round(job_class.count * part), 1))
    ]
    return sorted(found, key=lambda arrival: (arrival.at, arrival.name))


def policy() -> Policy:
    """Return settings with 30 shares that lend and borrow; other settings are the defaults."""
    shares = {share: Share(name=share, nominal={pool: NOMINAL}, borrows={pool: BORROW}) for pool, share in _shares()}
    return Policy(shares=shares)


def _shares() -> Iterator[tuple[str, str]]:
    for cohort, pool in enumerate(POOLS):
        for number in range(SHARES_OF_A_POOL):
            yield pool, f"cohort{cohort}-queue{number}"


def pools() -> dict[str, Pool]:
    """Return the cohorts: pools that six shares own together."""
    return {pool: Pool(pool, NOMINAL * SHARES_OF_A_POOL) for pool in POOLS}


def request_of(arrival: Arrival) -> dict[str, Any]:
    """Return the CreateTrainingJob request of a job."""
    job_class = arrival.job_class
    return {
        "TrainingJobName": arrival.name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": f"bench/{job_class.name}:latest", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": "s3://bench/output"},
        "ResourceConfig": {"InstanceType": arrival.pool, "InstanceCount": job_class.units, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 1},
        "CheckpointConfig": {"S3Uri": f"s3://bench/checkpoints/{arrival.name}"},
        "Environment": {"SIMULATOR_TRAINING_SECONDS": repr(job_class.runs)},
        "Tags": [
            {"Key": "priority", "Value": str(job_class.priority)},
            {"Key": "trainmaster:share", "Value": arrival.share},
        ],
    }
