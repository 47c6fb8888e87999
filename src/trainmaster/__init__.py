"""Trainmaster: a priority queue for Amazon SageMaker training jobs.

Public names are imported on first use, so that importing the package loads neither boto3 nor the SageMaker SDK. It
imports nothing itself: programs handle Ctrl-C only once it is imported.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""As `typing.TYPE_CHECKING`, whose import takes longer than all of this."""

if TYPE_CHECKING:
    from trainmaster.client.api.client import ApiClient
    from trainmaster.client.batch.hook import route_batch
    from trainmaster.client.batch.training_queue import TrainingQueue
    from trainmaster.client.running import JobFailed, job_facts, run_job
    from trainmaster.client.sdk.bypass import QueueBypassWarning
    from trainmaster.client.sdk.elastic import ElasticOptions
    from trainmaster.client.sdk.hook import route_to_queue
    from trainmaster.client.sdk.session import QueueSession
    from trainmaster.client.sweeps.space import Categorical, Continuous, Integer
    from trainmaster.client.sweeps.sweep import Objective, Sweep
    from trainmaster.client.sweeps.tuning_job import sweep_of_tuning_job
    from trainmaster.domain.release import VERSION as __version__  # noqa: N811 -- the name that tools expect

__all__ = [
    "ApiClient",
    "Categorical",
    "Continuous",
    "ElasticOptions",
    "Integer",
    "JobFailed",
    "Objective",
    "QueueBypassWarning",
    "QueueSession",
    "Sweep",
    "TrainingQueue",
    "__version__",
    "job_facts",
    "route_batch",
    "route_to_queue",
    "run_job",
    "sweep_of_tuning_job",
]

_HOMES = {
    "ApiClient": "trainmaster.client.api.client",
    "Categorical": "trainmaster.client.sweeps.space",
    "Continuous": "trainmaster.client.sweeps.space",
    "ElasticOptions": "trainmaster.client.sdk.elastic",
    "Integer": "trainmaster.client.sweeps.space",
    "JobFailed": "trainmaster.client.running",
    "Objective": "trainmaster.client.sweeps.sweep",
    "QueueBypassWarning": "trainmaster.client.sdk.bypass",
    "QueueSession": "trainmaster.client.sdk.session",
    "Sweep": "trainmaster.client.sweeps.sweep",
    "TrainingQueue": "trainmaster.client.batch.training_queue",
    "job_facts": "trainmaster.client.running",
    "route_batch": "trainmaster.client.batch.hook",
    "route_to_queue": "trainmaster.client.sdk.hook",
    "run_job": "trainmaster.client.running",
    "sweep_of_tuning_job": "trainmaster.client.sweeps.tuning_job",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use (PEP 562)."""
    from importlib import import_module

    if name == "__version__":
        from trainmaster.domain.release import VERSION

        return VERSION
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names without importing them."""
    return sorted(__all__)
