"""Other kinds of jobs than training: their runs, and the pools that they discover."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from trainmaster.domain.capacity.units import Pool
from trainmaster.domain.jobs.attempt import Attempt
from trainmaster.domain.jobs.job import Job
from trainmaster.domain.jobs.observation import Observation
from trainmaster.ports.sagemaker import CreateResult


class Runs(Protocol):
    """The runs of one kind of job; names of runs begin with the kind and a colon."""

    def objection(self, job: Job) -> str | None:
        """Return why the deployment does not allow the job's submitter a run, now that it is to start; else None."""
        ...

    def create(self, job: Job, attempt: Attempt) -> CreateResult:
        """Create the attempt's run; see `Launcher.create`."""
        ...

    def stop(self, run: str) -> bool:
        """Stop a run; see `Launcher.stop`."""
        ...

    def describe(self, run: str) -> Observation | None:
        """Return the state of a run; None if there is none of this name."""
        ...

    def reconcile(self, job: Job, cap: int | None) -> None:
        """Repair the run of an active job, and adapt it to its pool's cap; None if the pool is gone."""
        ...

    def ending(self, job: Job) -> None:
        """Prepare for the end of a job, before it is committed."""
        ...

    def ended(self, job: Job) -> None:
        """Clean up after the end of a job, once it is committed."""
        ...


class PoolDiscovery(Protocol):
    """Finds the pools of services while one snapshot is read."""

    def of(self, jobs: Iterable[Job]) -> Mapping[str, Pool]:
        """Return the pools that these jobs need, beyond those of the settings."""
        ...


Discover = Callable[[], PoolDiscovery]
"""Makes a discovery for each snapshot, so that nothing is read twice for it."""


class NoDiscovery:
    """For deployments without other kinds of jobs."""

    def of(self, jobs: Iterable[Job]) -> Mapping[str, Pool]:  # noqa: ARG002 - see the port
        """Return no pools."""
        return {}
