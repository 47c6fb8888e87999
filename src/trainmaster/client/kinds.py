"""Registers the words of other kinds of jobs in the client; the only module of this layer that names one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trainmaster.client.views.types import JobView

TRAINING = "training"
"""The kind of training jobs."""


class KindWording(Protocol):
    """The words of a kind of jobs."""

    STATES: Mapping[str, str]
    """Sentences about the states of a job that differ from those of training jobs."""

    def progress(self, job: JobView) -> str:
        """Return how much of the job's work is done."""
        ...


def is_training_job(job: JobView) -> bool:
    """Return whether the attempts of a job are training jobs at SageMaker."""
    return job.get("kind", TRAINING) == TRAINING


def kind_wording(job: JobView) -> KindWording | None:
    """Return the words of a job's kind; None for a training job, and for a kind that this installation lacks."""
    if job.get("kind") != "image" or find_spec("trainmaster.images") is None:
        return None
    from trainmaster.images.client import wording

    return wording
